# shellcheck shell=bash disable=SC2034  # the variables are read by jobs/lib.sh and jobs/submit
# Slurm: how a job is described, submitted, started in parallel and ended. Sourced by jobs/lib.sh.

SCHEDULER=Slurm
CANCEL=(scancel)
PACK_IN=$SITE_LOCAL # sbcast reads it there
PROOF_OPTIONS=(--overcommit)

# job_begins: set what a job has to know of itself.
job_begins() {
    # srun hands on to the ranks what this script sets, whatever sbatch was told to export; and since Slurm 22.05 it
    # has to be told the CPUs per task again.
    export SLURM_EXPORT_ENV=ALL
    if [[ -n ${SLURM_CPUS_PER_TASK:-} ]]; then export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK; fi
    # The elements of an array have numbers of their own beside it, but this one is what people see.
    JOB=$SLURM_JOB_ID
    if [[ -n ${SLURM_ARRAY_TASK_ID:-} ]]; then JOB=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID; fi
    JOB_NAME=$SLURM_JOB_NAME JOB_HOSTS=$SLURM_JOB_NODELIST RESTARTS=${SLURM_RESTART_COUNT:-0}
    NODES=$SLURM_JOB_NUM_NODES
    TASKS_PER_NODE=${SLURM_NTASKS_PER_NODE:-${SITE_TASKS_PER_NODE:-1}}
}

# choose_mpi: set MPI_OPTION to the --mpi that fits the MPI library. A wrong one starts N programs of one rank each.
choose_mpi() {
    local wanted=${PFFBENCH_MPI:-$SITE_MPI}
    if [[ $wanted == auto ]]; then
        case $(mpi_library) in
            *"Open MPI"*) wanted=pmix ;;
            *CRAY*) wanted=cray_shasta ;;
            *MPICH* | *Intel* | *MVAPICH*) wanted=pmi2 ;;
            *) wanted=default ;;
        esac
        if [[ $wanted != default ]] && ! srun --mpi=list 2>&1 | grep -qw "$wanted"; then
            say "the MPI library wants srun --mpi=$wanted, which this Slurm lacks; trying its default"
            wanted=default
        fi
    fi
    MPI_OPTION=()
    if [[ $wanted != default ]]; then MPI_OPTION=("--mpi=$wanted"); fi
}

# launcher NODES TASKS_PER_NODE: set LAUNCH to the command that starts ranks. One rank that ends with a status of its own
# must not take the others down: they would hide that status. A rank that dies does so a minute later.
launcher() {
    LAUNCH=(srun "${MPI_OPTION[@]}" "${SITE_LAUNCH[@]}" "${EXTRA[@]}" --kill-on-bad-exit=0 --wait=60
        --nodes="$1" --ntasks="$(($1 * $2))" --ntasks-per-node="$2")
}

on_each_node() { srun --mpi=none --nodes="$NODES" --ntasks="$NODES" --ntasks-per-node=1 bash -c "$1"; }

# broadcast FILE TARGET: copy a file of this node to a path on every node.
broadcast() { sbcast --force "$1" "$2"; }

# job_facts: what Slurm knows of this job, as words like Requeue=1; nothing when it does not answer soon.
job_facts() {
    timeout 5 scontrol show job -o "$SLURM_JOB_ID" 2>/dev/null |
        grep -oE '\b(Reason|Requeue|Restarts)=[^ ]*' | paste -sd ' ' || true
}

# why_ended FACTS: why Slurm ends this job; nothing where it has queued it again.
why_ended() {
    case " $1 " in
        *' Reason=TimeLimit '*) echo "the time limit is reached" ;;
        *' Reason=NodeDown '*) echo "a node failed" ;;
        # Slurm counts the next start before it ends this one.
        *" Restarts=${SLURM_RESTART_COUNT:-0} "*) echo "cancelled" ;;
        *' Restarts='*) ;;
        *) echo "cancelled, out of time or queued again by somebody" ;;
    esac
}

# requeue: put this job back into the queue, which ends this start, as it is meant to.
requeue() { trap '' TERM && scontrol requeue "$SLURM_JOB_ID"; }

# how_to_go_on [FACTS]: the command that goes on with what is not finished. Slurm starts a job submitted with
# --no-requeue only once.
how_to_go_on() {
    local facts=${1-$(job_facts)}
    if [[ " $facts " == *' Requeue=0 '* && ${#RESULTS[@]} -gt 0 ]]; then
        # The directory may be gone with this job, when everything in it was removed.
        echo "go on in a new job with: ${SCRATCH_MADE:+mkdir -p $SCRATCH_MADE && }srun ${MPI_OPTION[*]}" \
            "--ntasks=$RANKS $SHARED_PYTHON -m pffbench run --resume ${RESULTS[-1]} --other-hosts" \
            "${READS:+--stage read }${SCRATCH_MADE:+--scratch $SCRATCH_MADE}"
    else
        echo "go on by hand with: scontrol requeue $JOB"
    fi
}

# submission NODES TASKS AFTER FILE ARGUMENT…: set COMMAND to what submits a job. TASKS or AFTER (afterany:JOB or
# afterok:JOB) may be empty. The header of the job script has all that is not given here.
submission() {
    local nodes=$1 tasks=$2 after=$3 option
    shift 3
    COMMAND=(sbatch --parsable "${SITE_SUBMIT[@]}")
    for option in "${OPTIONS[@]}"; do COMMAND+=("--$option"); done
    COMMAND+=("${MORE[@]}" --output="$OUT/$LOG" --export="ALL$(printf ',%s' "${VARIABLES[@]}")" --nodes="$nodes")
    if [[ -n $tasks ]]; then COMMAND+=(--ntasks-per-node="$tasks"); fi
    if [[ -n $ARRAY ]]; then COMMAND+=(--array="$ARRAY"); fi
    if [[ -n $after ]]; then COMMAND+=(--dependency="$after"); fi
    # Without the job that writes there is nothing to read: then the reading one goes.
    if [[ $after == afterok:* ]]; then COMMAND+=(--kill-on-invalid-dep=yes); fi
    COMMAND+=("$@")
}

# job_number TEXT: the job's number in what the command printed, status 1 without one. A centre may print lines of its own
# before it; --parsable adds the cluster's name where there are several.
job_number() { sed -nE '$s/^([0-9]+)(;.*)?$/\1/p' <<<"$1" | grep .; }
