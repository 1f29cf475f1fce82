"""Collecting the provenance of a run: everything a result would be worthless without.

All facts are plain values that can be written as JSON. A fact that cannot be found is None, or the
reason as text; it raises nothing.
"""

from __future__ import annotations

import importlib
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from pffbench.backends.registry import backend_class
from pffbench.mpi.collectives import largest
from pffbench.mpi.topology import Team
from pffbench.provenance.binding import rank_facts
from pffbench.provenance.facts import Facts
from pffbench.storage.filesystem import filesystem

if TYPE_CHECKING:
    from pffbench.experiment.plan import Plan


def collect_provenance(team: Team, plan: Plan, scratch: str) -> dict[str, Any] | None:
    """Gather on rank 0 what a result would be worthless without; collective, None elsewhere.

    The libraries of all backends of the plan are imported here, so that no phase pays for it
    and their versions are known.
    """
    begin = time.perf_counter()
    libraries: list[str] = []
    for name in sorted({case.parameters.backend for case in plan.cases}):
        kind = backend_class(name)
        with suppress(Exception):  # the library is broken on this rank: the case fails, and says so
            kind(kind.options_type(), "defaults")
        libraries += kind.libraries
    for case in plan.cases:
        p = case.parameters
        optional = backend_class(p.backend).capabilities.libraries(p.codec, case.options)
        for library in (*optional, *p.libraries):
            with suppress(ImportError):  # the case itself fails, and says why
                importlib.import_module(library)
            libraries.append(library)
    imported = largest(team.comm, time.perf_counter() - begin)
    of_job: dict[str, Any] = {}
    if team.is_root:
        from pffbench.provenance.inputs import input_facts  # only rank 0 needs them
        from pffbench.provenance.job import job_facts

        of_job = job_facts(team.comm, libraries, scratch)
        of_job["inputs"] = input_facts(plan.cases)
    ranks = team.comm.gather(rank_facts())
    local = scratch if plan.experiment.node_local else None
    # By the last rank of each node: rank 0, which is the first of its own, is at work above.
    hosts = team.comm.gather(_host_facts(local) if team.node.rank == team.node.size - 1 else None)
    if ranks is None or hosts is None:
        return None
    by_node = {
        node: facts
        for node, facts in zip(team.topology.nodes, hosts, strict=True)
        if facts is not None
    }
    return {
        "import_seconds": imported,
        **of_job,
        "ranks": ranks,
        "hosts": [by_node[node] for node in sorted(by_node)],
    }


def _host_facts(scratch: str | None) -> Facts:
    """Return the facts of this node, with the file system of its own scratch directory if any."""
    from pffbench.provenance.node import host_facts  # only one rank of a node needs it

    facts = host_facts()
    if scratch is not None:
        facts["scratch"] = msgspec.structs.asdict(filesystem(scratch))
    return facts
