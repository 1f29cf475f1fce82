# shellcheck shell=bash disable=SC2034  # the variables are read by jobs/lib.sh and jobs/submit
# Flux: how a job is described, submitted, started in parallel and ended. Sourced by jobs/lib.sh.
# shellcheck source=jobs/schedulers/resubmit.sh
. "$PFFBENCH_HOME/jobs/schedulers/resubmit.sh"

SCHEDULER=Flux
CANCEL=(flux cancel)
PACK_IN=${OUT:-}
declare -gA TRANSLATE=([account]="--bank=" [partition]="--queue=" [constraint]="--requires=")

# job_begins: set what a job has to know of itself. The job is a Flux instance of its own, which knows its number in the
# instance that started it; that number is exported, since ranks are told only the number of their step.
job_begins() {
    local left
    if [[ -z ${FLUX_URI:-} ]] || ! JOB=$(flux getattr jobid 2>/dev/null); then
        die "this is no Flux job; submit it with jobs/submit --site $PFFBENCH_SITE"
    fi
    PFFBENCH_FLUX_JOB=$(flux job id --to=f58plain "$JOB")
    export PFFBENCH_FLUX_JOB
    JOB=${PFFBENCH_JOB:-$PFFBENCH_FLUX_JOB} JOB_NAME=$(basename "$0" .sh) RESTARTS=0 ARGUMENTS=("$@")
    NODES=$(flux getattr size) JOB_HOSTS=$(flux getattr hostlist)
    TASKS_PER_NODE=${PFFBENCH_TASKS_PER_NODE:-${SITE_TASKS_PER_NODE:-1}}
    left=$(flux job timeleft 2>/dev/null) || left=''
    JOB_ENDS=''
    if [[ $left =~ ^[0-9]{1,9}$ ]]; then JOB_ENDS=$((EPOCHSECONDS + left)); fi # without a limit it is 4294967295
    RESUBMIT_OPTIONS=()
}

choose_mpi() { MPI_OPTION=(); }

# launcher NODES TASKS_PER_NODE: set LAUNCH to the command that starts ranks. A rank that has died ends the others a minute
# later, as under Slurm.
launcher() {
    LAUNCH=(flux run "${SITE_LAUNCH[@]}" "${EXTRA[@]}" -o exit-timeout=60s --nodes="$1" --tasks-per-node="$2")
}

# submission NODES TASKS AFTER FILE ARGUMENT…: see jobs/schedulers/slurm.sh. Time and tasks that are not given are those of
# the script's header, which Flux does not read. The script is wrapped, since its copy would not know its own name.
submission() {
    local nodes=$1 tasks=$2 after=$3 file=$4 name minutes variable
    shift 4
    name=$(header "$file" job-name)
    minutes=$(time_limit "$file")
    if [[ -n $ARRAY ]]; then say "under Flux the experiments run one after the other in one job" >&2; fi
    translate
    COMMAND=(flux batch --job-name="$name" --nodes="$nodes" --exclusive --time-limit="${minutes}m" "${SITE_SUBMIT[@]}"
        "${TRANSLATED[@]}" "${MORE[@]}" --output="$OUT/$name-{{id}}.out")
    for variable in "${VARIABLES[@]}" "PFFBENCH_TASKS_PER_NODE=${tasks:-$(header "$file" ntasks-per-node)}"; do
        COMMAND+=(--env="$variable")
    done
    if [[ -n $after ]]; then COMMAND+=(--dependency="$after"); fi
    COMMAND+=(--wrap "$(posix_quoted "$file" "$@")")
}

# posix_quoted WORD…: a command as any sh reads it, which runs what --wrap has; of bash's $'…' it knows nothing.
posix_quoted() {
    local word text='' quote="'\\''"
    for word in "$@"; do
        if [[ ! $word =~ ^[A-Za-z0-9_./:=,@%+-]+$ ]]; then word="'${word//\'/$quote}'"; fi
        text+=" $word"
    done
    echo "${text# }"
}

# job_number TEXT: the job's number in what the command printed, such as ƒ2Ab; status 1 without one.
job_number() { sed -nE '$s/^[^[:space:]]+$/&/p' <<<"$1" | grep .; }
