"""The clock: duration of a phase on this rank, and until all ranks had ended it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Literal

import msgspec

from pffbench.job.watchdog import Watchdog
from pffbench.mpi.agreement import Agreement
from pffbench.mpi.collectives import largest
from pffbench.observe.process_counters import Meter, Reading

if TYPE_CHECKING:
    from mpi4py import MPI


#: Which of the two times of a phase is its job time; see `PhaseTime`.
Clock = Literal["own", "synced"]


class PhaseTime(msgspec.Struct, frozen=True):
    """One rank's time in one phase of one repetition."""

    #: Name of the phase.
    phase: str
    #: Seconds from the barrier before the phase to this rank's end of it.
    own: float
    #: Seconds from the same barrier until every rank had ended, by this rank's clock.
    synced: float
    #: Bytes of array data that this rank moved (before compression).
    nbytes: int
    #: Library calls of this rank that the phase consists of, such as datasets written.
    operations: int
    #: The same seconds as `own`, one for each time that the phase was entered: data moved in
    #: batches enter it once per batch.
    parts: tuple[float, ...]
    #: Amounts in the order of `pffbench.observe.process_counters.COUNTERS`; empty when counters
    #: are off.
    counters: Reading = ()


class PhaseClock:
    """Times the phases of one repetition on one rank (rule 1 of the method).

    Each phase begins after a barrier and ends with the rank's own stamp, taken before a second
    barrier: the reduction by which ranks agree on errors, which no rank leaves before all have
    entered. All stamps come from this rank's monotonic clock, and only stamps of the same rank
    are ever subtracted. The times of a phase that is entered several times (data moved in
    batches) are added.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        The ranks that take part; every phase is collective over it.
    now : callable
        The clock, in seconds; tests pass an artificial one.
    meter : Meter, optional
        Counters in addition to the times: read between the barriers, before the first stamp and
        after the second, so that reading is in no rank's own time and waiting at the barriers in
        no count.
    watchdog : Watchdog, optional
        Receives each phase before the barrier in front of it.
    """

    def __init__(
        self,
        comm: MPI.Intracomm,
        now: Callable[[], float] = perf_counter,
        meter: Meter | None = None,
        watchdog: Watchdog | None = None,
    ) -> None:
        self._barrier = comm.Barrier
        self._agreement = Agreement(comm)
        self._now = now
        self._meter = meter
        self._watchdog = watchdog
        self._phases: dict[str, _Phase] = {}

    @property
    def times(self) -> tuple[PhaseTime, ...]:
        """The times of the phases so far, in the order in which they were first entered."""
        return tuple(phase.time for phase in self._phases.values() if phase.parts)

    @property
    def counts(self) -> bool:
        """Whether bytes and calls are counted as well, as the experiment requests."""
        return self._meter is not None and self._meter.io

    def phase(self, name: str, nbytes: int = 0, operations: int = 1) -> _Phase:
        """Return the context manager that times one phase; collective on entry and on exit."""
        phase = self._phases.get(name)
        if phase is None:
            phase = self._phases[name] = _Phase(self, name)
        phase.entering = (nbytes, operations)
        return phase

    def tell(self, step: str) -> None:
        """Report a step that begins to the watchdog, if there is one."""
        if self._watchdog is not None:
            self._watchdog.step(step)

    def tell_failure(self, error: Exception) -> None:
        """Report to the watchdog that this rank failed in the step."""
        if self._watchdog is not None:
            self._watchdog.failed(error)


