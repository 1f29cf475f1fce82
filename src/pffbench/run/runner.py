"""The main loop: for each round and each case, run, gather and record."""

from __future__ import annotations

import enum
import math
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from importlib import import_module
from time import monotonic
from typing import TYPE_CHECKING, Any

from pffbench.backends.base import Store
from pffbench.backends.registry import backend_class
from pffbench.backends.traits import Abandons
from pffbench.case import Case
from pffbench.data import Sources, seed_of_repetition
from pffbench.errors import ResultsLostError, UserError
from pffbench.experiment.plan import arrays_of, copies_of_file, cost_of
from pffbench.interpreter import InterpreterState
from pffbench.job.alarm import PATIENCE
from pffbench.job.batch_job import StopSignals, seconds_left
from pffbench.job.watchdog import Watchdog
from pffbench.mpi.agreement import AgreedStep, Failure, PhaseFailedError, sleeping_barrier
from pffbench.mpi.collectives import largest
from pffbench.mpi.topology import Team
from pffbench.observe.allocator import PLACES, Allocator, TransferBuffer
from pffbench.observe.clock import PhaseClock, collector_off, measure_floor, objects_kept
from pffbench.observe.machine import LoadMeter, memory_rates
from pffbench.observe.process_counters import Meter, PeakMemory
from pffbench.record.gather import Conditions, gather
from pffbench.run.order import by_importance, ordered_round
from pffbench.run.spec import RoundSpec, RunSpec, repetition_directory
from pffbench.run.turns import wait_for_turn
from pffbench.storage.durability import Settled, Settler
from pffbench.storage.filesystem import require_room
from pffbench.storage.scratch import Scratch
from pffbench.text import without_digests
from pffbench.workloads.registry import workload
from pffbench.workloads.repetition import Repetition

if TYPE_CHECKING:
    from pffbench.experiment.schema import Experiment
    from pffbench.run.recorder import Recorder
    from pffbench.run.schedule import Schedule

#: In addition, a case that has not run yet is allowed the time of a very slow file system:
#: a tenth of a megabyte a second for each rank, a hundred files and arrays a second for all.
_SLOWEST_BYTES = 1e5
_SLOWEST_FILES = 100.0
#: Maximum time of a step of a case that has run, as a multiple of its longest repetition.
_SLOWER = 10.0


class Pace:
    """The longest and the last repetition of each case so far, including untimed work."""

    def __init__(self) -> None:
        self.last: dict[str, float] = {}
        self._longest: dict[str, float] = {}

    def note(self, case: Case, seconds: float, once: float) -> None:
        """Record the duration of a repetition, and the part that no other of the case needs."""
        self.last[case.id] = seconds - once
        self._longest[case.id] = max(self._longest.get(case.id, 0.0), seconds)

    def expected(self, case: Case) -> float:
        """Return the expected seconds of another repetition; before the first one 0.

        For a case that has not run yet, this is the longest of any other case: stopping a little
        early is better than being killed during it.
        """
        return self._longest.get(case.id, max(self._longest.values(), default=0.0))

    def patience(self, case: Case, ranks: int, memory: int) -> float:
        """Return the seconds after which an unfinished step of a case counts as hung.

        Parameters
        ----------
        case : Case
            The case.
        ranks : int
            Number of ranks.
        memory : int
            Maximum bytes of the buffers of a rank.
        """
        if case.id in self._longest:
            return max(PATIENCE, _SLOWER * self._longest[case.id])
        cost = cost_of(case, ranks, memory)
        moving = cost.nbytes / ranks / _SLOWEST_BYTES
        return PATIENCE + moving + (cost.files + cost.arrays) / _SLOWEST_FILES


class _Course(enum.IntEnum):
    """What happens to the case that is due; where ranks differ, the largest counts."""

    RUN = 0
    LEAVE_OUT = 1
    STOP = 2


#: Most seconds to wait, before a repetition, until earlier writes have reached the device.
_SETTLE = 2.0
#: The phases in which stores are closed.
_CLOSING = ("close", "close_read")


