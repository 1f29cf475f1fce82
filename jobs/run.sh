#!/bin/bash
#SBATCH --job-name=pffbench
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
# The default experiment, or any other:
#
#   sbatch -A ACCOUNT -N 4 --ntasks-per-node=16 jobs/run.sh [EXPERIMENT] [OPTION of `pffbench run` …]
# Two minutes before the time limit the ranks finish the current repetition, and the job queues itself again. Jobs with the
# same name run one after another, because two benchmarks on one file system would measure each other.

# The environment of `make env`. Load modules here, or submit from a shell whose python3 has pffbench.
if [[ -r .build/env.sh ]]; then . .build/env.sh; fi

out=${PFFBENCH_OUT:-pffbench-results/$SLURM_JOB_NAME-$SLURM_JOB_ID}

# A node that lost its power may refuse steps with numbers that this job has used there. These steps use such numbers up.
for ((i = 0; i < ${SLURM_RESTART_COUNT:-0}; i++)); do srun --mpi=none true; done

srun --kill-on-bad-exit=0 --wait=60 python3 -m pffbench run --batch --out "$out" "$@"
python3 -m pffbench report --batch $? "$out"