class _Phase:
    """The timed region of a phase, and its totals over all entries.

    A class and not a generator, and one object for all entries, because entry and exit must cost
    little: phases of thousands of small datasets follow each other. Between the first stamp and
    the last but one only the calls for these stamps are made: all names that they need are
    looked up before.
    """

    __slots__ = (
        "_agreement",
        "_barrier",
        "_before",
        "_begin",
        "_meter",
        "_name",
        "_now",
        "_tell",
        "_tell_failure",
        "counters",
        "entering",
        "nbytes",
        "operations",
        "parts",
        "synced",
    )

    def __init__(self, clock: PhaseClock, name: str) -> None:
        self._name = name
        self._agreement = clock._agreement
        self._barrier = clock._barrier
        self._meter = clock._meter
        self._now = clock._now
        self._tell = clock.tell
        self._tell_failure = clock.tell_failure
        self._begin = 0.0
        self._before: Reading = ()
        #: Bytes and operations of the next entry.
        self.entering = (0, 0)
        self.synced = 0.0
        self.nbytes = 0
        self.operations = 0
        self.parts: list[float] = []
        self.counters: Reading = ()

    def __enter__(self) -> None:
        self._tell(self._name)
        self._barrier()
        if self._meter is not None:
            self._before = self._meter.begin(self._name)
        self._begin = self._now()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> Literal[False]:
        end = self._now()
        if self._meter is not None:
            counted = self._meter.since(self._before)
        known = error if isinstance(error, Exception) else None
        if known is not None:
            self._tell_failure(known)
        agreed = self._agreement.reached(known)
        synced = self._now()
        if not agreed:
            self._agreement.fail(self._name, known)
        begin = self._begin
        nbytes, operations = self.entering
        self.parts.append(end - begin)
        self.synced += synced - begin
        self.nbytes += nbytes
        self.operations += operations
        if self._meter is not None:
            before = self.counters or (0.0,) * len(counted)
            self.counters = tuple(a + b for a, b in zip(before, counted, strict=True))
        return False

    @property
    def time(self) -> PhaseTime:
        """The totals, as a record."""
        return PhaseTime(
            self._name,
            sum(self.parts),
            self.synced,
            self.nbytes,
            self.operations,
            tuple(self.parts),
            self.counters,
        )


class Floor(msgspec.Struct, frozen=True):
    """The time of an empty phase: the overhead of the harness on this machine."""

    #: Median seconds of an empty phase by each clock (see `PhaseTime`), on the slowest rank.
    own: float
    synced: float
    #: Smallest observed step of the clock, in seconds.
    tick: float

    @classmethod
    def median_of(cls, floors: Sequence[Floor]) -> Floor:
        """Return the median of floors measured at different times."""
        from statistics import median  # needed on rank 0 only

        return cls(
            median(floor.own for floor in floors),
            median(floor.synced for floor in floors),
            min(floor.tick for floor in floors),
        )

    def resolution(self, clock: Clock) -> float:
        """Seconds under which a phase is marked as below resolution: 100 times the floor."""
        return RESOLUTION * max(self.own if clock == "own" else self.synced, self.tick)


#: A phase shorter than this many floors is below resolution.
RESOLUTION = 100
#: Empty phases that are timed; and their number where these take longer than so many seconds,
#: since with more ranks than cores the ranks take turns at each barrier.
_ROUNDS, _FEW_ROUNDS, _LONG = 51, 5, 0.005


def measure_floor(comm: MPI.Intracomm, meter: Meter | None = None) -> Floor:
    """Time empty phases and the clock's tick; collective, the result is the same on all ranks."""
    costs = [_empty_phase(comm, meter) for _ in range(_FEW_ROUNDS)]
    if largest(comm, sum(synced for _, synced in costs)) < _LONG:
        costs += [_empty_phase(comm, meter) for _ in range(_ROUNDS - _FEW_ROUNDS)]
    # A clock that runs backwards makes the run INVALID by its phases; a floor is no less than 0.
    own, synced = (max(0.0, sorted(t)[len(t) // 2]) for t in zip(*costs, strict=True))
    return Floor(largest(comm, own), largest(comm, synced), largest(comm, min(_ticks())))


def _empty_phase(comm: MPI.Intracomm, meter: Meter | None) -> tuple[float, float]:
    clock = PhaseClock(comm, meter=meter)
    with clock.phase("empty"):
        pass
    time = clock.times[0]
    return time.own, time.synced


def _ticks(count: int = 200) -> Iterator[float]:
    for _ in range(count):
        before = after = perf_counter()
        while after == before:
            after = perf_counter()
        yield after - before


@contextmanager
def collector_off() -> Iterator[None]:
    """Disable Python's garbage collector in timed phases; collect before and after."""
    import gc

    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def objects_kept() -> Iterator[None]:
    """Exclude the objects that exist now from garbage collection; they stay for the whole run.

    Collecting before each repetition then inspects newer objects only: libraries leave hundreds
    of thousands of objects, which take tens of milliseconds each time. Existing garbage is kept
    too: there is little of it, and finding it takes as long. A program that started with the
    collector disabled has it enabled afterwards.
    """
    import gc

    gc.freeze()
    gc.enable()
    try:
        yield
    finally:
        gc.unfreeze()
