# shellcheck shell=bash disable=SC2034  # the variables are read by jobs/lib.sh, jobs/striping.sh and jobs/submit
# Any cluster with PBS: nothing is loaded, the environment of the shell that submitted is used, and PBS's defaults hold.
#
# Copy this file to make a profile of your own. All variables and functions must be there.

SITE_SCHEDULER=pbs              # slurm, pbs or flux
SITE_SUBMIT=()                  # options that qsub needs here, such as a queue; jobs/submit adds them
SITE_JOBS=                      # 1: one job per submission, where a user may have no more in the queue
SITE_TASKS_PER_NODE=            # for jobs/submit; empty: what the job script says
SITE_MPI=auto                   # the kind of mpiexec: openmpi, hydra (MPICH, Intel) or pals; auto: what it says that it is
SITE_LAUNCH=()                  # of mpiexec: binding and the like
SITE_LOCAL=${TMPDIR:-/tmp}      # a directory of each node's own, for staging
SITE_DROP_HOOK=                 # a command that drops a node's page cache, where users have one
SITE_STRIPING=lustre            # empty: the file system has no striping to set
SITE_MOST_STRIPES=              # the largest number of servers that the site allows
SITE_STRIPE_POOL=               # the pool that striping by hand must name

# Modules, Spack or a virtual environment; the environment of `make env` is found without it.
site_environment() { :; }

# Print the directory to make files in, on the file system under test; all nodes must see it.
site_scratch() { echo "${SCRATCH:-$PBS_O_WORKDIR}"; }
