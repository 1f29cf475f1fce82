"""The facts that the checks judge, gathered from all ranks."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import msgspec

from pffbench.backends.registry import installed
from pffbench.doctor.installation import Installation, find_installation
from pffbench.doctor.stack import Attempt
from pffbench.mpi import open_file
from pffbench.mpi.agreement import AgreedStep
from pffbench.mpi.topology import Team
from pffbench.observe.clock import Floor
from pffbench.provenance.binding import rank_facts
from pffbench.provenance.facts import Facts
from pffbench.provenance.node import host_facts
from pffbench.provenance.software import software_facts
from pffbench.storage.scratch import scratch_parent

#: Libraries that the package depends on. h5py comes before netCDF4: the first to load HDF5
#: decides which copy the process uses.
REQUIRED = ("mpi4py", "numpy", "h5py", "netCDF4", "zarr", "numcodecs")


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """What the checks judge, as rank 0 sees it where nothing else is said."""

    installation: Installation
    #: Result of `software_facts`.
    software: dict[str, Any]
    #: The required libraries that fail on any rank: name → error → hosts.
    errors: Mapping[str, Mapping[str, Sequence[str]]] = {}
    #: Result of `rank_facts` of each rank, and its node.
    ranks: Sequence[Facts] = ()
    nodes: Sequence[int] = ()
    #: Result of `host_facts` of each node.
    hosts: Mapping[int, Facts] = {}
    environ: Mapping[str, str] = {}
    #: Why MPI is not in this process; empty if it is.
    no_mpi: str = ""
    #: Name of the MPI library; empty if it is not known.
    vendor: str = ""
    #: The scratch parent, which need not exist yet.
    scratch: str = ""
    #: Hosts that do not see the scratch directory that rank 0 has made.
    blind: Sequence[str] = ()
    #: Reasons of locks that could not be taken; and, for each process that tried to share those
    #: that were taken, whether it is on another node and the result of each kind.
    refused: Mapping[str, str] = {}
    tries: Sequence[tuple[bool, Mapping[str, str]]] = ()
    #: Result of `mpi_io_facts` for the scratch directory.
    mpi_io: Facts | None = None
    #: Part of a file there that stayed in the page cache after it was evicted.
    kept_in_cache: float | None = None
    floor: Floor | None = None
    #: Outcomes of trials of known corruptions, if they were asked for.
    attempts: Sequence[Attempt] = ()

    @property
    def libraries(self) -> Mapping[str, Mapping[str, Any]]:
        """Version and build of each required library, by import name."""
        libraries: Mapping[str, Mapping[str, Any]] = self.software["libraries"]
        return libraries

    def mapped(self, library: str) -> list[str]:
        """Return the files of a C library in the process."""
        return list(self.software["loaded"].get(library, ()))


def look_around(team: Team, given: str | None, no_mpi: str, *, imports: bool) -> Subject | None:
    """Gather facts of all ranks and nodes on rank 0; collective, None elsewhere.

    Parameters
    ----------
    team : Team
        The ranks.
    given : str, optional
        The scratch parent that the user named.
    no_mpi : str
        Why MPI is not in this process; empty if it is.
    imports : bool
        Whether libraries may be imported.
    """
    with AgreedStep(team.comm, "looking around"):
        errors = {name: text for name in REQUIRED if (text := _error_of(name, imports=imports))}
        here = (rank_facts(), host_facts() if team.is_leader else None, errors)
    everywhere = team.comm.gather(here)
    if everywhere is None:
        return None
    failing: dict[str, dict[str, list[str]]] = {}
    for facts, _, found in everywhere:
        for name, error in found.items():
            failing.setdefault(name, {}).setdefault(error, []).append(str(facts["host"]))
    nodes = team.topology.nodes
    return Subject(
        installation=find_installation(),
        software=software_facts(REQUIRED),
        errors=failing,
        ranks=[facts for facts, _, _ in everywhere],
        nodes=nodes,
        hosts={node: facts for node, (_, facts, _) in zip(nodes, everywhere, strict=True) if facts},
        environ=os.environ,
        no_mpi=no_mpi,
        vendor="" if no_mpi else open_file.mpi().get_vendor()[0],
        scratch=scratch_parent(given)[0],
    )


def _error_of(library: str, *, imports: bool) -> str:
    """Return why a library cannot be imported; empty if it can, as far as that is known."""
    if not imports:  # the metadata may outlive the package
        there = find_spec(library) is not None and installed(library) is not None
        return "" if there else "no such package"
    try:
        # `import mpi4py` alone loads no MPI library and so proves nothing.
        import_module("mpi4py.MPI" if library == "mpi4py" else library)
    except Exception as error:  # noqa: BLE001 -- a broken library raises anything
        return f"{type(error).__name__}: {error}"
    return ""
