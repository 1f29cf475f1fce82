# shellcheck shell=bash disable=SC2034  # the variables are read by jobs/lib.sh, jobs/striping.sh and jobs/submit
# JUPITER Booster (4 × GH200 on a node: 4 × 72 cores, aarch64). From public documentation, not tested there: as JUWELS,
# with ParaStation MPI and stages that are named with their year, on ARM: an environment or a container made on x86_64 does
# not run, so `make env` belongs on a login node of JUPITER. $SCRATCH is GPFS (ExaFLASH, ExaSTORE): no striping to set.

SITE_SCHEDULER=slurm
SITE_SUBMIT=(--partition=booster --cpus-per-task=1)
SITE_TASKS_PER_NODE=72
SITE_MPI=default
SITE_LAUNCH=(--cpu-bind=cores)
SITE_LOCAL=/tmp
SITE_DROP_HOOK=
SITE_STRIPING=
SITE_MOST_STRIPES=
SITE_STRIPE_POOL=

site_environment() {
    if [[ $(uname -m) != aarch64 ]]; then
        echo "JUPITER's nodes are aarch64, this one is $(uname -m)" >&2
        return 1
    fi
    module load "Stages/${PFFBENCH_STAGES:-2025}" && module load GCC ParaStationMPI Python mpi4py h5py netcdf4-python
}
site_scratch() { echo "${SCRATCH:-}"; }
