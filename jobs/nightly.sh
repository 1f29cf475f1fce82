#!/bin/bash
#SBATCH --job-name=nightly
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=4
#SBATCH --time=00:30:00
#SBATCH --exclusive
#SBATCH --dependency=singleton
#SBATCH --output=%x-%j.out
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=USR1@120
#
# A regression run: the experiment for it, or another one, compared with the first seven nights that passed:
#
#   sbatch -N 4 jobs/nightly.sh [EXPERIMENT [OPTION of `pffbench run` …]]
#
# The job ends with the status of `pffbench compare`: 1 if something is shown to be slower, 2 if a total cannot be compared,
# 5 if the machine has changed. Nights of other experiments need another name (sbatch --job-name=…).

# As in jobs/run.sh.
if [[ -r .build/env.sh ]]; then . .build/env.sh; fi

nights=pffbench-results/$SLURM_JOB_NAME-${SLURM_JOB_NUM_NODES}n
out=${PFFBENCH_OUT:-$nights/$SLURM_JOB_ID}

for ((i = 0; i < ${SLURM_RESTART_COUNT:-0}; i++)); do srun --mpi=none true; done

srun --kill-on-bad-exit=0 --wait=60 python3 -m pffbench run --batch --out "$out" "${@:-nightly}"
python3 -m pffbench report --batch $? "$out" || exit
python3 -m pffbench compare --baseline "$nights/baseline" "$out" --fail-if-slower 20% --out "$out/compare"
