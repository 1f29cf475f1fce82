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
# A regression run: the experiment made for it (configs/nightly.yaml), or any other, compared with a baseline of several
# nights. The job fails with status 1 when something is shown to be slower than in the baseline and is so by more than
# is allowed, with 2 when a total cannot be compared, and with 5 when the machine has changed, or may have, by the raw transfers.
#
#   jobs/submit --nodes 4 nightly [EXPERIMENT.yaml] [OPTION of `pffbench run` …]
#   sbatch -N 4 jobs/nightly.sh [EXPERIMENT.yaml] [OPTION …]
#
# The first seven nights of an experiment and number of nodes that are VALID and not slower than those before them are the
# baseline. A file beside them, nightly-EXPERIMENT-4n.baseline, has the names of their results directories, one on each
# line; change or remove it to have another baseline. PFFBENCH_BASELINE names other directories, separated by colons.
# PFFBENCH_FAIL_IF_SLOWER is the slowdown that is allowed (20%), PFFBENCH_COMPARE has further options of `pffbench
# compare`. The comparison lies beside the results, in …-compare/compare.md. docs/slurm.md tells the rest.
set -euo pipefail
PFFBENCH_HOME=${PFFBENCH_HOME:-${SLURM_SUBMIT_DIR:?submit this script with sbatch or jobs/submit}}
# shellcheck source=jobs/lib.sh
. "$PFFBENCH_HOME/jobs/lib.sh"
# shellcheck source=jobs/baseline.sh
. "$PFFBENCH_HOME/jobs/baseline.sh"

begin "$@"
ALLOWED=${PFFBENCH_FAIL_IF_SLOWER:-20%}
if [[ ! $ALLOWED =~ ^[0-9]+(\.[0-9]+)?%$ ]]; then die "PFFBENCH_FAIL_IF_SLOWER=$ALLOWED is not a percentage such as 20%"; fi
name=nightly
case ${1:--} in
    --experiment) name=nightly-${2:-} ;;
    -*) set -- --experiment nightly "$@" ;;
    *) name=nightly-$(name_of "$1") ;;
esac
KEPT=$OUT/$name-${NODES}n.baseline
find_baseline # before the run: a night is too long to find out that a run of it is gone

run "$name" "$NODES" "$@"
if ((WORST > 0)); then exit "$WORST"; fi
find_baseline # another job may have added a night meanwhile
judge_night "${RESULTS[0]}"