class Runner:
    """Runs a plan on all ranks; every method is collective.

    Parameters
    ----------
    team : Team
        The ranks.
    spec : RunSpec
        Specification of the run.
    scratch : Scratch
        Directory of the files.
    recorder : Recorder or None
        Recorder on rank 0; None on the other ranks.
    watchdog : Watchdog
        Receives the current step of the ranks.
    stop : StopSignals, optional
        Reports whether the run has been asked to end.
    """

    def __init__(
        self,
        *,
        team: Team,
        spec: RunSpec,
        scratch: Scratch,
        recorder: Recorder | None,
        watchdog: Watchdog,
        stop: StopSignals,
    ) -> None:
        self.team = team
        self.spec = spec
        self.scratch = scratch
        self.recorder = recorder
        self.watchdog = watchdog
        self.stop = stop
        #: Seconds that the run may take from the first round on.
        self._seconds: float | None = None
        self._failed: set[str] = set()
        #: Selects rounds on rank 0; None on the others.
        self._schedule: Schedule | None = None
        self._inspected: set[str] = set()
        self._pace = Pace()
        self._sources = Sources()
        #: Buffers of the transfers, and the group and settings of the case that last used them.
        self._room = (("", ""), TransferBuffer())
        #: Stores left open by a failure. They are kept and not closed: a library that fails during
        #: a collective close leaves the other ranks waiting forever, and releasing a store closes
        #: it too.
        self.abandoned: list[Store] = []
        experiment = spec.plan.experiment
        #: Whether this rank makes and removes the directories of repetitions.
        self._keeps_scratch = team.keeps(node_local=scratch.node_local)
        self._interpreter = InterpreterState()
        #: Cases that have changed it, each of which is named once.
        self._changing: set[str] = set()
        self._meter = _meter_of(experiment, scratch)
        self._allocator = Allocator()
        #: Load meter and settler of one rank of each node; None on the others.
        self._load = LoadMeter() if team.is_leader else None
        self._settler = Settler(scratch.directory, _SETTLE) if team.is_leader else None
        if recorder is not None:
            watchdog.between_steps = self._note_stop

    def run(self) -> bool:
        """Run all rounds; return whether the run completed, without an early stop."""
        begin = monotonic()
        self._seconds = self._time_limit()
        self._allocator.agree(self.team.comm)
        if self.recorder is not None:
            kinds = {case.parameters.settings for case in self.spec.plan.cases}
            self.recorder.run_record.allocator = self._allocator.states(kinds)
        if self.recorder is not None:
            from pffbench.run.schedule import Schedule  # needed on rank 0 only

            begun = {case for case, _ in self.spec.done}
            self._schedule = Schedule(self.spec.plan, self.recorder, begun)
        schedule = self._schedule
        experiment = self.spec.plan.experiment
        with objects_kept():
            following = self._from_leader(None if schedule is None else schedule.first())
            for number in range(experiment.rounds):
                if not following.cases:
                    return True
                cases = [self.spec.plan.cases[i] for i in following.cases]
                reads = {self.spec.plan.cases[i].id: n for i, n in following.reads.items()}
                if not self.spec.options.environment:  # else what started the ranks ordered them
                    cases = list(ordered_round(cases, number, experiment.seed))
                if number == 0 and experiment.time_budget is not None:
                    cases = [case for part in by_importance(self.spec.plan.cases) for case in part]
                for position, case in enumerate(cases):
                    if case.id in self._failed or (case.id, number) in self.spec.done:
                        continue
                    here = self._course(case, number, monotonic() - begin)
                    course = largest(self.team.comm, int(here))
                    if course == _Course.STOP:
                        return False
                    if course == _Course.LEAVE_OUT:
                        continue
                    if not self._has_turn(case, number):
                        return False
                    start = monotonic()
                    once = self._repetition(case, number, position, reads[case.id])
                    self._pace.note(case, monotonic() - start, once)
                self._measure_floor()
                if number == 0:  # not before: a copy larger than caches takes as long as the start
                    self._measure_memory()
                following = self._after(number, monotonic() - begin)
        return True

    def _course(self, case: Case, number: int, passed: float) -> _Course:
        """Return what this rank knows of the case that is due; rank 0 keeps to the time."""
        if self.stop.asked or self._out_of_time(case, passed):
            return _Course.STOP
        if self._schedule is None or number > 0 or self.spec.stage != "all":
            return _Course.RUN
        out = self._schedule.leaves_out(case, passed, self._pace.last)
        return _Course.LEAVE_OUT if out else _Course.RUN

    def _has_turn(self, case: Case, number: int) -> bool:
        """Wait for the turn of these ranks where others take turns; return whether it came."""
        if not self.spec.options.environment:
            return True
        self.watchdog.begin("waiting for a turn", math.inf)
        limit = self._patience(case)
        return wait_for_turn(self.team.comm, number, case.id, limit)

    def _note_stop(self) -> None:
        """Record, off the timer, that the run is to end: it may be killed first.

        Launchers and batch systems may allow less time after a signal than a repetition takes.
        """
        if self.stop.asked and self.recorder is not None:
            self.recorder.stopping()

    def _after(self, number: int, passed: float) -> RoundSpec:
        """Return the round that follows another one."""
        following = None
        with self._recording():
            if self._schedule is not None:
                following = self._schedule.after(number, passed, self._pace.last)
        return self._from_leader(following)

    def _from_leader(self, following: RoundSpec | None) -> RoundSpec:
        """Broadcast the decision of rank 0 and return it on all ranks."""
        sleeping_barrier(self.team.comm)  # it may judge all cases before, and need a whole core
        decision: RoundSpec = self.team.comm.bcast(following)
        return decision

    def _measure_floor(self) -> None:
        """Measure the floor again: on a busy machine a single measurement is unreliable."""
        self.watchdog.begin("the floor", self._limit(PATIENCE))
        floor = measure_floor(self.team.comm, self._meter)
        if self.recorder is not None:
            self.recorder.note_floor(floor)

    def _measure_memory(self) -> None:
        """Measure how fast all ranks together copy in memory, and get new memory."""
        self.watchdog.begin("the speed of memory", self._limit(PATIENCE))
        rates = memory_rates(self.team)
        if self.recorder is not None and rates is not None:
            self.recorder.note_memory_rates(rates)

    def _time_limit(self) -> float | None:
        """Return the limit asked for, or the time left to the batch job; None without one.

        Only rank 0 asks: from every rank of a large job this would be as many requests to the
        scheduler.
        """
        if self.recorder is None:
            return None
        asked = self.spec.options.max_time
        return seconds_left(os.environ) if asked is None else asked

    def _out_of_time(self, case: Case, passed: float) -> bool:
        """Return whether a repetition would exceed the time left, by the clock of rank 0."""
        if self.recorder is None or self._seconds is None:
            return False
        left, needed = self._seconds - passed, self._pace.expected(case)
        if left > needed:
            return False
        self.recorder.remark(
            f"stopped before {case.id}, which takes about {needed:.1f} s: {max(left, 0):.1f} s of "
            "the time that the run may take were left"
        )
        return True

    def _repetition(self, case: Case, number: int, position: int, reads: int) -> float:
        """Run and record a repetition; return the seconds that no other of the case needs."""
        repetition: Repetition | None = None
        about = f"{without_digests(case.id)}, repetition {number}"
        self.watchdog.begin(about, self._patience(case), case.id, number)
        peak = PeakMemory()
        started = datetime.now(UTC)
        try:
            settled = self._settle()
            repetition = self._prepared(case, number, reads, peak)
            before = self._meter.begin()
            if self._load is not None:
                self._load.begin()
            with collector_off(), self._counting(repetition), self._interpreter_kept(case):
                peak.reset()
                repetition.workload.run(repetition)
            load = None if self._load is None else self._load.since()
            conditions = Conditions(settled, load, self._meter.since(before)[0])
            if self.spec.stage != "write":
                self._clean(repetition)
            self._inspected.add(case.id)
            self._record(repetition, number, position, started, peak.read(), conditions)
        except PhaseFailedError as error:
            self._fail(case, number, error.failure, repetition)
            return 0.0
        return repetition.observed.once

    @contextmanager
    def _interpreter_kept(self, case: Case) -> Iterator[None]:
        """Restore what the code of a backend changes for all cases, and name the first time."""
        try:
            yield
        finally:
            changed = self._interpreter.restore()
            if changed and self.recorder is not None and case.id not in self._changing:
                self._changing.add(case.id)
                name = without_digests(case.id)
                self.recorder.remark(f"{name} changed {', '.join(changed)}, which was restored")

    @contextmanager
    def _counting(self, repetition: Repetition) -> Iterator[None]:
        """Have the meter count what it counts beside the kernel's counters; collective."""
        with AgreedStep(self.team.comm, "counting"):
            self._meter.start()
        try:
            yield
        except PhaseFailedError:
            with suppress(OSError):  # the case has failed already
                self._meter.stop()
            raise
        with AgreedStep(self.team.comm, "counting"):
            found = self._meter.stop()
        for what, amount in found.items():
            repetition.observed.count(*what, amount)

    def _clean(self, repetition: Repetition) -> None:
        """Remove the files of a repetition."""
        self.watchdog.step("cleaning")
        with AgreedStep(self.team.comm, "cleaning"):
            if self._keeps_scratch:
                self.scratch.remove(self.scratch.path(repetition.directory))

    def _settle(self) -> Settled:
        """Wait until earlier writes are on the device, on every node."""
        self.watchdog.step("settling")
        with AgreedStep(self.team.comm, "settling"):
            return Settled() if self._settler is None else self._settler.settle()

    def _prepared(self, case: Case, number: int, reads: int, peak: PeakMemory) -> Repetition:
        """Prepare a repetition, off the timer."""
        p, room = case.parameters, self._room_of(case)
        self._allocator.prepare(p.settings, arrays_of(p, self.team.size).blocks)
        seed = f"{self.spec.plan.experiment.seed}/{case.id}/{number}/{self.team.rank}"
        room.begin_at(random.Random(seed).randrange(PLACES))
        directory = repetition_directory(case.id, number)

        def make_directory(step: AgreedStep) -> None:
            step.name = "room for the file"
            self._require_room(case)
            step.name = "scratch"
            if self._keeps_scratch and self.spec.stage != "read":
                self.scratch.make_directory(directory)

        return prepare_repetition(
            self.spec.plan.experiment,
            case,
            number,
            self._sources,
            make_directory,
            team=self.team,
            scratch=self.scratch,
            directory=directory,
            clock=PhaseClock(self.team.comm, meter=self._meter, watchdog=self.watchdog),
            drop_hook=self.spec.options.drop_hook,
            inspect=case.id not in self._inspected,
            stage=self.spec.stage,
            room=room,
            reads=reads,
            warmup=number < self.spec.plan.experiment.warmup,
            counts_rows=self.spec.plan.experiment.unsafe,
            unsafe=case.id in self.spec.plan.unsafe,
            peak=peak,
        )

    def _require_room(self, case: Case) -> None:
        """Raise OSError if the library would not recover from a lack of room for a case's file.

        The file system, or the file size limit of this process, is too small for it then.
        """
        p = case.parameters
        if (
            p.shares_files
            and backend_class(p.backend).deadlocks_when_full
            and self.spec.stage != "read"
        ):
            cost = self.spec.plan.costs[case.id]
            asked = self.scratch.directory if self.team.is_root else None
            groups = p.groups(self.team.size)
            longest = (
                cost.space // copies_of_file(case, groups.ranks) * groups.largest // groups.ranks
            )
            require_room(asked, cost.space, longest)

    def _room_of(self, case: Case) -> TransferBuffer:
        """Return the buffers of the last repetition, if this one gets such memory for its bytes."""
        room, use = self._room[1], (case.group, case.parameters.settings)
        if self._room[0] != use:
            room.leave()
            self._room = use, room
        return room

    def _patience(self, case: Case) -> float:
        """Return the maximum seconds of a step; nearly the same on all ranks."""
        memory = int(self.spec.plan.experiment.memory)
        return self._limit(self._pace.patience(case, self.team.size, memory))

    def _limit(self, seconds: float) -> float:
        """Return the limit of a step that the user gives, or this one."""
        given = self.spec.plan.experiment.hang_timeout
        return seconds if given is None else given

    def _record(
        self,
        repetition: Repetition,
        number: int,
        position: int,
        started: datetime,
        peak: int,
        conditions: Conditions,
    ) -> None:
        self.watchdog.step("recording")
        gathered = gather(self.team, repetition, number, position, started, peak, conditions)
        with self._recording():
            if self.recorder is not None:
                assert gathered is not None
                self.recorder.record(gathered)

    @contextmanager
    def _recording(self) -> Iterator[None]:
        """End the run on all ranks, by ResultsLostError, when rank 0 cannot write results."""
        try:
            with AgreedStep(self.team.comm, "recording"):
                yield
        except PhaseFailedError as error:
            raise ResultsLostError(str(error)) from error

    def _fail(
        self, case: Case, number: int, failure: Failure, repetition: Repetition | None
    ) -> None:
        """End a case on all ranks: note why, close what can be closed, remove its files."""
        self.watchdog.step("ending a case that failed")
        self._failed.add(case.id)
        # The case may have opened all files allowed to the process.
        with nullcontext() if self.recorder is None else self.recorder.spare.lent():
            self._end(case, number, failure, repetition)

    def _end(
        self, case: Case, number: int, failure: Failure, repetition: Repetition | None
    ) -> None:
        with self._recording():
            if self.recorder is not None:
                self.recorder.fail(case, number, failure)
        if repetition is not None:
            everywhere = failure.ranks_failed == self.team.size
            self._close(repetition, failure.phase in _CLOSING, everywhere=everywhere)
            repetition.room.leave()  # a library may still use the memory
        sleeping_barrier(self.team.comm)
        # Files written by another job stay if this one fails before reading them.
        if self._keeps_scratch and (repetition is not None or self.spec.stage != "read"):
            self._clean_up_after(case, number)
        sleeping_barrier(self.team.comm)

    def _clean_up_after(self, case: Case, number: int) -> None:
        """Remove the files of a failed case; the scratch directory itself may have failed."""
        try:
            left = self.scratch.path(repetition_directory(case.id, number))
            self.scratch.remove(left, missing_ok=True)
        except (OSError, UserError) as error:
            if self.recorder is not None:
                self.recorder.remark(f"files of {case.id} could not be removed: {error}")

    def _close(self, repetition: Repetition, was_closing: bool, *, everywhere: bool) -> None:
        """Close the stores left open by a failure, if each rank can do so alone.

        A store whose close failed stays open: HDF5 crashes on a second attempt. Ranks on which a
        library refused an unsafe call can close together, because all of them were refused.
        """
        refused = repetition.unsafe and everywhere
        for store in repetition.open_stores:
            together = repetition.comm is not None and store.collective_close and not refused
            if not together and not was_closing:
                try:
                    store.close()
                except Exception:  # noqa: BLE001 -- the original failure is already recorded
                    pass
                else:
                    continue
            self.abandoned.append(store)
            if isinstance(store, Abandons) and (was_closing or not together):
                store.abandon()


