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
# Reads that no page cache can help: this job writes, then submits itself once more to read on other nodes.
#
#   sbatch -N 4 jobs/cold-read.sh [EXPERIMENT.yaml] [OPTION of `pffbench run` …]
#
# The second job waits for the first and excludes its nodes, so the cluster needs twice as many.
set -euo pipefail
PFFBENCH_HOME=${PFFBENCH_HOME:-${SLURM_SUBMIT_DIR:?submit this script with sbatch}}
# shellcheck source=jobs/lib.sh
. "$PFFBENCH_HOME/jobs/lib.sh"
begin

if [[ ${1:-} != *.yaml ]]; then set -- "$PFFBENCH_HOME/configs/hyperslab-weak.yaml" "$@"; fi
if [[ -n ${PFFBENCH_KEPT:-} ]]; then
    run cold-read "$NODES" "$@" --stage read --keep "$PFFBENCH_KEPT"
    exit
fi
kept=$(scratch_parent)/pffbench-kept-$JOB
run cold-write "$NODES" "$@" --stage write --keep "$kept"
if ((WORST)); then exit; fi
# What a job was given does not pass to one that it submits: say the same again.
same=("${SITE_SBATCH[@]}" --partition="$SLURM_JOB_PARTITION" --nodes="$NODES" --ntasks-per-node="$TASKS_PER_NODE")
if [[ -n ${SLURM_JOB_ACCOUNT:-} ]]; then same+=(--account="$SLURM_JOB_ACCOUNT"); fi
if [[ -n ${SLURM_JOB_QOS:-} ]]; then same+=(--qos="$SLURM_JOB_QOS"); fi
export PFFBENCH_HOME PFFBENCH_SITE PFFBENCH_OUT=$OUT PFFBENCH_KEPT=$kept
reader=$(sbatch --parsable "${same[@]}" --time="$(squeue --noheader --jobs "$SLURM_JOB_ID" --format %l)" \
    --output="$OUT/%x-%j.out" --dependency="afterok:$SLURM_JOB_ID" --kill-on-invalid-dep=yes \
    --exclude="$SLURM_JOB_NODELIST" "$PFFBENCH_HOME/jobs/cold-read.sh" "$@")
say "job ${reader%%;*} will read on other nodes than $SLURM_JOB_NODELIST"
