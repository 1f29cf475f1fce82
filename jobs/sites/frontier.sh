# shellcheck shell=bash disable=SC2034  # the variables are read by jobs/lib.sh and jobs/submit
# OLCF Frontier (64 cores, 8 of them kept by the system unless asked for: 56 ranks). From public documentation, not
# tested there: whole nodes only; the MPI is Cray MPICH; the home directory is read-only on compute nodes, so checkout,
# environment and results belong on Orion (Lustre); nodes have NVMe disks in /mnt/bb/$USER when asked for with -C nvme.

SITE_SBATCH=(--partition=batch --constraint=nvme)
SITE_TASKS_PER_NODE=56
SITE_MPI=cray_shasta
SITE_SRUN=(--cpu-bind=cores)
SITE_LOCAL=/mnt/bb/$(id -un)
SITE_DROP_HOOK=

site_environment() { module load PrgEnv-gnu cray-python cray-hdf5-parallel cray-netcdf-hdf5parallel; }

# The project's own directories: MEMBERWORK is set at login, the account names the project.
site_scratch() { echo "${MEMBERWORK:+$MEMBERWORK/${SLURM_JOB_ACCOUNT,,}}"; }
site_stripe() { lustre_stripe "$@"; }
