# shellcheck shell=bash disable=SC2034  # the variables are read by jobs/lib.sh and jobs/submit
# Any cluster: nothing is loaded, the environment of the shell that submitted is used, and Slurm's defaults hold.
#
# Copy this file to make a profile of your own. All variables and functions must be there.

SITE_SBATCH=()                  # options that sbatch needs here, such as a constraint; jobs/submit adds them
SITE_TASKS_PER_NODE=            # for jobs/submit; empty: what the job script says
SITE_MPI=auto                   # of srun --mpi=…; auto: by the MPI library; default: the cluster's own choice
SITE_SRUN=()                    # binding and the like
SITE_LOCAL=${TMPDIR:-/tmp}      # a directory of each node's own, for staging
SITE_DROP_HOOK=                 # a command that drops a node's page cache, where users have one

# Modules, Spack or a virtual environment; the environment of `make env` is found without it.
site_environment() { :; }

# Print the directory to make files in, on the file system under test; all nodes must see it.
site_scratch() { echo "${SCRATCH:-$SLURM_SUBMIT_DIR}"; }

# site_stripe DIR COUNT: spread new files of a directory over COUNT servers; called when PFFBENCH_STRIPES is set.
site_stripe() { lustre_stripe "$@"; }
