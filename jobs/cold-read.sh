#!/bin/bash
#SBATCH --job-name=cold-read
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --time=00:30:00
#SBATCH --exclusive
#SBATCH --dependency=singleton
#SBATCH --output=%x-%j.out
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=USR1@120
# Cold reads, which no node's memory can serve: half of the nodes write, the others read.
#
#   sbatch -N 4 jobs/cold-read.sh [EXPERIMENT] [OPTION of `pffbench run` …]
#
# The files of all repetitions are kept until they are read.

# As in jobs/run.sh.
if [[ -r .build/env.sh ]]; then . .build/env.sh; fi

out=${PFFBENCH_OUT:-pffbench-results/$SLURM_JOB_NAME-$SLURM_JOB_ID}
half=$((SLURM_JOB_NUM_NODES / 2))
on_half=(srun --kill-on-bad-exit=0 --wait=60 --nodes="$half" --ntasks=$((half * SLURM_NTASKS_PER_NODE)))
run=(python3 -m pffbench run --batch --out "$out" "$@" --set cache=separate)

for ((i = 0; i < 2 * ${SLURM_RESTART_COUNT:-0}; i++)); do srun --mpi=none true; done

"${on_half[@]}" --relative=0 "${run[@]}" --stage write && "${on_half[@]}" --relative="$half" "${run[@]}" --stage read
python3 -m pffbench report --batch $? "$out"
