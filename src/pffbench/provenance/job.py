"""Facts about the job as a whole: command, environment, software, batch job, file system."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pffbench.parallel.single import lack_of_mpi
from pffbench.provenance.batch import flux_facts, pbs_facts
from pffbench.provenance.facts import Facts
from pffbench.provenance.mpiio import mpi_io_facts
from pffbench.provenance.slurm import slurm_facts
from pffbench.provenance.software import software_facts
from pffbench.provenance.spack import find_environment, spack_facts
from pffbench.storage.filesystem import filesystem

if TYPE_CHECKING:
    from mpi4py import MPI


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
_NOISE = re.compile(
    "OMPI_MCA_orte_|OMPI_FILE_|PMIX_(SERVER|DSTORE|NAMESPACE|ID$|SECURITY|SYSTEM|BFROP|GDS)"
    "|SLURM_(SRUN_COMM|STEP_LAUNCHER|LAUNCH_NODE|PMIX|TASK_PID|WORKING_CLUSTER|PRIO_PROCESS)"
)
_SECRET = re.compile("TOKEN|KEY|PASSW|SECRET|COOKIE|CREDENTIAL|JWT", re.IGNORECASE)
_HIDDEN = "<hidden>"
# Who ran it and on whose account. Batch systems also tell directories, which name the same.
_PERSONAL = re.compile(
    "(SLURM|SLURMD|PBS|PBS_O|FLUX)_([A-Z_]*_)?"
    "(ACCOUNT|USER|UID|GID|GROUP|LOGNAME|HOME|MAIL|PROJECT|SUBMIT_DIR|WORKDIR|JOBDIR)$"
)


def environment_facts(environ: Mapping[str, str], *, personal: bool = False) -> Facts:
    """Pick the environment variables that change how I/O, MPI or Python behave.

    Values of variables whose name looks like a secret are replaced by ``<hidden>``, and those
    that tell who ran a job on whose account, unless they are asked for.

    Parameters
    ----------
    environ : mapping
        An environment, such as `os.environ`.
    personal : bool
        Whether account and user of the batch job are kept.
    """

    def hidden(name: str) -> bool:
        return bool(_SECRET.search(name) or (_PERSONAL.match(name) and not personal))

    return {
        name: _HIDDEN if hidden(name) else value
        for name, value in sorted(environ.items())
        if (name.startswith(_PREFIXES) and not _NOISE.match(name)) or name in _NAMES
    }


def job_facts(
    comm: MPI.Intracomm, libraries: Iterable[str], scratch: str, *, personal: bool
) -> dict[str, Any]:
    """Find what is the same for all ranks and hosts of a job; rank 0 asks.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        All ranks, which may be one without MPI; nothing here is collective.
    libraries : iterable of str
        Import names of what the cases use.
    scratch : str
        The scratch directory.
    personal : bool
        Whether account and user of the batch job are kept.
    """
    used = ["mpi4py", "h5py", *libraries]  # h5py writes ranks.h5 in every run
    return {
        "software": software_facts(dict.fromkeys(used)),
        "mpi_io": _mpi_io(comm, scratch),
        "filesystem": msgspec.structs.asdict(filesystem(scratch)),
        "environment": environment_facts(os.environ, personal=personal),
        "slurm": slurm_facts(os.environ, personal=personal),
        "pbs": pbs_facts(os.environ, personal=personal),
        "flux": flux_facts(os.environ),
        "spack": spack_facts(find_environment(os.environ, Path(sys.prefix))),
    }


def _mpi_io(comm: MPI.Intracomm, scratch: str) -> Facts:
    """Identify the MPI-IO of a run; ``missing`` says why a run of one process has no MPI."""
    if missing := lack_of_mpi(comm):
        return {"missing": missing}
    from mpi4py import MPI

    return mpi_io_facts(MPI.COMM_SELF, scratch)
