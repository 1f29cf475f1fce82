"""Resources of a rank when a run starts: the start time, memory, open files and threads."""

from __future__ import annotations

import os
import resource
import sys
import time
from contextlib import suppress
from pathlib import Path

from pffbench.experiment.limits import Allowance
from pffbench.mpi.collectives import smallest
from pffbench.mpi.topology import Team
from pffbench.proc import PROC, SYS, kernel_text, labelled_bytes, process_fields
from pffbench.provenance.binding import rank_facts, tasks_left

#: Index in /proc/PID/stat, after the name, of the start time in ticks since the boot.
_START_TIME = 19
#: Index there of the number of threads.
_THREADS = 17


def seconds_since_start() -> float:
    """Return the seconds since the start of this process."""
    ticks = int(process_fields("self")[_START_TIME])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


def available_resources(team: Team) -> Allowance:
    """Return the resources available to each rank, on the node with the fewest; collective."""
    ranks = int(team.node.size)
    here = (_free_memory(ranks), _open_files(), _addresses(), _tasks() // ranks)
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


def _tasks() -> int:
    """Return the processes and threads that may still start on this node."""
    group = tasks_left(kernel_text(PROC / "self/cgroup") or "", SYS / "fs/cgroup")
    limit, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    unlimited = limit == resource.RLIM_INFINITY or os.getuid() == 0  # root has no such limit
    own = sys.maxsize if unlimited else max(limit - _tasks_of_user(limit), 0)
    return min(own, sys.maxsize if group is None else group)


def _tasks_of_user(limit: int) -> int:
    """Count the processes and threads of this user, or of the node if these are few."""
    everyone = int((PROC / "loadavg").read_text().split()[3].partition("/")[2])
    if everyone < limit // 2:  # on large nodes it takes long to look at each process
        return everyone
    count = 0
    for process in PROC.glob("[0-9]*"):
        with suppress(OSError, ValueError):  # it may end meanwhile
            if process.stat().st_uid == os.getuid():
                count += int(process_fields(process.name)[_THREADS])
    return count
