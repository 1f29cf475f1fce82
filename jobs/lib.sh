# shellcheck shell=bash
# What the job scripts share. Sourcing it does nothing; a script calls `begin`, then `run` once or several times.
# shellcheck source=jobs/endings.sh
. "$PFFBENCH_HOME/jobs/endings.sh"
# shellcheck source=jobs/striping.sh
. "$PFFBENCH_HOME/jobs/striping.sh"

say() { printf '[pffbench %(%H:%M:%S)T] %s\n' -1 "$*"; }
die() {
    say "error: $*" >&2
    exit 2
}

# load_site: read the profile that PFFBENCH_SITE names, by the name of a file in jobs/sites or by a path, and what its
# scheduler needs.
load_site() {
    local file=$PFFBENCH_SITE
    if [[ $file != */* ]]; then file=$PFFBENCH_HOME/jobs/sites/$file.sh; fi
    if [[ ! -r $file ]]; then
        die "there is no site profile $file; PFFBENCH_SITE is one of" \
            "$(basename -s .sh "$PFFBENCH_HOME/jobs/sites/"*.sh | paste -sd ' ') or the path of your own"
    fi
    SITE_SCHEDULER=slurm # profiles of before there were others do not name it
    # shellcheck source=jobs/sites/generic.sh
    . "$file"
    if [[ ! $SITE_SCHEDULER =~ ^(slurm|pbs|flux)$ ]]; then die "$file: SITE_SCHEDULER=$SITE_SCHEDULER: it is slurm, pbs or flux"; fi
    # shellcheck source=jobs/schedulers/slurm.sh
    . "$PFFBENCH_HOME/jobs/schedulers/$SITE_SCHEDULER.sh"
}

# chain N: the numbers of nodes of a scaling series, 1, 2, 4, … up to N and N itself.
chain() {
    local nodes
    for ((nodes = 1; nodes < $1; nodes *= 2)); do echo "$nodes"; done
    echo "$1"
}

# header FILE NAME: what the header of a job script says, such as its time.
header() { sed -nE "s/^#SBATCH --$2=//p" "$1"; }

# experiments FILE|DIR…: the experiment files, those of a directory in the order of their names.
experiments() {
    local path
    for path in "$@"; do
        if [[ -d $path ]]; then
            find "$path" -maxdepth 1 -name '*.yaml' | LC_ALL=C sort
        else
            printf '%s\n' "$path"
        fi
    done
}

# name_of EXPERIMENT: what its results are named after. A colon separates directories in PFFBENCH_BASELINE.
name_of() { basename "${1//:/-}" .yaml; }

# quoted WORD…: a command as a shell reads it.
quoted() {
    local word line=''
    for word in "$@"; do
        if [[ $word =~ ^[A-Za-z0-9_./:=,@%+-]+$ ]]; then line+=" $word"; else line+=" ${word@Q}"; fi
    done
    echo "${line# }"
}

# begin ARGUMENT…: make everything ready that a run needs, and print what the job is. The arguments are the script's.
begin() {
    PFFBENCH_SITE=${PFFBENCH_SITE:-generic}
    OUT=$(realpath -m -- "${PFFBENCH_OUT:-pffbench-results}")
    RESULTS=() RUNS=1 WORST=0 MEANING='' SCRATCH_MADE='' STAGED='' MPI_OPTION=() PREPARED='' READS=''
    trap finish EXIT
    # The warning is for the ranks, not for this shell; should it get here all the same, it must not end the job. At the
    # end itself both are told, and this shell stays until the ranks have saved.
    trap : USR1
    ENDED=''
    trap told_to_end TERM
    load_site
    job_begins "$@"
    check_striping
    enter_site
    activate
    say "job $JOB ($JOB_NAME), start $((RESTARTS + 1)), site $PFFBENCH_SITE"
    say "$NODES nodes ($JOB_HOSTS), $TASKS_PER_NODE tasks on each, $PYTHON"
}

# enter_site: load the site's modules. What they are is what is measured, so a job without them must not go on.
enter_site() {
    local status
    set +eu # module files and activation scripts are not written for these
    site_environment
    status=$?
    set -eu
    if ((status != 0)); then
        die "the environment of site $PFFBENCH_SITE could not be loaded: site_environment of its profile ended with status" \
            "$status; what the module command said stands above"
    fi
}

# activate: find the Python to run with. It is that of PFFBENCH_PYTHON, or of `make env`, or the one that is active.
activate() {
    PYTHON_OPTIONS=()
    if [[ -z ${PFFBENCH_PYTHON:-} && -r $PFFBENCH_HOME/.build/env.sh ]]; then
        # shellcheck source=/dev/null  # written by `make env`
        . "$PFFBENCH_HOME/.build/env.sh"
    fi
    PYTHON=$(type -P "${PFFBENCH_PYTHON:-python3}") || die "${PFFBENCH_PYTHON:-python3} is not a program"
    # An environment may hold the libraries but not pffbench itself.
    if ! "$PYTHON" -c 'import pffbench' 2>/dev/null; then
        export PYTHONPATH=$PFFBENCH_HOME/src:$PFFBENCH_HOME/analysis${PYTHONPATH:+:$PYTHONPATH}
    fi
    "$PYTHON" -c 'import pffbench, mpi4py' ||
        die "$PYTHON cannot run pffbench: run 'make env' on a login node, or activate an environment in the site profile"
    SHARED_PYTHON=$PYTHON # staging takes another one
}

# mpi_library: what the MPI library says that it is.
mpi_library() {
    "$PYTHON" -c '
import mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
print(MPI.Get_library_version().strip("\0"))' || echo unknown
}

# scratch_parent: print the directory on the file system under test.
scratch_parent() {
    local parent
    parent=${PFFBENCH_SCRATCH:-$(site_scratch)}
    if [[ -z $parent ]]; then die "site $PFFBENCH_SITE does not know your scratch directory; set PFFBENCH_SCRATCH"; fi
    echo "$parent"
}

# make_scratch: a directory of this job on the file system under test, striped if the variables say so.
make_scratch() {
    local parent
    parent=$(scratch_parent)
    SCRATCH_MADE=$parent/pffbench-job-$JOB
    mkdir -p "$SCRATCH_MADE"
    stripe "$SCRATCH_MADE"
}

# recorded DIR FACT…: what the run in DIR says of itself, such as its status; nothing when there is no run.
recorded() {
    "$PYTHON" -S - "$@" 2>/dev/null <<'PYTHON' || true
import json, pathlib, sys
record = json.loads(pathlib.Path(sys.argv[1], "run.json").read_text())
for name in sys.argv[2:]:
    value = record["startup" if name == "starts" else name]
    if name == "startup":
        value = f"{(value.get('resumed') or [value['seconds_to_main']])[-1]:.1f}"
    if name == "starts":
        value = 1 + len(value.get("resumed", []))
    print(",".join(value) if isinstance(value, list) else value)
PYTHON
}

# run NAME NODES [ARG…]: run pffbench on NODES nodes of the allocation, with a results directory that has the same name
# after a restart of the job. What is there already is gone on with.
run() {
    local name=$1 nodes=$2 dir
    local -a share=()
    shift 2
    dir=$OUT/$name-${nodes}n-$JOB
    RESULTS+=("$dir")
    # The runs of a job share its time.
    if ((RUNS > 1)); then share=(--job-share "$RUNS"); fi
    RUNS=$((RUNS - 1))
    case $(recorded "$dir" status) in
        '')
            put_aside "$dir"
            launch "$dir" "$nodes" "$@" "${share[@]}" --out "$dir"
            ;;
        finished | written)
            say "finished before this start: $dir"
            settle "$dir" 0
            ;;
        *) launch "$dir" "$nodes" --resume "$dir" --other-hosts ;; # a restart has other nodes
    esac
}

# read_written DIR: read what another job wrote, where it wrote it.
read_written() {
    local place
    RESULTS+=("$1") READS=1
    place=$(dirname "$(recorded "$1" scratch)")
    # The directory that the job made goes when all is read, as it does after any job; one that it found stays.
    if [[ $(basename "$place") == pffbench-job-* ]]; then SCRATCH_MADE=$place; fi
    case $(recorded "$1" status) in
        '') die "there is no run in $1" ;;
        finished)
            say "finished before this start: $1"
            settle "$1" 0
            ;;
        *) launch "$1" "$NODES" --resume "$1" --stage read ;;
    esac
}

# launch DIR NODES ARG…: start the program, and look what became of the run.
launch() {
    local dir=$1 nodes=$2 status=0 begun tries drop_hook=${PFFBENCH_DROP_HOOK:-$SITE_DROP_HOOK}
    local -a command LAUNCH
    shift 2
    if [[ -n $ENDED ]]; then exit 3; fi
    begun=$(recorded "$dir" starts)
    say_where_it_stands "$dir"
    RANKS=$((nodes * TASKS_PER_NODE))
    prepare
    launcher "$nodes" "$TASKS_PER_NODE"
    command=("${LAUNCH[@]}" "$PYTHON" "${PYTHON_OPTIONS[@]}" -m pffbench run ${SCRATCH_MADE:+--scratch "$SCRATCH_MADE"}
        ${drop_hook:+--drop-hook "$drop_hook"} "$@")
    say "command: ${command[*]@Q}"
    step "${command[@]}" || status=$?
    # Each start of this job that a power cut ended may have left a socket for its step, under the number of a step of this one.
    for ((tries = RESTARTS > 1 ? RESTARTS : 1; tries > 0; tries--)); do
        if ! never_began "$dir" "$begun" "$status"; then break; fi
        say "the run did not begin: ${LAUNCH[0]} ended with $status before any rank had recorded a start; once more in 5 s"
        step sleep 5 || true # the scheduler may end it too
        if [[ -n $ENDED ]]; then exit 3; fi
        put_aside "$dir"
        status=0
        step "${command[@]}" || status=$?
    done
    settle "$dir" "$status"
}

# step COMMAND…: run a command, and do what a signal to this shell asks for at once, not when the command has ended.
step() {
    "$@" &
    wait_for "$!"
}

# prove_environment: on a login node `make env` could start no MPI program, so the first job does it, once: two ranks write
# and read shared files.
prove_environment() {
    local build=$PFFBENCH_HOME/.build log
    local -a LAUNCH SITE_LAUNCH=() EXTRA=("${PROOF_OPTIONS[@]}") without=()
    if [[ ! -e $build/unproven || ! ${PYTHON%/*} -ef $PFFBENCH_HOME/.venv/bin ]]; then return; fi
    if [[ -e $build/without-netcdf ]]; then without=(--no-netcdf); fi
    log=$OUT/check-$JOB.log
    mkdir -p "$OUT"
    say "the environment was made where no MPI program may start: proving it on 2 ranks ($log)"
    launcher 1 2
    if ! step timeout 300 "${LAUNCH[@]}" "$PYTHON" "$PFFBENCH_HOME/setup/check_stack.py" "${without[@]}" --dir "$OUT" >"$log" 2>&1; then
        sed 's/^/    /' "$log" >&2
        die "the environment that 'make env' made does not work in a job, as shown above; nothing was measured"
    fi
    say "$(grep -m 1 '^h5py ' "$log")"
    rm -f "$build/unproven"
}

# prepare: what only a job that still has something to run must do, once.
prepare() {
    if [[ -n $PREPARED ]]; then return; fi
    PREPARED=1
    read -ra EXTRA <<<"${PFFBENCH_LAUNCH:-}"
    choose_mpi
    prove_environment
    if [[ -z $READS ]]; then make_scratch; fi
    if [[ ${PFFBENCH_STAGE:-0} == 1 ]]; then
        # shellcheck source=jobs/stage.sh
        . "$PFFBENCH_HOME/jobs/stage.sh"
        stage
    fi
}

# settle DIR STATUS: what became of a run. The record decides: the launcher's status can be that of another rank or of a signal,
# and it is 0 after some failures of a node.
settle() {
    local status=$2 record startup
    record=$(recorded "$1" status valid | paste -sd ' ')
    case $record in
        'finished True' | 'written None') status=0 ;;
        'finished False' | 'written False') status=1 ;;
        interrupted*) restart ;;
        *)
            # Warned while Python was still starting, when a signal ends it: nothing is recorded, nothing is lost.
            if ((status == 128 + 10)); then restart; fi
            if [[ -n $ENDED ]]; then exit 3; fi
            if ((status == 0)); then status=1; fi
            if ((status != 2)); then # otherwise the program has said what is wrong
                say "the run did not come to its end; $(how_to_go_on)"
            fi
            ;;
    esac
    startup=$(recorded "$1" startup)
    if [[ -n $startup ]]; then startup=", start-up took $startup s${STAGED:+ from the disk of each node}"; fi
    say "run ended with $status$startup: $1"
    if ((status > WORST)); then WORST=$status; fi
}

# make_reports: tables and figures of the runs of this job, and those of the series that they belong to. The results are there
# without them, so a job does not fail by them.
make_reports() {
    local dir kind status=0
    local -a points command=("$PYTHON" "${PYTHON_OPTIONS[@]}" -m pffbench)
    for dir in "${RESULTS[@]}"; do
        case $(recorded "$dir" status) in finished | interrupted) ;; *) continue ;; esac
        step "${command[@]}" report "$dir" >/dev/null || status=$?
    done
    for kind in weak strong; do
        if [[ " ${RESULTS[*]##*/}" != *" scaling-$kind-"* ]]; then continue; fi
        points=("${RESULTS[0]%/*}/scaling-$kind-"*/run.json)
        if ((${#points[@]} < 2)); then continue; fi
        dir=${RESULTS[0]%/*}/figures-$kind
        if step "${command[@]}" scaling --out "$dir" "${points[@]%/run.json}" >/dev/null; then
            say "figures of the series: $dir"
        else
            status=1
        fi
    done
    return "$status"
}

# finish: the last lines of the log. Statuses are those of pffbench.
finish() {
    local status=$? meaning
    trap - EXIT
    if ((status == 0)); then status=$WORST; fi
    # Once the scheduler ends the job there is no time for it.
    if [[ ${PFFBENCH_REPORT:-1} != 0 && -z $ENDED ]] && ((${#RESULTS[@]})); then
        make_reports || say "not all tables and figures could be made, as said above; make them with: pffbench report DIRECTORY"
    fi
    if [[ -n $STAGED ]]; then unstage; fi
    if [[ -n $SCRATCH_MADE ]]; then rmdir --ignore-fail-on-non-empty "$SCRATCH_MADE" 2>/dev/null || true; fi
    case $status in
        0) meaning="all well" ;;
        1) meaning="a run is not valid" ;;
        2) meaning="wrong input, or nothing to run with" ;;
        3) meaning="interrupted" ;;
        *) meaning="killed or crashed" ;;
    esac
    for dir in "${RESULTS[@]}"; do say "results: $dir"; done
    say "exit status $status: ${MEANING:-$meaning}" # a script can know better
    exit "$status"
}
