# shellcheck shell=bash disable=SC2034  # the variables are read by jobs/lib.sh and jobs/submit
# PBS (OpenPBS, PBS Pro): how a job is described, submitted, started in parallel and ended. Sourced by jobs/lib.sh.
# shellcheck source=jobs/schedulers/resubmit.sh
. "$PFFBENCH_HOME/jobs/schedulers/resubmit.sh"

SCHEDULER=PBS
CANCEL=(qdel)
PACK_IN=${OUT:-}
declare -gA TRANSLATE=([account]="-A" [partition]="-q")

# job_begins: set what a job has to know of itself. PBS starts it in the home directory.
job_begins() {
    if [[ -z ${PBS_JOBID:-} ]]; then die "this is no PBS job; submit it with jobs/submit --site $PFFBENCH_SITE"; fi
    cd "$PBS_O_WORKDIR" || exit 2
    OWN_JOB=${PBS_JOBID%%.*} JOB=${PFFBENCH_JOB:-${PBS_JOBID%%.*}} JOB_NAME=$PBS_JOBNAME RESTARTS=0 ARGUMENTS=("$@")
    mapfile -t HOSTS < <(awk '!seen[$0]++' "$PBS_NODEFILE")
    NODES=${#HOSTS[@]} JOB_HOSTS=$(IFS=,; echo "${HOSTS[*]}")
    # The file has a line for each of mpiprocs, which jobs/submit asks for.
    TASKS_PER_NODE=$(($(wc -l <"$PBS_NODEFILE") / NODES))
    JOB_ENDS=$(job_ends)
    RESUBMIT_OPTIONS=()
    if [[ -n ${PBS_ACCOUNT:-} ]]; then RESUBMIT_OPTIONS=(--account "$PBS_ACCOUNT"); fi
}

# job_ends: when the time limit is reached, in seconds of the epoch; nothing when PBS does not tell.
job_ends() {
    local text start limit
    text=$(timeout 5 qstat -f "$PBS_JOBID" 2>/dev/null) || return 0
    start=$(sed -nE 's/^ *stime = (.*)/\1/p' <<<"$text")
    limit=$(sed -nE 's/^ *Resource_List\.walltime = ([0-9]+):([0-9]+):([0-9]+)$/\1 \2 \3/p' <<<"$text")
    if [[ -z $start || -z $limit ]]; then return 0; fi
    read -r hours minutes seconds <<<"$limit"
    echo $(($(date -d "$start" +%s) + 3600 * 10#$hours + 60 * 10#$minutes + 10#$seconds))
}

# choose_mpi: set MPIEXEC to the kind of mpiexec, which decides how it is told the hosts.
choose_mpi() {
    MPIEXEC=${PFFBENCH_MPI:-$SITE_MPI} MPI_OPTION=()
    if [[ $MPIEXEC != auto ]]; then return; fi
    case $(mpiexec --version 2>&1) in
        *"Open MPI"* | *OpenRTE* | *PRRTE* | *prte*) MPIEXEC=openmpi ;;
        *PALS* | *pals*) MPIEXEC=pals ;;
        *) MPIEXEC=hydra ;;
    esac
}

# launcher NODES TASKS_PER_NODE: set LAUNCH to the command that starts ranks on the first hosts of the job.
launcher() {
    local hosts=$OUT/hosts-$OWN_JOB-${1}n-$2
    mkdir -p "$OUT"
    case $MPIEXEC in
        openmpi) printf "%s slots=$2\n" "${HOSTS[@]:0:$1}" >"$hosts" ;;
        hydra) printf "%s:$2\n" "${HOSTS[@]:0:$1}" >"$hosts" ;;
        pals) printf '%s\n' "${HOSTS[@]:0:$1}" >"$hosts" ;;
        *) die "PFFBENCH_MPI=$MPIEXEC: under PBS it is auto, openmpi, hydra or pals" ;;
    esac
    LAUNCH=(mpiexec "${SITE_LAUNCH[@]}" "${EXTRA[@]}" -n "$(($1 * $2))")
    case $MPIEXEC in
        openmpi) LAUNCH+=(--hostfile "$hosts" --map-by "ppr:$2:node" --oversubscribe) ;;
        hydra) LAUNCH+=(-f "$hosts" -ppn "$2") ;;
        pals) LAUNCH+=(--hostfile "$hosts" --ppn "$2") ;;
    esac
}

# submission NODES TASKS AFTER FILE ARGUMENT…: see jobs/schedulers/slurm.sh. Time and tasks that are not given are those of
# the script's header, which PBS does not read.
submission() {
    local nodes=$1 tasks=$2 after=$3 file=$4 minutes
    shift 4
    tasks=${tasks:-$(header "$file" ntasks-per-node)}
    minutes=$(time_limit "$file")
    if [[ -n $ARRAY ]]; then say "under PBS the experiments run one after the other in one job" >&2; fi
    translate
    COMMAND=(qsub -N "$(header "$file" job-name)" -l "select=$nodes:ncpus=$tasks:mpiprocs=$tasks" -l place=scatter:excl
        -l "walltime=$((minutes / 60)):$((minutes % 60)):00" "${SITE_SUBMIT[@]}" "${TRANSLATED[@]}" "${MORE[@]}"
        -j oe -k doe -o "$OUT/" -V -v "$(IFS=,; echo "${VARIABLES[*]}")")
    if [[ -n $after ]]; then COMMAND+=(-W "depend=$after"); fi
    COMMAND+=(-- "$file" "$@")
}

# job_number TEXT: the job's number in what the command printed, such as 17.server; status 1 without one.
job_number() { sed -nE '$s/^[0-9]+(\[\])?(\..*)?$/&/p' <<<"$1" | grep .; }
