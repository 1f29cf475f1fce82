#!/bin/bash
#SBATCH --job-name=pffbench-nightly
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --time=00:30:00
#SBATCH --output=%x-%j.out
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=USR1@120
#
# A regression run: the default comparison, or any experiment, compared with a baseline. The job passes only when it is
# shown that nothing is slower by more than is allowed. It ends with status 1 when something is shown to be slower, 2 when
# nothing is comparable, 4 when the repetitions are too few to tell (under seven always are), and 5 when the raw transfers
# show that the machine has changed.
#
#   jobs/submit --nodes 4 nightly [EXPERIMENT.yaml] [OPTION of `pffbench run` …]
#   sbatch -N 4 jobs/nightly.sh [EXPERIMENT.yaml] [OPTION …]
#
# PFFBENCH_BASELINE is the results directory to compare with. When not given, the first valid run of an experiment and
# number of nodes becomes it; its name is kept beside it in a file, nightly-EXPERIMENT-4n.baseline. Change or remove that
# file to have another baseline. PFFBENCH_FAIL_IF_SLOWER is the slowdown that is still allowed (5%). The comparison lies
# beside the results, in …-compare/compare.md. docs/slurm.md tells the rest.
set -euo pipefail
PFFBENCH_HOME=${PFFBENCH_HOME:-${SLURM_SUBMIT_DIR:?submit this script with sbatch or jobs/submit}}
# shellcheck source=jobs/lib.sh
. "$PFFBENCH_HOME/jobs/lib.sh"
# shellcheck source=jobs/baseline.sh
. "$PFFBENCH_HOME/jobs/baseline.sh"

begin "$@"
ALLOWED=${PFFBENCH_FAIL_IF_SLOWER:-5%}
if [[ ! $ALLOWED =~ ^[0-9]+(\.[0-9]+)?%$ ]]; then die "PFFBENCH_FAIL_IF_SLOWER=$ALLOWED is not a percentage such as 5%"; fi
name=nightly
if (($#)) && [[ $1 != -* ]]; then name=nightly-$(basename "$1" .yaml); fi
KEPT=$OUT/$name-${NODES}n.baseline
find_baseline # before the run: a night is too long to find out that there is none

run "$name" "$NODES" "$@"
if ((WORST > 0)); then exit "$WORST"; fi
if [[ -z $BASELINE ]]; then keep_baseline "${RESULTS[0]}"; fi
if [[ -z $BASELINE || $BASELINE -ef ${RESULTS[0]} ]]; then exit 0; fi # it is the baseline itself
compare_with_baseline "${RESULTS[0]}"
