#!/bin/bash
#SBATCH --job-name=pffbench-report
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --time=00:10:00
#SBATCH --output=%x-%j.out
#
# Tables and figures of all runs in a directory, also of those that are interrupted, and the figures of a scaling series:
#
#   sbatch jobs/report.sh [DIR]           (PFFBENCH_OUT, or ./pffbench-results, when not given)
set -euo pipefail
PFFBENCH_HOME=${PFFBENCH_HOME:-${SLURM_SUBMIT_DIR:?submit this script with sbatch or jobs/submit}}
# shellcheck source=jobs/lib.sh
. "$PFFBENCH_HOME/jobs/lib.sh"
begin "$@"

shopt -s nullglob
dir=${1:-$OUT}
records=("$dir"/*/run.json)
if ((${#records[@]} == 0)); then die "there is no run in $dir"; fi
for record in "${records[@]}"; do
    RESULTS+=("${record%/run.json}")
    # One run that cannot be reported, such as one without any finished repetition, must not hide the others.
    "$PYTHON" -m pffbench report "${record%/run.json}" || WORST=$?
done
for kind in weak strong; do
    series=("$dir/scaling-$kind-"*/run.json)
    if ((${#series[@]} < 2)); then continue; fi
    "$PYTHON" -m pffbench scaling --out "$dir/figures-$kind" "${series[@]%/run.json}" || WORST=$?
done
