#!/bin/bash
#SBATCH --job-name=pffbench-array
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --time=00:30:00
#SBATCH --output=%x-%A_%a.out
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=USR1@120
#
# One experiment for each element of a job array; without an array, all of them one after the other:
#
#   sbatch --array=0-5%1 jobs/array.sh configs/paper          # a directory, or several files
#
# %1 runs one element at a time: two benchmarks at once on one file system measure each other.
# `jobs/submit array configs/paper` counts the experiments itself.
set -euo pipefail
PFFBENCH_HOME=${PFFBENCH_HOME:-${SLURM_SUBMIT_DIR:?submit this script with sbatch or jobs/submit}}
# shellcheck source=jobs/lib.sh
. "$PFFBENCH_HOME/jobs/lib.sh"
begin "$@"

mapfile -t experiments < <(experiments "$@")
if ((${#experiments[@]} == 0)); then die "name experiments, or a directory that holds *.yaml files"; fi
if [[ -n ${SLURM_ARRAY_TASK_ID:-} ]]; then
    if ((SLURM_ARRAY_TASK_ID >= ${#experiments[@]})); then
        die "the array has more elements than there are experiments; use --array=0-$((${#experiments[@]} - 1))%1"
    fi
    experiments=("${experiments[SLURM_ARRAY_TASK_ID]}")
fi
RUNS=${#experiments[@]}
for experiment in "${experiments[@]}"; do run "$(name_of "$experiment")" "$NODES" "$experiment"; done
