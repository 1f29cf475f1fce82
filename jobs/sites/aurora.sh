# shellcheck shell=bash disable=SC2034  # the variables are read by jobs/lib.sh, jobs/striping.sh and jobs/submit
# ALCF Aurora (PBS; 2 × 52 cores, of which cores 0 and 52 are kept by the system: 102 ranks at most, 96 here). From public
# documentation, not tested there: jobs must name the file systems they use and are to run from Flare (Lustre,
# /lus/flare/projects/PROJECT); the MPI is Aurora MPICH, its mpiexec that of PALS; /tmp is memory. Without --partition up to
# 16 nodes go to `capacity`, more to `debug-scaling` (1 h at most, one job of a user in the queue), from 256 on to `prod`.
# There is no module of netCDF-C: `make env` makes an environment without netCDF-4. For Python environments of one's own at
# scale the site has Copper; PFFBENCH_STAGE=1 does what it is for.

queue=capacity
if ((${NODES:-1} > 16)); then queue=debug-scaling; fi
if ((${NODES:-1} >= 256)); then queue=prod; fi
SITE_SCHEDULER=pbs
SITE_SUBMIT=(-l filesystems=home:flare -q "$queue")
SITE_JOBS=1
SITE_TASKS_PER_NODE=96
SITE_MPI=pals
SITE_LAUNCH=(--cpu-bind=depth --depth=1)
SITE_LOCAL=/tmp
SITE_DROP_HOOK=
SITE_STRIPING=lustre
SITE_MOST_STRIPES=160
SITE_STRIPE_POOL=

site_environment() { module load frameworks && module load hdf5; }

site_scratch() { echo "${PBS_ACCOUNT:+/lus/flare/projects/$PBS_ACCOUNT/$(id -un)}"; }
