"""Facts about the job as a whole: command, environment, software, batch job, file system."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from pffbench.mpi.single import lack_of_mpi
from pffbench.provenance.batch import DESCRIPTIONS, scheduler_facts
from pffbench.provenance.facts import Facts, environment_facts
from pffbench.provenance.mpiio import mpi_io_facts
from pffbench.provenance.software import software_facts
from pffbench.provenance.spack import find_environment, spack_facts
from pffbench.storage.filesystem import filesystem

if TYPE_CHECKING:
    from mpi4py import MPI


def job_facts(comm: MPI.Intracomm, libraries: Iterable[str], scratch: str) -> dict[str, Any]:
    """Find what is the same for all ranks and hosts of a job; rank 0 asks.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        All ranks, which may be one without MPI; nothing here is collective.
    libraries : iterable of str
        Import names of what the cases use.
    scratch : str
        The scratch directory.
    """
    used = ["mpi4py", "h5py", *libraries]  # h5py writes ranks.h5 in every run
    return {
        "software": software_facts(dict.fromkeys(used)),
        "mpi_io": _mpi_io(comm, scratch),
        "filesystem": msgspec.structs.asdict(filesystem(scratch)),
        "environment": environment_facts(os.environ),
        **{name: scheduler_facts(name, os.environ) for name in DESCRIPTIONS},
        "spack": spack_facts(find_environment(os.environ, Path(sys.prefix))),
    }


def _mpi_io(comm: MPI.Intracomm, scratch: str) -> Facts:
    """Identify the MPI-IO of a run; ``missing`` says why a run of one process has no MPI."""
    if missing := lack_of_mpi(comm):
        return {"missing": missing}
    from mpi4py import MPI

    return mpi_io_facts(MPI.COMM_SELF, scratch)
