"""Resources of a rank when a run starts: the start time, memory and open files."""

from __future__ import annotations

import os
import resource
import sys
import time
from pathlib import Path

from pffbench.experiment.limits import Allowance
from pffbench.parallel.collectives import smallest
from pffbench.parallel.topology import Team
from pffbench.proc import PROC, labelled_bytes, process_fields
from pffbench.provenance.binding import rank_facts

#: Index in /proc/PID/stat, after the name, of the start time in ticks since the boot.
_START_TIME = 19


def seconds_since_start() -> float:
    """Return the seconds since the start of this process."""
    ticks = int(process_fields("self")[_START_TIME])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


def available_resources(team: Team) -> Allowance:
    """Return the resources available to each rank, on the node with the fewest; collective."""
    return Allowance(_free_memory(team), _open_files(team), _addresses(team))


def _open_files(team: Team) -> int:
    """Return the remaining open files per rank, on the node with the fewest; collective."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened = sum(1 for _ in Path("/proc/self/fd").iterdir())
    left = sys.maxsize if limit == resource.RLIM_INFINITY else limit - opened
    return smallest(team.comm, left)


def _addresses(team: Team) -> int:
    """Return the minimum remaining bytes of address space of the ranks; collective."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    left = sys.maxsize if limit == resource.RLIM_INFINITY else max(limit - taken, 0)
    return smallest(team.comm, left)


def _free_memory(team: Team) -> int:
    """Return the free bytes per rank, on the node with the fewest; collective."""
    available = labelled_bytes(PROC / "meminfo", "MemAvailable")["MemAvailable"]
    limit = rank_facts()["memory_limit_bytes"]  # of the container or the job, if any
    if isinstance(limit, int):
        available = min(available, limit)
    here = available // int(team.node.size)
    return smallest(team.comm, here)
