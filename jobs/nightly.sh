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
# A regression run: three starts of the experiment for it, or of another one, compared with the first nights:
#
#   sbatch -N 4 jobs/nightly.sh [EXPERIMENT [OPTION of `pffbench run` …]]
# The job ends with the status of `pffbench compare`: 1 if a total is shown to be slower, 2 if a total cannot be compared,
# 4 if this is not decided, 5 if the machine has changed. Nights of other experiments need another name (sbatch --job-name=…).

# As in jobs/run.sh.
if [[ -r .build/env.sh ]]; then . .build/env.sh; fi

nights=pffbench-results/$SLURM_JOB_NAME-${SLURM_JOB_NUM_NODES}n
out=${PFFBENCH_OUT:-$nights/$SLURM_JOB_ID}
# Minutes of each start. Use more if the job has a longer --time.
limit=(--max-time '9 min')

for ((i = 0; i < 3 * ${SLURM_RESTART_COUNT:-0}; i++)); do srun --mpi=none true; done

for start in "$out"/{1,2,3}; do
  srun --kill-on-bad-exit=0 --wait=60 python3 -m pffbench run --batch --out "$start" "${limit[@]}" "${@:-nightly}"
  python3 -m pffbench report --batch $? "$start" || exit
done
python3 -m pffbench compare --baseline "$nights/baseline" --fail-if-slower 20% --out "$out/compare" "$out"/{1,2,3}
