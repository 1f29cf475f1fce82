"""The type of collected facts, values that can be written as JSON, and those of the environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

Fact: TypeAlias = "bool | int | float | str | list[Fact] | dict[str, Fact] | None"
Facts: TypeAlias = dict[str, Fact]

_PREFIXES = (
    "SLURM_", "SLURMD_", "PBS_", "FLUX_",  # batch systems
    "OMPI_", "OPAL_", "PMIX_", "PMI_", "PRTE_", "MPICH_", "MPIR_CVAR_", "HYDRA_", "I_MPI_", "MV2_",
    "PALS_", "FI_", "UCX_", "ROMIO_", "CRAY_",  # MPI and its networks
    "HDF5_", "H5", "NETCDF_", "NC_", "PNETCDF_", "ZARR_", "BLOSC_", "TENSORSTORE_",  # formats
    "LUSTRE_", "LLAPI_", "LIBLUSTREAPI_", "GPFS_", "BEEGFS_", "DARSHAN_",  # storage
    "OMP_", "OPENBLAS_", "MKL_", "KMP_", "GOMP_",  # threads
    "PFFBENCH_", "SPACK_", "PYTHON", "MALLOC_",
)  # fmt: skip
_NAMES = {"LOADEDMODULES", "VIRTUAL_ENV", "CONDA_PREFIX", "LD_PRELOAD", "LD_LIBRARY_PATH"}
# What launchers tell their ranks about sockets, sessions and job numbers matters to nobody later.
_NOISE = (
    "OMPI_MCA_orte_|OMPI_FILE_|PMIX_(SERVER|DSTORE|NAMESPACE|ID$|SECURITY|SYSTEM|BFROP|GDS)"
    "|SLURM_(SRUN_COMM|STEP_LAUNCHER|LAUNCH_NODE|PMIX|TASK_PID|WORKING_CLUSTER|PRIO_PROCESS)"
)
_SECRET = "(?i)TOKEN|KEY|PASSW|SECRET|COOKIE|CREDENTIAL|JWT"
HIDDEN = "<hidden>"
# Who ran it and on whose account. Batch systems also tell directories, which name the same.
_PERSONAL = (
    "(SLURM|SLURMD|PBS|PBS_O|FLUX)_([A-Z_]*_)?"
    "(ACCOUNT|USER|UID|GID|GROUP|LOGNAME|HOME|MAIL|PROJECT|SUBMIT_DIR|WORKDIR|JOBDIR)$"
)


def environment_facts(environ: Mapping[str, str]) -> Facts:
    """Pick the environment variables that change how I/O, MPI or Python behave.

    Values of variables whose name looks like a secret are replaced by ``<hidden>``, and those
    that tell who ran a job on whose account.

    Parameters
    ----------
    environ : mapping
        An environment, such as `os.environ`.
    """
    return {
        name: HIDDEN if re.search(_SECRET, name) or re.match(_PERSONAL, name) else value
        for name, value in sorted(environ.items())
        if (name.startswith(_PREFIXES) and not re.match(_NOISE, name)) or name in _NAMES
    }
