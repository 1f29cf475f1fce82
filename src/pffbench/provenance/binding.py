"""The binding and the limits of a rank; cheap, since all ranks ask."""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pffbench.observe.clock import Clock
from pffbench.proc import PROC, SYS, from_ranges, kernel_number, kernel_text, number_ranges
from pffbench.provenance.facts import Facts
from pffbench.text import counted

_NO_LIMIT = 2**60  # cgroups of version 1 say "no limit" with a number near 2**63


def rank_facts() -> Facts:
    """Find what differs between the ranks of one node; cheap, to be gathered from all.

    Returns
    -------
    dict
        ``host``, ``pid``, ``affinity`` (the cores it may run on, like ``0-3,8``), ``cpus`` (how
        many these are), ``numa_nodes`` (those of its cores, None where unknown) and
        ``memory_limit_bytes`` (of its control group, None without one).
    """
    cores = os.sched_getaffinity(0)
    cgroup = kernel_text(PROC / "self/cgroup") or ""
    return {
        "host": os.uname().nodename,
        "pid": os.getpid(),
        "affinity": number_ranges(cores),
        "cpus": len(cores),
        "numa_nodes": _numa_nodes_of(cores),
        "memory_limit_bytes": memory_limit(cgroup, SYS / "fs/cgroup"),
        "cpu_quota": cpu_quota(cgroup, SYS / "fs/cgroup"),
    }


def job_clock(nodes: Sequence[int], facts: Sequence[Mapping[str, object]]) -> Clock:
    """Return which time of a phase is the job's, see `pffbench.observe.clock.PhaseTime`.

    A rank's own time begins when it leaves the barrier. Where ranks share processors they leave
    it one after the other, and the largest own time is less than what they take together; the
    time until all have ended is right then.

    Parameters
    ----------
    nodes : sequence of int
        Node of each rank.
    facts : sequence of dict
        What `rank_facts` says of each rank; where it is not known no sharing is assumed.
    """
    ranks: dict[int, list[set[int]]] = defaultdict(list)
    quotas: dict[int, float] = {}
    for node, fact in zip(nodes, facts, strict=False):
        ranks[node].append(from_ranges(str(fact.get("affinity", ""))))
        if isinstance(quota := fact.get("cpu_quota"), int | float):
            quotas[node] = float(quota)
    shared = any(
        len(sets) > quotas.get(node, math.inf) or not _each_has_one(sets)
        for node, sets in ranks.items()
    )
    return "synced" if shared else "own"


def shared_quota(ranks: Sequence[Mapping[str, object]]) -> str | None:
    """Return that ranks of a node have less than a processor each by their control group, or None.

    Parameters
    ----------
    ranks : sequence of dict
        What `rank_facts` says of each rank of the node.
    """
    quotas = [quota for rank in ranks if isinstance(quota := rank.get("cpu_quota"), int | float)]
    quota = min(quotas, default=math.inf)
    if len(ranks) <= quota:
        return None
    verb = "shares" if len(ranks) == 1 else "share"
    shared = f"{counted(len(ranks), 'rank')} {verb} {quota:.3g} processors"
    return f"{shared}, which is the quota of their control group: times say little"


def _each_has_one(sets: Sequence[set[int]]) -> bool:
    """Whether each rank can have a processor of its own, by augmenting paths (Kuhn, 1955)."""
    holder: dict[int, int] = {}

    def place(rank: int, tried: set[int]) -> bool:
        for processor in sets[rank] - tried:
            tried.add(processor)
            if processor not in holder or place(holder[processor], tried):
                holder[processor] = rank
                return True
        return False

    if len(sets) > len(set().union(*sets)):  # the usual case, found at once
        return False
    return all(place(rank, set()) for rank in range(len(sets)))


def cpu_quota(cgroup: str, root: Path) -> float | None:
    """Return the processors that the control group of a process may use; None without a limit.

    Parameters
    ----------
    cgroup, root
        As of `memory_limit`.
    """
    quotas = (_quota(level, unified=unified) for level, unified in _levels(cgroup, root, "cpu"))
    return min((quota for quota in quotas if quota is not None), default=None)


def _quota(level: Path, *, unified: bool) -> float | None:
    if unified:
        fields = (kernel_text(level / "cpu.max") or "").split()
    else:
        fields = [kernel_text(level / f"cpu.cfs_{name}_us") or "" for name in ("quota", "period")]
    numbers = [kernel_number(field) for field in fields]  # "max" and -1 stand for no limit
    if len(numbers) != 2 or None in numbers or not numbers[1]:
        return None
    return (numbers[0] or 0) / numbers[1]


def memory_limit(cgroup: str, root: Path) -> int | None:
    """Find the tightest memory limit of a process's control group and its ancestors.

    Parameters
    ----------
    cgroup : str
        The text of /proc/PID/cgroup: lines of hierarchy number, controllers and path, where
        version 2 is the line with number 0 and no controllers (cgroups(7)).
    root : Path
        Where the control groups are mounted.

    Returns
    -------
    int or None
        Bytes; None without any limit.
    """
    limits = (
        kernel_number(kernel_text(level / ("memory.max" if unified else "memory.limit_in_bytes")))
        for level, unified in _levels(cgroup, root, "memory")
    )
    return min((n for n in limits if n is not None and n < _NO_LIMIT), default=None)


def tasks_left(cgroup: str, root: Path) -> int | None:
    """Return the processes and threads that a control group may still start; None without a limit.

    Parameters
    ----------
    cgroup, root
        As of `memory_limit`.
    """
    left: list[int] = []
    for level, _ in _levels(cgroup, root, "pids"):
        most, there = (kernel_number(kernel_text(level / f"pids.{n}")) for n in ("max", "current"))
        if most is not None and there is not None:
            left.append(max(most - there, 0))
    return min(left, default=None)


def _levels(cgroup: str, root: Path, controller: str) -> Iterator[tuple[Path, bool]]:
    """Yield the control group of a process and its ancestors, and whether it is of version 2."""
    for line in cgroup.splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        mount = root / controller if controllers else root
        group = mount / path.lstrip("/")
        levels = (group, *group.parents)
        yield from ((level, not controllers) for level in levels if level.is_relative_to(mount))


def _numa_nodes_of(cores: set[int]) -> str | None:
    nodes = [
        int(directory.name.removeprefix("node"))
        for directory in (SYS / "devices/system/node").glob("node[0-9]*")
        if cores & from_ranges(kernel_text(directory / "cpulist") or "")
    ]
    return number_ranges(set(nodes)) or None
