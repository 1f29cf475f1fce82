"""Load of the machine during a run: steal time, pressure stall, and rates of memory."""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic, perf_counter

import msgspec
import numpy as np

from pffbench.mpi.collectives import any_of
from pffbench.mpi.single import mpi_of
from pffbench.mpi.topology import Team
from pffbench.proc import PROC, kernel_text

#: Fields of the line ``cpu`` of /proc/stat (proc(5)): ticks of idle, of I/O wait, and of steal
#: time that the host of a virtual machine took.
_IDLE, _IOWAIT, _STEAL = 3, 4, 7


class MachineLoad(msgspec.Struct, frozen=True):
    """Load of a node in an interval. A number that the kernel does not report is 0."""

    #: Load average of the last minute at the end of the interval.
    load: float = 0.0
    #: Part of the node's processor time that all processes together used, 0 to 1.
    busy: float = 0.0
    #: Part of the node's processor time that its host gave to others, 0 to 1.
    steal: float = 0.0
    #: Part of the interval in which some process waited for a processor or for a device, 0 to 1
    #: (pressure stall information of the kernel).
    cpu_pressure: float = 0.0
    io_pressure: float = 0.0
    #: Seconds of all processors of the node together in the interval.
    capacity: float = 0.0


class LoadMeter:
    """Measures the load of one node; to be read by one of its ranks.

    Parameters
    ----------
    proc : Path
        The kernel's directory ``/proc``; tests pass a directory of their own.
    """

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc
        self._before = self._read()

    def begin(self) -> None:
        """Begin an interval."""
        self._before = self._read()

    def since(self) -> MachineLoad:
        """Return the load of the node since `begin`."""
        (then, ticks, pressures), (now, later, pressures_now) = self._before, self._read()
        total = sum(later) - sum(ticks)
        idle = sum(later[i] - ticks[i] for i in (_IDLE, _IOWAIT)) if later else 0
        steal = later[_STEAL] - ticks[_STEAL] if later else 0
        seconds = now - then
        cpu, io = (
            min(1.0, (after - before) / seconds) if seconds > 0 else 0.0
            for before, after in zip(pressures, pressures_now, strict=True)
        )
        return MachineLoad(
            load=self._load_average(),
            busy=(total - idle - steal) / total if total else 0.0,
            steal=steal / total if total else 0.0,
            cpu_pressure=cpu,
            io_pressure=io,
            capacity=seconds * (os.cpu_count() or 1),
        )

    def _read(self) -> tuple[float, tuple[int, ...], tuple[float, float]]:
        return monotonic(), self._ticks(), (self._stalled("cpu"), self._stalled("io"))

    def _ticks(self) -> tuple[int, ...]:
        """Return the ticks of all processors by kind of use."""
        fields = (kernel_text(self._proc / "stat") or "").partition("\n")[0].split()
        # Guest times are included in those of the user.
        return tuple(int(field) for field in fields[1:9]) if len(fields) > 8 else ()

    def _stalled(self, what: str) -> float:
        """Return the seconds, since the boot, in which some process was stalled."""
        some = (kernel_text(self._proc / f"pressure/{what}") or "").partition("\n")[0]
        total = some.rpartition("total=")[2]
        return int(total) / 1e6 if total.isdecimal() else 0.0

    def _load_average(self) -> float:
        first = (kernel_text(self._proc / "loadavg") or "").split(" ")[0]
        return float(first) if first else 0.0


#: Bytes that each rank copies, the ranks of a node at most, and those that share a core: more
#: than caches hold, no more than the node has, and no more than necessary.
_COPIED = 32 * 2**20
_COPIED_ON_A_NODE = 2**30
_COPIED_ON_A_CORE = 2 * _COPIED
#: Bytes of a rank from which on memory is measured, if it moves so many in some case: the caches of
#: a core hold less, and memory does not bound it.
BEYOND_CACHES = 2**20


class MemoryRates(msgspec.Struct, frozen=True):
    """Bytes per second of all ranks together, all at once."""

    #: Copied in memory. It bounds every transfer from above: a page cache cannot take data faster
    #: than memory does.
    copy: float
    #: Of new memory: what writing to memory that the kernel has to provide takes longer than
    #: writing to it again. Infinite where it takes no longer.
    new: float

    @property
    def entry(self) -> dict[str, float]:
        """The rates for `run.json`."""
        found = {"memory_copy_bytes_per_second": self.copy, "memory_new_bytes_per_second": self.new}
        return {key: rate for key, rate in found.items() if math.isfinite(rate)}


def memory_rates(team: Team, rounds: int = 5) -> MemoryRates | None:
    """Time memory on all ranks at once; collective, the result is the same on all ranks.

    The times are those of a phase, from barrier to barrier, on the slowest rank: with fewer cores
    than ranks each copies when it has a core, and the sum of the rates that they reach alone is
    many times the bandwidth of the memory. None where a rank has no memory left for it.
    """
    on_node, cores = int(team.node.size), os.cpu_count() or 1
    copied = min(_COPIED, _COPIED_ON_A_NODE // on_node, _COPIED_ON_A_CORE * cores // on_node)
    part = copied // rounds
    source = target = np.empty(0, dtype=np.uint8)
    fresh = None
    # Whoever cannot get the memory must say so before the first barrier: the others would wait.
    with suppress(MemoryError, OSError):
        fresh = mmap.mmap(-1, part * rounds, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        source = np.ones(copied, dtype=np.uint8)
        target = np.empty_like(source)
    if any_of(team.comm, target.size < copied) or fresh is None:
        return None
    copying = _seconds(team, rounds, lambda _: np.copyto(target, source))[rounds // 2]
    with fresh:
        with suppress(OSError, AttributeError):  # as NumPy asks the kernel for its large arrays
            fresh.madvise(mmap.MADV_HUGEPAGE)
        parts = [np.frombuffer(fresh, np.uint8, part, part * place) for place in range(rounds)]
        # The least, since a busy machine adds to some rounds more than new memory takes.
        first = _seconds(team, rounds, lambda place: parts[place].fill(0))[0]
        again = _seconds(team, rounds, lambda place: parts[place].fill(0))[0]
        parts.clear()  # the mapping cannot be closed before
    each, more = team.comm.allreduce(copied) / rounds, first - again
    return MemoryRates(rounds * each / copying, each / more if more > 0 else math.inf)


def _seconds(team: Team, rounds: int, work: Callable[[int], None]) -> list[float]:
    """Return the seconds of each round until all ranks have done it, in order; collective."""
    constants = mpi_of(team.comm)
    seconds = np.zeros(rounds)
    team.comm.Barrier()
    for place in range(rounds):
        begin = perf_counter()
        work(place)
        team.comm.Barrier()  # also before the next round
        seconds[place] = perf_counter() - begin
    team.comm.Allreduce(constants.IN_PLACE, seconds, op=constants.MAX)
    return sorted(seconds.tolist())
