# shellcheck shell=bash disable=SC2034  # the variables are read by jobs/lib.sh, jobs/striping.sh and jobs/submit
# JUPITER Booster (4 × GH200 on a node: 4 × 72 cores, aarch64). From public documentation, not tested there, and from public
# job scripts: as JUWELS, with ParaStation MPI and stages that are named with their year (PFFBENCH_STAGES), on ARM: an
# environment or a container made on x86_64 does not run, so `make env` belongs on a login node of JUPITER. Jobs ask for the
# GPUs of their nodes. psslurm takes the place of slurmd on the nodes; whether sbcast (PFFBENCH_STAGE=1) works there was not
# tried. $SCRATCH is GPFS (ExaFLASH, ExaSTORE): no striping to set.

SITE_SCHEDULER=slurm
SITE_SUBMIT=(--partition=booster --gres=gpu:4 --cpus-per-task=1)
SITE_JOBS=
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
    module load "Stages/${PFFBENCH_STAGES:-2026}" && module load GCC ParaStationMPI Python mpi4py h5py netcdf4-python
}
site_scratch() { echo "${SCRATCH:-}"; }
