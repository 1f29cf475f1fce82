#!/bin/bash
#SBATCH --job-name=pffbench-cold-read
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --time=00:30:00
#SBATCH --output=%x-%j.out
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=USR1@120
#
# Cold reads, where no node's memory can hold what is read: one job writes, another one on other nodes reads.
#
#   jobs/submit --nodes 2 cold-read [EXPERIMENT.yaml] [OPTION of `pffbench run` …]      both jobs, and the report
#   sbatch -N 2 jobs/cold-read.sh [EXPERIMENT.yaml] [OPTION …]      writes; its log says how to submit the other one
#   sbatch -N 2 --exclude=NODES jobs/cold-read.sh --read DIR        reads what a job with the results directory DIR wrote
#
# The files of all repetitions are kept until they are read. docs/slurm.md tells the rest.
set -euo pipefail
PFFBENCH_HOME=${PFFBENCH_HOME:-${SLURM_SUBMIT_DIR:?submit this script with sbatch or jobs/submit}}
# shellcheck source=jobs/lib.sh
. "$PFFBENCH_HOME/jobs/lib.sh"

# send_elsewhere DIR: keep the job that waits to read off the nodes that wrote, or tell how to submit one.
send_elsewhere() {
    local reader writers
    writers=$(recorded "$1" wrote_on)
    reader=$(squeue --me --noheader --states=PENDING --format='%i %E' |
        sed -nE "s/^([0-9]+) .*afterok:$SLURM_JOB_ID\\b.*/\\1/p" | head -1)
    if [[ -z $reader ]]; then
        say "no job waits to read; submit it with: sbatch --nodes=$NODES --ntasks-per-node=$TASKS_PER_NODE" \
            "--exclude=$writers $PFFBENCH_HOME/jobs/cold-read.sh --read ${1@Q}"
    elif scontrol update "JobId=$reader" "ExcNodeList=$writers"; then
        say "job $reader will read, not on $writers"
    else
        say "job $reader will read; Slurm refused to keep it off $writers, where it would be refused"
    fi
}

begin "$@"
if [[ $SITE_SCHEDULER != slurm ]]; then die "cold-read keeps the reading job off the nodes that wrote, which only Slurm can do here"; fi

if [[ ${1:-} == --read ]]; then
    read_written "$(realpath -m -- "${2:?--read needs the results directory of the job that wrote}")"
else
    run cold-read "$NODES" "$@" --set cache=separate --stage write
    send_elsewhere "${RESULTS[0]}"
fi
