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
    here = (_free_memory(int(team.node.size)), _open_files(), _addresses())
    return Allowance(*(smallest(team.comm, number) for number in here))


def _free_memory(ranks: int) -> int:
    """Return the free bytes of this node for each of its ranks."""
    available = labelled_bytes(PROC / "meminfo", "MemAvailable")["MemAvailable"]
    limit = rank_facts()["memory_limit_bytes"]  # of the container or the job, if any
    return (min(available, limit) if isinstance(limit, int) else available) // ranks


def _open_files() -> int:
    """Return the files that this process may open in addition to those that are open."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened = sum(1 for _ in Path("/proc/self/fd").iterdir())
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit - opened


def _addresses() -> int:
    """Return the bytes of address space that this process may still take."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    return sys.maxsize if limit == resource.RLIM_INFINITY else max(limit - taken, 0)
