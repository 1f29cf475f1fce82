# shellcheck shell=bash disable=SC2034  # the variables are read by jobs/lib.sh, jobs/striping.sh and jobs/submit
# NERSC Perlmutter, CPU nodes (2 × 64 cores). From public documentation, not tested there:
# nodes are chosen by constraint and QOS, not by partition; the MPI is Cray MPICH; $SCRATCH is Lustre;
# 128 ranks on a node have 2 hardware threads each (-c 2) and are bound with --cpu-bind=cores.
# mpi4py must be built with the compiler wrapper `cc`, h5py and netCDF4 against the modules loaded below.

SITE_SCHEDULER=slurm
SITE_SUBMIT=(--constraint=cpu --qos=regular --licenses=SCRATCH --cpus-per-task=2)
SITE_JOBS=
SITE_TASKS_PER_NODE=128
SITE_MPI=cray_shasta
SITE_LAUNCH=(--cpu-bind=cores)
SITE_LOCAL=/tmp # in memory: the nodes have no disk
SITE_DROP_HOOK=
SITE_STRIPING=lustre
SITE_MOST_STRIPES=
SITE_STRIPE_POOL=

site_environment() {
    module load python cray-hdf5-parallel cray-netcdf-hdf5parallel || return
    # The modules' own libraries, not the defaults of the system, are those that were built with.
    export LD_LIBRARY_PATH=$CRAY_LD_LIBRARY_PATH:${LD_LIBRARY_PATH:-}
}
site_scratch() { echo "$SCRATCH"; }
