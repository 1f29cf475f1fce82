# shellcheck shell=sh
# Source this: it lets MPI start more ranks than there are cores, in containers, and as root in CI.
# A variable that is already set keeps its value.

# Open MPI (also 5) runs as root only with both variables, and a container in CI has no other user.
if [ "$(id -u)" = 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT="${OMPI_ALLOW_RUN_AS_ROOT:-1}"
    export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="${OMPI_ALLOW_RUN_AS_ROOT_CONFIRM:-1}"
fi

# A laptop or a CI machine has fewer cores than the tests have ranks. Inside a batch job the placement by the
# scheduler is measured, so the defaults of the MPI library apply there.
if [ -z "${SLURM_JOB_ID:-}${PBS_JOBID:-}${LSB_JOBID:-}${COBALT_JOBID:-}" ]; then
    # Open MPI 4 and older.
    export OMPI_MCA_rmaps_base_oversubscribe="${OMPI_MCA_rmaps_base_oversubscribe:-1}"
    # Binding to cores that a container does not own fails, and pins two ranks to one core when there are more ranks than cores.
    export OMPI_MCA_hwloc_base_binding_policy="${OMPI_MCA_hwloc_base_binding_policy:-none}"
    # The same two for Open MPI 5, which starts its ranks through PRRTE.
    export PRTE_MCA_rmaps_default_mapping_policy="${PRTE_MCA_rmaps_default_mapping_policy:-:oversubscribe}"
    export PRTE_MCA_hwloc_default_binding_policy="${PRTE_MCA_hwloc_default_binding_policy:-none}"
    # A waiting rank must give its core to a working one. Otherwise a barrier of 16 ranks on 2 cores takes hundreds of times
    # longer.
    export OMPI_MCA_mpi_yield_when_idle="${OMPI_MCA_mpi_yield_when_idle:-1}"
fi

# One thread per rank, because hidden thread pools would compete with the ranks for the cores.
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
export OPENBLAS_NUM_THREADS="${OPENBLAS_NUM_THREADS:-1}"
export MKL_NUM_THREADS="${MKL_NUM_THREADS:-1}"
export NUMEXPR_MAX_THREADS="${NUMEXPR_MAX_THREADS:-1}"
# BLOSC_NTHREADS is not set. Blosc has one thread by default, and the variable would override the keys of experiments.
