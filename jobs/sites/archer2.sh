# shellcheck shell=bash disable=SC2034  # the variables are read by jobs/lib.sh and jobs/submit
# ARCHER2 (2 × 64 cores). From public documentation, not tested there: partition and QOS are both needed; the MPI is Cray
# MPICH; /home is not on the compute nodes, so checkout, environment and results belong on Lustre, where each user has the
# same path as at home below another root (home/PROJECT/PROJECT/USER, work/PROJECT/PROJECT/USER); /tmp is memory.

SITE_SBATCH=(--partition=standard --qos=standard --cpus-per-task=1)
SITE_TASKS_PER_NODE=128
SITE_MPI=cray_shasta
SITE_SRUN=(--distribution=block:block --hint=nomultithread)
SITE_LOCAL=/tmp
SITE_DROP_HOOK=

site_environment() { module load PrgEnv-gnu cray-python cray-hdf5-parallel cray-netcdf-hdf5parallel; }

# The user's directory on Lustre: that at home with the root exchanged.
site_scratch() { if [[ $HOME == /home/* ]]; then echo "${HOME/#\/home/\/work}"; fi; }
site_stripe() { lustre_stripe "$@"; }
