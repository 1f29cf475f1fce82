#!/bin/bash
#SBATCH --job-name=pffbench-report
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --time=00:10:00
#SBATCH --output=%x-%j.out
#
# Tables and figures of all runs in a directory, also of those that are interrupted:
#
#   sbatch jobs/report.sh [DIR]           (PFFBENCH_OUT, or ./pffbench-results, when not given)
set -euo pipefail
PFFBENCH_HOME=${PFFBENCH_HOME:-${SLURM_SUBMIT_DIR:?submit this script with sbatch}}
# shellcheck source=jobs/lib.sh
. "$PFFBENCH_HOME/jobs/lib.sh"
begin

shopt -s nullglob
records=("${1:-$OUT}"/*/run.json)
if ((${#records[@]} == 0)); then die "there is no run in ${1:-$OUT}"; fi
for record in "${records[@]}"; do
    RESULTS+=("${record%/run.json}")
    # One run that cannot be reported, such as one without any finished repetition, must not hide the others.
    "$PYTHON" -m pffbench report "${record%/run.json}" || WORST=$?
done
