"""Facts about a node and about the binding and limits of its ranks."""

from __future__ import annotations

import math
import os
import platform
import re
import socket
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import psutil

from pffbench.parallel.clock import Clock
from pffbench.provenance.facts import Facts

_SYS = Path("/sys")
_CPU = _SYS / "devices/system/cpu"
_VM_SETTINGS = (
    "dirty_ratio",
    "dirty_bytes",
    "dirty_background_ratio",
    "dirty_background_bytes",
    "dirty_expire_centisecs",
    "dirty_writeback_centisecs",
)
_BOOST = {  # driver file of the turbo state, and its value if turbo is enabled
    "cpufreq/boost": "1",
    "intel_pstate/no_turbo": "0",
}


def host_facts() -> Facts:
    """Collect the facts shared by all ranks of a node; called on one rank per node.

    Returns
    -------
    dict
        Hardware (``cpu_model``, ``sockets``, ``cores``, ``threads``, ``memory_bytes``,
        ``memory_available_bytes``), system (``kernel``, ``os``, ``machine``, ``boot_time``),
        state (``load_average`` over 1, 5 and 15 minutes, ``governor``, ``turbo``,
        ``transparent_huge_pages``) and ``vm``, the kernel's write-back settings. None stands for
        facts that this system does not report.
    """
    memory = psutil.virtual_memory()
    return {
        "host": socket.gethostname(),
        "cpu_model": _cpu_model(),
        "sockets": _sockets(),
        "cores": psutil.cpu_count(logical=False),
        "threads": psutil.cpu_count(),
        "memory_bytes": memory.total,
        "memory_available_bytes": memory.available,
        "kernel": platform.release(),
        "os": _os_name(),
        "machine": platform.machine(),
        "boot_time": datetime.fromtimestamp(psutil.boot_time(), UTC).isoformat(timespec="seconds"),
        "load_average": list(os.getloadavg()),
        "governor": kernel_text(_CPU / "cpu0/cpufreq/scaling_governor"),
        "turbo": _turbo(),
        "transparent_huge_pages": _chosen(
            kernel_text(_SYS / "kernel/mm/transparent_hugepage/enabled")
        ),
        "vm": {name: kernel_number(kernel_text(f"/proc/sys/vm/{name}")) for name in _VM_SETTINGS},
    }


def _cpu_model() -> str | None:
    """Return the first model name; on ARM, where the kernel has none, the part number."""
    text = kernel_text("/proc/cpuinfo") or ""
    for key in ("model name", "cpu", "CPU part"):
        match = re.search(rf"^{key}\s*:\s*(.+)$", text, re.MULTILINE)
        if match:
            return match[1]
    return None


def _sockets() -> int | None:
    packages = {kernel_text(file) for file in _CPU.glob("cpu[0-9]*/topology/physical_package_id")}
    if not packages:
        packages = set(
            re.findall(
                r"^physical id\s*:\s*(\d+)", kernel_text("/proc/cpuinfo") or "", re.MULTILINE
            )
        )
    return len(packages) or None


def _os_name() -> str | None:
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return None
    return release.get("PRETTY_NAME") or release.get("NAME")


def _turbo() -> bool | None:
    for name, when_on in _BOOST.items():
        text = kernel_text(_CPU / name)
        if text is not None:
            return text == when_on
    return None


def _chosen(text: str | None) -> str | None:
    """Return the word in brackets of ``always [madvise] never``."""
    match = re.search(r"\[(\w+)\]", text or "")
    return match[1] if match else text


_NO_LIMIT = 2**60  # cgroups of version 1 report "no limit" as a number near 2**63


def rank_facts() -> Facts:
    """Collect the facts that differ between the ranks of a node; cheap, for all ranks.

    Returns
    -------
    dict
        ``host``, ``pid``, ``affinity`` (the cores the rank may run on, like ``0-3,8``), ``cpus``
        (their number), ``numa_nodes`` (of its cores, None if unknown) and ``memory_limit_bytes``
        (of its control group, None without one).
    """
    cores = os.sched_getaffinity(0)
    cgroup = kernel_text("/proc/self/cgroup") or ""
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "affinity": as_ranges(cores),
        "cpus": len(cores),
        "numa_nodes": _numa_nodes_of(cores),
        "memory_limit_bytes": memory_limit(cgroup, _SYS / "fs/cgroup"),
        "cpu_quota": cpu_quota(cgroup, _SYS / "fs/cgroup"),
    }


