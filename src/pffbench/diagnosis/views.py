"""What each rank sees, to be gathered on all of them."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pffbench.diagnosis.backends import absent_libraries
from pffbench.diagnosis.libraries import Library, import_libraries
from pffbench.parallel.topology import Topology
from pffbench.results.facts import Facts
from pffbench.results.hosts import host_facts
from pffbench.results.rankfacts import rank_facts


@dataclass(frozen=True)
class RankView:
    """What one rank sees.

    Parameters
    ----------
    host : str
        Where it runs.
    cpus : frozenset of int
        Cores that it may run on.
    memory_limit : int or None
        Bytes that its control group allows.
    libraries : dict
        By import name.
    absent : frozenset of str
        Libraries of backends that are not installed.
    node : dict or None
        What `host_facts` found; on one rank of each node.
    """

    host: str
    cpus: frozenset[int]
    memory_limit: int | None
    libraries: dict[str, Library]
    absent: frozenset[str]
    node: Facts | None


def look_around(is_leader: bool) -> RankView:
    """Import the libraries and look at the node, on this rank alone."""
    limit = rank_facts()["memory_limit_bytes"]
    return RankView(
        host=socket.gethostname(),
        cpus=frozenset(os.sched_getaffinity(0)),
        memory_limit=limit if isinstance(limit, int) else None,
        libraries=import_libraries(),
        absent=absent_libraries(),
        node=host_facts() if is_leader else None,
    )


def failing_imports(views: Sequence[RankView]) -> dict[str, dict[str, list[str]]]:
    """Find the libraries that fail on any rank: name → error → hosts."""
    failing: dict[str, dict[str, list[str]]] = {}
    for view in views:
        for name, library in view.libraries.items():
            if library.error:
                failing.setdefault(name, {}).setdefault(library.error, []).append(view.host)
    return failing


def ranks_by_node(views: Sequence[RankView], topology: Topology) -> Iterator[list[RankView]]:
    """Yield the views of each node's ranks, in the order of the nodes."""
    for number in sorted(set(topology.nodes)):
        yield [view for view, own in zip(views, topology.nodes, strict=True) if own == number]
