"""Registry of the workloads, including those of other packages."""

from __future__ import annotations

from functools import cache

from pffbench.plugins import load_class, loaded, plugins
from pffbench.workloads.base import Workload

_BUILT_IN = {
    "chunk_cache": "pffbench.workloads.chunk_cache:ChunkCache",
    "datasets": "pffbench.workloads.datasets:Datasets",
    "hyperslab": "pffbench.workloads.hyperslab:Hyperslab",
    "slices": "pffbench.workloads.slices:Slices",
    "startup": "pffbench.workloads.startup:StartOfJob",
    "survival": "pffbench.workloads.survival:Survival",
    "updates": "pffbench.workloads.updates:Updates",
}

#: Other packages add a workload through an entry point of this group.
ENTRY_POINT_GROUP = "pffbench.workloads"
#: Attributes that a class must have.
_NEEDED = ("summary", "parameters_type")


@cache
def _targets() -> dict[str, str]:
    return {**plugins(ENTRY_POINT_GROUP), **_BUILT_IN}


def workload_names() -> tuple[str, ...]:
    """Return the names of all workloads."""
    return tuple(_targets())


def loadable_workload_names() -> tuple[str, ...]:
    """Return the names of the workloads without those of other packages that cannot be loaded."""
    others = loaded(ENTRY_POINT_GROUP, *_NEEDED)
    return tuple(name for name in _targets() if name in _BUILT_IN or name in others)


def is_workload(name: object) -> bool:
    """Return whether a workload has this name; a built-in one is found without a search."""
    return name in _BUILT_IN or name in _targets()


@cache
def workload(name: str) -> Workload:
    """Return a workload.

    Raises
    ------
    KeyError
        There is no workload of that name.
    UserError
        Another package adds it, and its class cannot be used.
    """
    location = _BUILT_IN.get(name) or _targets()[name]
    found: type[Workload] = load_class(location, Workload, *_NEEDED)
    return found()
