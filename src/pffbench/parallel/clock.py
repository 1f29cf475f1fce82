"""The clock: how long a phase took on this rank, and how long until all ranks had done it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from pffbench.parallel.agreement import agree
from pffbench.parallel.meter import Meter, Reading
from pffbench.parallel.watchdog import Watchdog

if TYPE_CHECKING:
    from mpi4py import MPI


@dataclass(frozen=True, slots=True)
class PhaseTime:
    """One rank's time in one phase of one repetition.

    Parameters
    ----------
    phase : str
        Name of the phase.
    own : float
        Seconds from the barrier before the phase to this rank's end of it.
    synced : float
        Seconds from the same barrier until every rank had ended, by this rank's clock.
    nbytes : int
        Bytes of array data that this rank moved (before compression).
    operations : int
        Library calls of this rank that the phase consists of, such as datasets written.
    parts : tuple of float
        The same seconds as `own` for each time that the phase was entered: data that are moved
        in batches enter it once a batch.
    counters : tuple of float
        What was counted meanwhile, as `pffbench.parallel.meter.COUNTERS` names it; empty when
        nothing is.
    """

    phase: str
    own: float
    synced: float
    nbytes: int
    operations: int
    parts: tuple[float, ...]
    counters: Reading = ()

    def __add__(self, other: PhaseTime) -> PhaseTime:
        return PhaseTime(
            self.phase,
            self.own + other.own,
            self.synced + other.synced,
            self.nbytes + other.nbytes,
            self.operations + other.operations,
            self.parts + other.parts,
            tuple(a + b for a, b in zip(self.counters, other.counters, strict=True)),
        )


class PhaseClock:
    """Times the phases of one repetition on one rank (rule 1 of the method).

    Each phase begins behind a barrier and ends with the rank's own stamp, taken before a second
    barrier. All stamps come from this rank's monotonic clock and only stamps of the same rank
    are ever subtracted. A phase that is entered several times (data that is moved in batches)
    adds up.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        The ranks that take part; every phase is collective over it.
    now : callable
        The clock, in seconds; tests put a made-up one here.
    meter : Meter, optional
        Counts beside: read between the barriers, before the first stamp and after the second, so
        that it is in no rank's own time and the waiting at the barriers is in no count.
    watchdog : Watchdog, optional
        Learns of each phase before the barrier in front of it.
    """

    def __init__(
        self,
        comm: MPI.Intracomm,
        now: Callable[[], float] = time.perf_counter,
        meter: Meter | None = None,
        watchdog: Watchdog | None = None,
    ) -> None:
        self._comm = comm
        self._now = now
        self._meter = meter
        self._watchdog = watchdog
        self._times: dict[str, PhaseTime] = {}

    @property
    def times(self) -> tuple[PhaseTime, ...]:
        """The phases so far, in the order in which they were first entered."""
        return tuple(self._times.values())

    @property
    def counts(self) -> bool:
        """Whether anything is counted beside the time."""
        return self._meter is not None

    def phase(self, name: str, nbytes: int = 0, operations: int = 1) -> _Phase:
        """Return the context manager that times one phase; collective on entry and on exit."""
        return _Phase(self, name, nbytes, operations)

    def tell(self, step: str) -> None:
        """Tell the watchdog, if there is one, of a step that begins."""
        if self._watchdog is not None:
            self._watchdog.step(step)

    def _add(self, time_: PhaseTime) -> None:
        before = self._times.get(time_.phase)
        self._times[time_.phase] = time_ if before is None else before + time_


class _Phase:
    """The timed region; a class and not a generator because entry and exit must cost little."""

    __slots__ = ("_before", "_begin", "_clock", "_name", "_nbytes", "_operations")

    def __init__(self, clock: PhaseClock, name: str, nbytes: int, operations: int) -> None:
        self._clock = clock
        self._name = name
        self._nbytes = nbytes
        self._operations = operations
        self._begin = 0.0
        self._before: Reading = ()

    def __enter__(self) -> None:
        self._clock.tell(self._name)
        self._clock._comm.Barrier()
        if self._clock._meter is not None:
            self._before = self._clock._meter.begin()
        self._begin = self._clock._now()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> Literal[False]:
        end = self._clock._now()
        meter, comm = self._clock._meter, self._clock._comm
        counted = () if meter is None else meter.since(self._before)
        comm.Barrier()
        synced = self._clock._now()
        agree(comm, self._name, error if isinstance(error, Exception) else None)
        self._clock._add(
            PhaseTime(
                self._name,
                end - self._begin,
                synced - self._begin,
                self._nbytes,
                self._operations,
                (end - self._begin,),
                counted,
            )
        )
        return False


@dataclass(frozen=True)
class Floor:
    """What the harness itself costs here: nothing shorter than this can be told apart from it.

    Parameters
    ----------
    barrier : float
        Median seconds from the barrier before an empty phase to the end of the barrier behind it,
        on the slowest rank.
    tick : float
        Smallest step of the clock that was seen, in seconds.
    """

    barrier: float
    tick: float

    @property
    def resolution(self) -> float:
        """Seconds under which a phase is marked as below resolution: 100 times the floor."""
        return 100 * max(self.barrier, self.tick)


def measure_floor(comm: MPI.Intracomm, rounds: int = 51) -> Floor:
    """Time empty phases and the clock's tick; collective, the result is the same on all ranks."""
    costs = []
    for _ in range(rounds):
        clock = PhaseClock(comm)
        with clock.phase("empty"):
            pass
        costs.append(clock.times[0].synced)
    tick = min(_ticks())
    slowest = max(comm.allgather(sorted(costs)[rounds // 2]))
    return Floor(barrier=slowest, tick=max(comm.allgather(tick)))


def _ticks(count: int = 200) -> Iterator[float]:
    for _ in range(count):
        before = after = time.perf_counter()
        while after == before:
            after = time.perf_counter()
        yield after - before


@contextmanager
def collector_off() -> Iterator[None]:
    """Keep Python's garbage collector out of timed phases; collect before and after."""
    import gc

    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
