# shellcheck shell=bash
# Talking to the user: progress lines, failures that show their cause, and steps with a log file.

# One progress line with the seconds since the start: the first set-up takes minutes and must not look hung.
say() { printf '[%4ds] %s\n' "$SECONDS" "$*"; }

# End with one message. Several lines in one call stay one message.
die() {
    printf '\npffbench set-up: %s\n' "$*" >&2
    exit 1
}

# unwritable FILE: print the system's reason why a file cannot be opened for writing; nothing where it can.
unwritable() {
    local reason
    reason=$({ mkdir -p "${1%/*}" && : >>"$1"; } 2>&1) || echo "${reason##*: }"
}

# lock FILE [TEXT]: wait for the lock of a set-up, as file 9; TEXT is said where another one has it.
lock() {
    local reason
    reason=$(unwritable "$1")
    if [[ -n $reason ]]; then
        die "$1 cannot be written ($reason). Make the environment in a clone of your own, in a directory that you may write to."
    fi
    exec 9>"$1"
    if ! flock -n 9; then
        if [[ -n ${2:-} ]]; then say "$2"; fi
        flock 9
    fi
}

# show_failure LOG: the lines of a log that a person looks for first.
# A compiler's error stands far above the wall of traceback that the build tools print after it,
# so the tail alone would hide it; the tail is for the failures that are not a compiler's.
show_failure() {
    local log=$1 pattern
    pattern='(^|[^a-z])(fatal )?error:|undefined reference|cannot find -l|command not found|No such file|Permission denied'
    pattern+='|No space left|Could not (find|connect|resolve)|ConnectionError|SSLError|[A-Za-z]+Error: '
    if grep -qE "$pattern" "$log"; then
        echo "  the errors in it:"
        # `error: subprocess-exited-with-error` and the like are the build tool's echo of the cause.
        # sed rather than head: it reads to the end, so that no broken pipe ends this script early.
        grep -nE -A2 "$pattern" "$log" | grep -vE 'subprocess-exited-with-error|^--$' | sed -n '1,18s/^/    /p' | cut -c -240
    fi
    echo "  the last lines of it:"
    tail -n 8 "$log" | sed 's/^/    /' | cut -c -240
    echo "  the whole log: $log"
}

# What pip and uv say where they reach no index.
NO_NETWORK='Failed to establish a new connection|NameResolutionError|ConnectTimeoutError|dns error|tcp connect error'

# step NAME TEXT COMMAND…: run a command with its output in a log, show that it is alive, and explain a failure.
# The command runs in the foreground, so that an interrupt reaches it; in a subshell, so that what it exports stays there.
step() {
    local name=$1 text=$2 log begin=$SECONDS heart status=0
    shift 2
    mkdir -p "$BUILD/logs"
    log=$BUILD/logs/$name.log
    say "$text (log: ${log#"$ROOT"/})"
    heartbeat "$name" &
    heart=$!
    ("$@") >"$log" 2>&1 </dev/null || status=$?
    kill "$heart" 2>/dev/null || true
    wait "$heart" 2>/dev/null || true
    if ((status != 0)) && grep -qE "$NO_NETWORK" "$log"; then
        printf '\npffbench set-up: %s: no package index can be reached; where one can be, run setup/bootstrap --download DIR, copy DIR, and run setup/bootstrap --from DIR here (log: %s)\n' "$text" "$log" >&2
        return "$status"
    elif ((status != 0)); then
        # In one piece: two steps may run, and fail, side by side.
        printf '\npffbench set-up: this step failed with status %s: %s\n%s\n' "$status" "$text" "$(show_failure "$log")" >&2
        return "$status"
    fi
    if ((SECONDS - begin >= 5)); then say "  $name: done in $((SECONDS - begin)) s"; fi
}

# A sign of life every 20 s. Its one-second naps outlive it by as much, so they hold neither a pipe nor the lock.
heartbeat() {
    local begin=$SECONDS
    while sleep 1 >&- 2>&- 9>&- && kill -0 $$ 2>/dev/null; do
        if (((SECONDS - begin) % 20 == 19)); then say "  … $1: still working, $((SECONDS - begin + 1)) s"; fi
    done
}