def job_clock(nodes: Sequence[int], facts: Sequence[Mapping[str, object]]) -> Clock:
    """Return which time of a phase is the job's, see `pffbench.parallel.clock.PhaseTime`.

    A rank's own time begins when it leaves the barrier. Ranks that share processors leave it one
    after the other, so the largest own time is less than their common time; the time until all
    have ended is then correct.

    Parameters
    ----------
    nodes : sequence of int
        Node of each rank.
    facts : sequence of dict
        Facts of each rank, see `rank_facts`; if unknown, no sharing is assumed.
    """
    ranks: dict[int, list[set[int]]] = defaultdict(list)
    quotas: dict[int, float] = {}
    for node, fact in zip(nodes, facts, strict=False):
        ranks[node].append(_from_ranges(str(fact.get("affinity", ""))))
        if isinstance(quota := fact.get("cpu_quota"), int | float):
            quotas[node] = float(quota)
    shared = any(
        len(sets) > quotas.get(node, math.inf) or not _each_has_one(sets)
        for node, sets in ranks.items()
    )
    return "synced" if shared else "own"


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

    if len(sets) > len(set().union(*sets)):  # the usual case, detected at once
        return False
    return all(place(rank, set()) for rank in range(len(sets)))


def cpu_quota(cgroup: str, root: Path) -> float | None:
    """Return the processors that the control group of a process may use; None without a limit.

    Parameters
    ----------
    cgroup, root
        See `memory_limit`.
    """
    quotas = []
    for line in cgroup.splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            quotas += [_quota(level / "cpu.max") for level in _levels(root, path)]
    return min((quota for quota in quotas if quota is not None), default=None)


def _quota(path: Path) -> float | None:
    fields = (kernel_text(path) or "").split()
    if len(fields) != 2 or not (fields[0].isdecimal() and fields[1].isdecimal()):
        return None  # "max" means no limit
    return int(fields[0]) / int(fields[1])


def available_memory() -> int:
    """Return the bytes that programs can allocate before this node swaps (proc(5))."""
    text = Path("/proc/meminfo").read_text()
    (kibibytes,) = re.findall(r"^MemAvailable:\s*(\d+) kB$", text, re.MULTILINE)
    return int(kibibytes) * 1024


def as_ranges(numbers: Iterable[int]) -> str:
    """Format a set of numbers like the kernel's core lists: ``0-3,8``."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in ranges)


def memory_limit(cgroup: str, root: Path) -> int | None:
    """Return the smallest memory limit of a process's control group and its ancestors.

    Parameters
    ----------
    cgroup : str
        The text of /proc/PID/cgroup: lines of hierarchy number, controllers and path, where
        version 2 is the line with number 0 and no controllers (cgroups(7)).
    root : Path
        Mount point of the control groups.

    Returns
    -------
    int or None
        Bytes; None without a limit.
    """
    limits = []
    for line in cgroup.splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            limits += _limits(root, path, "memory.max")
        elif "memory" in controllers.split(","):
            limits += _limits(root / "memory", path, "memory.limit_in_bytes")
    return min(limits, default=None)


def _limits(mount: Path, path: str, name: str) -> list[int]:
    numbers = [kernel_number(kernel_text(level / name)) for level in _levels(mount, path)]
    return [number for number in numbers if number is not None and number < _NO_LIMIT]


def _levels(mount: Path, path: str) -> list[Path]:
    """Return a control group and its ancestors."""
    group = mount / path.lstrip("/")
    return [level for level in (group, *group.parents) if level.is_relative_to(mount)]


def _numa_nodes_of(cores: set[int]) -> str | None:
    nodes = [
        int(directory.name.removeprefix("node"))
        for directory in (_SYS / "devices/system/node").glob("node[0-9]*")
        if cores & _from_ranges(kernel_text(directory / "cpulist") or "")
    ]
    return as_ranges(nodes) or None


def _from_ranges(text: str) -> set[int]:
    numbers: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        numbers.update(range(int(first), int(last or first) + 1))
    return numbers


def kernel_number(text: str | None) -> int | None:
    """Return a text as a number, or None if it is none."""
    return int(text) if text is not None and text.isdecimal() else None


def kernel_text(path: str | Path) -> str | None:
    """Return the text of a file in /proc or /sys; None if there is no such file."""
    try:
        return Path(path).read_text(errors="replace").strip()
    except OSError:
        return None
