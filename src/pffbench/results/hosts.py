"""Facts about where a rank runs: its binding and limits, its node's hardware and kernel."""

from __future__ import annotations

import os
import platform
import re
import socket
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import psutil

from pffbench.results.facts import Facts

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
_NO_LIMIT = 2**60  # cgroups of version 1 say "no limit" with a number near 2**63
_BOOST = {  # where a kernel driver says whether the clock may rise, and what it says when it may
    "cpufreq/boost": "1",
    "intel_pstate/no_turbo": "0",
}


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
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "affinity": as_ranges(cores),
        "cpus": len(cores),
        "numa_nodes": _numa_nodes_of(cores),
        "memory_limit_bytes": memory_limit(_read("/proc/self/cgroup") or "", _SYS / "fs/cgroup"),
    }


def host_facts() -> Facts:
    """Find what all ranks of a node share; one rank per node asks.

    Returns
    -------
    dict
        Hardware (``cpu_model``, ``sockets``, ``cores``, ``threads``, ``memory_bytes``,
        ``memory_available_bytes``), system (``kernel``, ``os``, ``machine``, ``boot_time``),
        state (``load_average`` over 1, 5 and 15 minutes, ``governor``, ``turbo``,
        ``transparent_huge_pages``) and ``vm``, the kernel's write-back settings. None stands for
        what this system does not tell.
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
        "governor": _read(_CPU / "cpu0/cpufreq/scaling_governor"),
        "turbo": _turbo(),
        "transparent_huge_pages": _chosen(_read(_SYS / "kernel/mm/transparent_hugepage/enabled")),
        "vm": {name: _number(_read(f"/proc/sys/vm/{name}")) for name in _VM_SETTINGS},
    }


def as_ranges(numbers: Iterable[int]) -> str:
    """Write a set of numbers the way the kernel writes core lists: ``0-3,8``."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in ranges)


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
    limits = []
    for line in cgroup.splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            limits += _limits(root, path, "memory.max")
        elif "memory" in controllers.split(","):
            limits += _limits(root / "memory", path, "memory.limit_in_bytes")
    return min(limits, default=None)


def _limits(mount: Path, path: str, name: str) -> list[int]:
    group = mount / path.lstrip("/")
    levels = [level for level in (group, *group.parents) if level.is_relative_to(mount)]
    numbers = [_number(_read(level / name)) for level in levels]
    return [number for number in numbers if number is not None and number < _NO_LIMIT]


def _numa_nodes_of(cores: set[int]) -> str | None:
    nodes = [
        int(directory.name.removeprefix("node"))
        for directory in (_SYS / "devices/system/node").glob("node[0-9]*")
        if cores & _from_ranges(_read(directory / "cpulist") or "")
    ]
    return as_ranges(nodes) or None


def _from_ranges(text: str) -> set[int]:
    numbers: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        numbers.update(range(int(first), int(last or first) + 1))
    return numbers


def _cpu_model() -> str | None:
    """Return the first model name; ARM kernels give none, so there the part must do."""
    text = _read("/proc/cpuinfo") or ""
    for key in ("model name", "cpu", "CPU part"):
        match = re.search(rf"^{key}\s*:\s*(.+)$", text, re.MULTILINE)
        if match:
            return match[1]
    return None


def _sockets() -> int | None:
    packages = {_read(file) for file in _CPU.glob("cpu[0-9]*/topology/physical_package_id")}
    if not packages:
        packages = set(
            re.findall(r"^physical id\s*:\s*(\d+)", _read("/proc/cpuinfo") or "", re.MULTILINE)
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
        text = _read(_CPU / name)
        if text is not None:
            return text == when_on
    return None


def _chosen(text: str | None) -> str | None:
    """Of ``always [madvise] never`` the word in brackets."""
    match = re.search(r"\[(\w+)\]", text or "")
    return match[1] if match else text


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None


def _read(path: str | Path) -> str | None:
    try:
        return Path(path).read_text(errors="replace").strip()
    except OSError:
        return None
