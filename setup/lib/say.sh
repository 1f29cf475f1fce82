# shellcheck shell=bash
# Talking to the user: progress lines, failures that show their cause, and steps with a log file.

# One progress line with the seconds since the start: the first set-up takes minutes and must not look hung.
say() { printf '[%4ds] %s\n' "$SECONDS" "$*"; }

# End with one message. Several lines in one call stay one message.
die() {
    printf '\npffbench set-up: %s\n' "$*" >&2
    exit 1
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
        grep -nE -A2 "$pattern" "$log" | grep -vE 'subprocess-exited-with-error|^--$' | head -n 30 | sed 's/^/    /'
    fi
    echo "  the last lines of it:"
    tail -n 8 "$log" | sed 's/^/    /'
    echo "  the whole log: $log"
} >&2

# step NAME TEXT COMMAND…: run a command with its output in a log, show that it is alive, and explain a failure.
step() {
    local name=$1 text=$2 log begin=$SECONDS pid status=0 beat=0
    shift 2
    mkdir -p "$BUILD/logs"
    log=$BUILD/logs/$name.log
    say "$text (log: ${log#"$ROOT"/})"
    "$@" >"$log" 2>&1 </dev/null &
    pid=$!
    # Sleeping in short naps keeps a quick step quick; the heartbeat comes every 20 s.
    while kill -0 "$pid" 2>/dev/null; do
        sleep 0.2
        beat=$((beat + 1))
        if ((beat % 100 == 0)); then say "  … $name: still working, $((SECONDS - begin)) s"; fi
    done
    wait "$pid" || status=$?
    if ((status != 0)); then
        printf '\npffbench set-up: this step failed with status %s: %s\n' "$status" "$text" >&2
        show_failure "$log"
        return "$status"
    fi
    if ((SECONDS - begin >= 5)); then say "  $name: done in $((SECONDS - begin)) s"; fi
}
