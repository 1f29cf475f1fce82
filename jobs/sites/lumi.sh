# shellcheck shell=bash disable=SC2034  # the variables are read by jobs/lib.sh, jobs/striping.sh and jobs/submit
# LUMI-C (2 × 64 cores). From public documentation, not tested there: partition `standard` gives whole nodes, and all of their
# memory when asked (--mem=0); in the stack LUMI, cpeGNU takes the place of PrgEnv-gnu; the MPI is Cray MPICH;
# /scratch/PROJECT is Lustre, where PROJECT is the account (project_46…); nodes have no disk, /tmp is memory.
# LUMI discourages Python environments of many files on its file systems, such as those of `make env`: stage them
# (PFFBENCH_STAGE=1).

SITE_SCHEDULER=slurm
SITE_SUBMIT=(--partition=standard --cpus-per-task=1 --mem=0)
SITE_JOBS=
SITE_TASKS_PER_NODE=128
SITE_MPI=cray_shasta
SITE_LAUNCH=(--cpu-bind=cores --hint=nomultithread)
SITE_LOCAL=/tmp
SITE_DROP_HOOK=
SITE_STRIPING=lustre
SITE_MOST_STRIPES=
SITE_STRIPE_POOL=

site_environment() {
    module load LUMI partition/C cpeGNU cray-python cray-hdf5-parallel cray-netcdf-hdf5parallel || return
    # The modules' own libraries, not the defaults of the system, are those that were built with.
    export LD_LIBRARY_PATH=$CRAY_LD_LIBRARY_PATH:${LD_LIBRARY_PATH:-}
}
site_scratch() { echo "${SLURM_JOB_ACCOUNT:+/scratch/$SLURM_JOB_ACCOUNT}"; }
