#!/bin/bash
#SBATCH --job-name=pffbench-compare
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --time=00:30:00
#SBATCH --output=%x-%j.out
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=USR1@120
#
# The default comparison, or any experiment, on the allocation given:
#
#   sbatch [-A ACCOUNT -N 4 --ntasks-per-node=16 …] jobs/compare.sh [EXPERIMENT.yaml] [OPTION of `pffbench run` …]
#
# Submit it from the checkout, or set PFFBENCH_HOME. docs/slurm.md tells the rest.
set -euo pipefail
PFFBENCH_HOME=${PFFBENCH_HOME:-${SLURM_SUBMIT_DIR:?submit this script with sbatch or jobs/submit}}
# shellcheck source=jobs/lib.sh
. "$PFFBENCH_HOME/jobs/lib.sh"
begin "$@"

run compare "$NODES" "$@"
