# shellcheck shell=bash disable=SC2034  # the variables are read by jobs/lib.sh, jobs/striping.sh and jobs/submit
# OLCF Frontier (64 cores, 8 of them kept by the system unless asked for: 56 ranks). From public documentation, not
# tested there: whole nodes only; the MPI is Cray MPICH; home directories can be written on compute nodes, but jobs are to
# run from Orion (Lustre); nodes have NVMe disks in /mnt/bb/$USER when asked for with -C nvme.
#
# Orion has progressive layouts: files below 512 GB are to be left as they are. Striping by hand wants the pool `capacity`
# and at most 450 servers. Darshan is loaded at login and would be measured with the program.

SITE_SCHEDULER=slurm
SITE_SUBMIT=(--partition=batch --constraint=nvme)
SITE_JOBS=
SITE_TASKS_PER_NODE=56
SITE_MPI=cray_shasta
SITE_LAUNCH=(--cpu-bind=cores)
SITE_LOCAL=/mnt/bb/$(id -un)
SITE_DROP_HOOK=
SITE_STRIPING=lustre
SITE_MOST_STRIPES=450
SITE_STRIPE_POOL=capacity

site_environment() {
    module unload darshan-runtime || return
    module load PrgEnv-gnu cray-python cray-hdf5-parallel cray-netcdf-hdf5parallel || return
    # The modules' own libraries, not the defaults of the system, are those that were built with.
    export LD_LIBRARY_PATH=$CRAY_LD_LIBRARY_PATH:${LD_LIBRARY_PATH:-}
}

# The project's own directories: MEMBERWORK is set at login, the account names the project.
site_scratch() { echo "${MEMBERWORK:+$MEMBERWORK/${SLURM_JOB_ACCOUNT,,}}"; }
