# shellcheck shell=bash disable=SC2034  # the variables are read by jobs/lib.sh, jobs/striping.sh and jobs/submit
# JUWELS Cluster (2 × 24 cores). From public documentation, not tested there: the usual MPI is ParaStation MPI, for which
# the site's default of srun --mpi is made; `jutil env activate -p PROJECT` sets $SCRATCH, a GPFS file system, which has
# no striping to set and a cache of its own (page pool) that pffbench does not see; nodes have no disk, /tmp is memory.
# Stages of modules are named with their year; PFFBENCH_STAGES names another one than this.

SITE_SCHEDULER=slurm
SITE_SUBMIT=(--partition=batch --cpus-per-task=1)
SITE_JOBS=
SITE_TASKS_PER_NODE=48
SITE_MPI=default
SITE_LAUNCH=(--cpu-bind=cores)
SITE_LOCAL=/tmp
SITE_DROP_HOOK=
SITE_STRIPING=
SITE_MOST_STRIPES=
SITE_STRIPE_POOL=

site_environment() {
    module load "Stages/${PFFBENCH_STAGES:-2025}" && module load GCC ParaStationMPI Python mpi4py h5py netcdf4-python
}
site_scratch() { echo "${SCRATCH:-}"; }
