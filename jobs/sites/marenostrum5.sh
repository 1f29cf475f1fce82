# shellcheck shell=bash disable=SC2034  # the variables are read by jobs/lib.sh, jobs/striping.sh and jobs/submit
# BSC MareNostrum 5, general purpose partition (2 × 56 cores). From public documentation, not tested there: jobs are not to
# run from the home directory, but from /gpfs/projects or /gpfs/scratch; all are GPFS, which has no striping to set; each
# node has a disk of its own in $TMPDIR; a job needs an account and a QOS (gp_debug, gp_bsccs, gp_resa, …: --qos). Nodes
# reach no network outside: make the environment where `make env` finds packages.

SITE_SCHEDULER=slurm
SITE_SUBMIT=(--qos=gp_debug --cpus-per-task=1)
SITE_JOBS=
SITE_TASKS_PER_NODE=112
SITE_MPI=auto
SITE_LAUNCH=(--cpu-bind=cores)
SITE_LOCAL=${TMPDIR:-/tmp}
SITE_DROP_HOOK=
SITE_STRIPING=
SITE_MOST_STRIPES=
SITE_STRIPE_POOL=

# The default modules are Intel's.
site_environment() {
    local hdf5=1.14.1-2 netcdf=c-4.9.2_fortran-4.6.1_cxx4-4.3.1 pnetcdf=1.12.3
    module purge && module load gcc/12.3.0 openmpi/4.1.5-gcc "hdf5/$hdf5-gcc-openmpi" "pnetcdf/$pnetcdf-gcc-openmpi" \
        "netcdf/${netcdf}_hdf5-${hdf5}_pnetcdf-$pnetcdf-gcc-openmpi" python/3.12.1-gcc
}

# The group's directory; a user's own in it.
site_scratch() { echo "/gpfs/scratch/$(id -gn)/$(id -un)"; }
