#!/bin/bash
#SBATCH --job-name=pffbench-scaling-strong
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --time=00:30:00
#SBATCH --output=%x-%j.out
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=USR1@120
#
# Strong scaling: the ranks share the same data, so the time should fall. One point of the series, on all nodes of the allocation:
#
#   sbatch -N 4 jobs/scaling-strong.sh [EXPERIMENT.yaml] [OPTION of `pffbench run` …]
#
# `jobs/submit scaling-strong --nodes 4` submits the whole series. With PFFBENCH_ONE_ALLOCATION=1 one job steps down from
# all its nodes to one: fewer waits in the queue, but nodes that idle are paid for.
set -euo pipefail
PFFBENCH_HOME=${PFFBENCH_HOME:-${SLURM_SUBMIT_DIR:?submit this script with sbatch or jobs/submit}}
# shellcheck source=jobs/lib.sh
. "$PFFBENCH_HOME/jobs/lib.sh"
begin "$@"

if [[ ${1:--} == -* ]]; then set -- "$PFFBENCH_HOME/configs/hyperslab-strong.yaml" "$@"; fi
series=$NODES
if [[ ${PFFBENCH_ONE_ALLOCATION:-0} == 1 ]]; then series=$(chain "$NODES" | tac); fi
RUNS=$(wc -w <<<"$series")
for nodes in $series; do run scaling-strong "$nodes" "$@"; done
