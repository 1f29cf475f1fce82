# shellcheck shell=bash disable=SC2034  # the variables are read by jobs/lib.sh, jobs/striping.sh and jobs/submit
# LLNL El Capitan, Tuolumne and other machines with MI300A and Flux (4 × 24 cores, 12 of them kept by the system: 84 ranks).
# From public documentation, not tested there: jobs are Flux instances; the MPI is Cray MPICH; queues are pbatch and pdebug
# (--partition); /p/lustre5 is Lustre; a Rabbit (node-local or Lustre for one job) is asked for with SITE_SUBMIT of a
# profile of your own: -S dw=….

SITE_SCHEDULER=flux
SITE_SUBMIT=(--queue=pdebug)
SITE_JOBS=
SITE_TASKS_PER_NODE=84
SITE_MPI=auto
SITE_LAUNCH=(-o cpu-affinity=per-task)
SITE_LOCAL=/tmp
SITE_DROP_HOOK=
SITE_STRIPING=lustre
SITE_MOST_STRIPES=
SITE_STRIPE_POOL=

site_environment() {
    module load PrgEnv-gnu cray-python cray-hdf5-parallel cray-netcdf-hdf5parallel || return
    # The modules' own libraries, not the defaults of the system, are those that were built with.
    export LD_LIBRARY_PATH=$CRAY_LD_LIBRARY_PATH:${LD_LIBRARY_PATH:-}
}
site_scratch() { echo "/p/lustre5/$(id -un)"; }
