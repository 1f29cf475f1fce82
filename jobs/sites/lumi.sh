# shellcheck shell=bash disable=SC2034  # the variables are read by jobs/lib.sh and jobs/submit
# LUMI-C (2 × 64 cores). From public documentation, not tested there: partition `standard` gives whole nodes; the MPI is
# Cray MPICH; /scratch/PROJECT is Lustre, where PROJECT is the account (project_46…); nodes have no disk, /tmp is memory.
# Python environments of many small files are unwelcome on Lustre: stage (PFFBENCH_STAGE=1), or use a container.

SITE_SBATCH=(--partition=standard --cpus-per-task=1)
SITE_TASKS_PER_NODE=128
SITE_MPI=cray_shasta
SITE_SRUN=(--cpu-bind=cores --hint=nomultithread)
SITE_LOCAL=/tmp
SITE_DROP_HOOK=

site_environment() { module load LUMI partition/C PrgEnv-gnu cray-python cray-hdf5-parallel cray-netcdf-hdf5parallel; }
site_scratch() { echo "${SLURM_JOB_ACCOUNT:+/scratch/$SLURM_JOB_ACCOUNT}"; }
site_stripe() { lustre_stripe "$@"; }
