#!/bin/bash
#SBATCH --job-name=pffbench-report
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --time=00:10:00
#SBATCH --output=%x-%j.out
#
# Tables and figures of all runs in a directory, also of those that are interrupted, and the figures of a scaling series, as
# each job makes them as its last step (PFFBENCH_REPORT=0: not):
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
RESULTS=("${records[@]%/run.json}")
# A run that cannot be reported, such as one without any finished repetition, does not hide the others.
make_reports || WORST=$?
PFFBENCH_REPORT=0 # it is made