def _meter_of(experiment: Experiment, scratch: Scratch) -> Meter:
    if experiment.counters == "calls":
        from pffbench.observe.system_calls import TracingMeter  # few runs count calls

        return TracingMeter(scratch.directory)
    return Meter(io=experiment.counters)


def prepare_repetition(
    experiment: Experiment,
    case: Case,
    number: int,
    sources: Sources,
    make_directory: Callable[[AgreedStep], None],
    **given: Any,
) -> Repetition:
    """Load the library of a case, and make its data source and its directory; collective.

    Parameters
    ----------
    experiment : Experiment
        The experiment.
    case : Case
        The case.
    number : int
        Number of the repetition, whose data it has.
    sources : Sources
        Makes the data source.
    make_directory : callable
        Makes the directory, in the step that it is given.
    **given
        Other fields of the `Repetition`.

    Raises
    ------
    PhaseFailedError
        On every rank, when one of them failed.
    """
    p, team = case.parameters, given["team"]
    groups = p.groups(team.size)
    for shifted in (False, p.cache == "shifted"):
        if not groups.alone:
            team.of_file(groups, shifted=shifted)  # the first call is collective
    with AgreedStep(team.comm, f"import of {p.backend}") as step:
        backend = backend_class(p.backend)(case.options, p.settings)
        for library in backend.capabilities.libraries(p.codec, case.options):
            import_module(library)  # before anything is timed
        step.name = "data source"
        seed = seed_of_repetition(experiment.seed, number)
        source = sources.get(p.source, p.dtype, seed, p.file, p.variable)
        pattern = workload(p.workload)
        arrays = pattern.arrays(p, team.size)
        types = {family.parameters.dtype or "" for family in arrays.families} - {"", p.dtype}
        others = {str(t): sources.get(p.source, t, seed, None, None) for t in types}
        make_directory(step)
    return Repetition(
        case=case,
        workload=pattern,
        backend=backend,
        source=source,
        arrays=arrays,
        others=others,
        memory=int(experiment.memory),
        **given,
    )
