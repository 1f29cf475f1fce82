"""Collection of the provenance of a run, and the environment variables in it.

Each function returns plain values that can be written as JSON. None raises because a fact cannot be
found: it records None, or the reason as text. Facts of nodes, software and MPI-IO are in
`pffbench.provenance.node`, `pffbench.provenance.software` and `pffbench.provenance.mpiio`.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pffbench.backends.registry import backend_class
from pffbench.parallel.collectives import largest
from pffbench.parallel.topology import Team
from pffbench.provenance.facts import Facts
from pffbench.provenance.mpiio import hints_of, io_component, mpi_io_facts
from pffbench.provenance.node import host_facts, rank_facts
from pffbench.provenance.slurm import slurm_facts
from pffbench.provenance.software import software_facts
from pffbench.provenance.spack import find_environment, spack_facts
from pffbench.storage.filesystem import filesystem
from pffbench.workloads.registry import workload

if TYPE_CHECKING:
    from pffbench.experiment.plan import Plan


__all__ = [
    "environment_facts",
    "hints_of",
    "host_facts",
    "io_component",
    "job_facts",
    "mpi_io_facts",
    "rank_facts",
    "slurm_facts",
    "software_facts",
]

_PREFIXES = (
    "SLURM_",
    "SLURMD_",
    "PBS_",
    "FLUX_",  # batch systems
    "OMPI_",
    "OPAL_",
    "PMIX_",
    "PMI_",
    "PRTE_",
    "MPICH_",
    "MPIR_CVAR_",
    "HYDRA_",
    "I_MPI_",
    "MV2_",
    "PALS_",
    "FI_",
    "UCX_",
    "ROMIO_",
    "CRAY_",  # MPI and its networks
    "HDF5_",
    "H5",
    "NETCDF_",
    "NC_",
    "PNETCDF_",
    "ZARR_",
    "BLOSC_",
    "TENSORSTORE_",  # formats
    "LUSTRE_",
    "LLAPI_",
    "LIBLUSTREAPI_",
    "GPFS_",
    "BEEGFS_",
    "DARSHAN_",  # storage
    "OMP_",
    "OPENBLAS_",
    "MKL_",
    "KMP_",
    "GOMP_",  # threads
    "PFFBENCH_",
    "SPACK_",
    "PYTHON",
    "MALLOC_",
)
_NAMES = {"LOADEDMODULES", "VIRTUAL_ENV", "CONDA_PREFIX", "LD_PRELOAD", "LD_LIBRARY_PATH"}
# Launchers' variables about sockets, sessions and job numbers are of no use later.
_NOISE = re.compile(
    "OMPI_MCA_orte_|OMPI_FILE_|PMIX_(SERVER|DSTORE|NAMESPACE|ID$|SECURITY|SYSTEM|BFROP|GDS)"
    "|SLURM_(SRUN_COMM|STEP_LAUNCHER|LAUNCH_NODE|PMIX|TASK_PID|WORKING_CLUSTER|PRIO_PROCESS)"
)
_SECRET = re.compile("TOKEN|KEY|PASSW|SECRET|COOKIE|CREDENTIAL|JWT", re.IGNORECASE)
_HIDDEN = "<hidden>"

# User and account of the run. Directories that batch systems export contain the same names.
_PERSONAL = re.compile(
    "(SLURM|SLURMD|PBS|PBS_O|FLUX)_([A-Z_]*_)?"
    "(ACCOUNT|USER|UID|GID|GROUP|LOGNAME|HOME|MAIL|PROJECT|SUBMIT_DIR|WORKDIR|JOBDIR)$"
)


def environment_facts(environ: Mapping[str, str], *, personal: bool = False) -> Facts:
    """Pick the environment variables that change how I/O, MPI or Python behave.

    Values of variables whose name suggests a secret are replaced by ``<hidden>``, and so are those
    that identify user and account, unless requested.

    Parameters
    ----------
    environ : mapping
        Whether user and account of the batch job are kept.
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


def job_facts(libraries: Iterable[str], scratch: str, *, personal: bool) -> dict[str, Any]:
    """Collect the facts that all ranks and hosts of a job share; called on rank 0.

    Parameters
    ----------
    libraries : iterable of str
        Import names of the libraries that the cases use.
    scratch : str
        The scratch directory.
    personal : bool
        Whether user and account of the batch job are kept.
    """
    from mpi4py import MPI

    used = ["mpi4py", "h5py", *libraries]  # h5py writes ranks.h5 in every run
    return {
        "software": software_facts(dict.fromkeys(used)),
        "mpi_io": mpi_io_facts(MPI.COMM_SELF, scratch),
        "filesystem": vars(filesystem(scratch)),
        "environment": environment_facts(os.environ, personal=personal),
        "slurm": slurm_facts(os.environ, personal=personal),
        "spack": spack_facts(find_environment(os.environ, Path(sys.prefix))),
    }


def collect_provenance(
    team: Team, plan: Plan, scratch: str, *, personal: bool
) -> dict[str, Any] | None:
    """Collect the provenance of a run on rank 0; collective, None on the other ranks.

    User and account of the batch job are included only if ``personal`` is set.

    The libraries of all backends of the plan are imported here, so that no phase includes the
    import and their versions are known.
    """
    begin = time.perf_counter()
    libraries: list[str] = []
    for name in sorted({case.parameters.backend for case in plan.cases}):
        kind = backend_class(name)
        kind(kind.options_type(), "defaults")
        libraries += kind.libraries
    for case in plan.cases:
        p = case.parameters
        optional = backend_class(p.backend).optional_libraries(p, case.options)
        for library in (*optional, *workload(p.workload).libraries(p)):
            with suppress(ImportError):  # the case itself fails and reports the reason
                importlib.import_module(library)
            libraries.append(library)
    imported = largest(team.comm, time.perf_counter() - begin)
    ranks = team.comm.gather(rank_facts())
    hosts = team.comm.gather(_host_facts() if team.is_leader else None)
    if ranks is None or hosts is None:
        return None

    return {
        "import_seconds": imported,
        **job_facts(libraries, scratch, personal=personal),
        "ranks": ranks,
        "hosts": [facts for facts in hosts if facts is not None],
    }


def _host_facts() -> Facts:
    from pffbench.provenance.node import host_facts  # needed by one rank per node only

    return host_facts()
