# shellcheck shell=bash disable=SC2034  # the variables are read by jobs/lib.sh and jobs/submit
# ARCHER2 (2 × 64 cores). From public documentation, not tested there: partition and QOS are both needed; the MPI is Cray
# MPICH; /home is not on the compute nodes, so checkout, environment and results belong in /work (Lustre), below
# /work/PROJECT/PROJECT/USER; /tmp is memory.

SITE_SBATCH=(--partition=standard --qos=standard --cpus-per-task=1)
SITE_TASKS_PER_NODE=128
SITE_MPI=cray_shasta
SITE_SRUN=(--distribution=block:block --hint=nomultithread)
SITE_LOCAL=/tmp
SITE_DROP_HOOK=

site_environment() { module load PrgEnv-gnu cray-python cray-hdf5-parallel cray-netcdf-hdf5parallel; }

# An account such as z00-budget belongs to the project z00.
site_scratch() {
    local project=${SLURM_JOB_ACCOUNT%%-*}
    echo "${project:+/work/$project/$project/$USER}"
}
site_stripe() { lustre_stripe "$@"; }
