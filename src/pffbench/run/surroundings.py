"""What surrounds a repetition: the load and the device of each node, and the state of a process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pffbench.interpreter import InterpreterState
from pffbench.mpi.agreement import AgreedStep, PhaseFailedError
from pffbench.observe.clock import collector_off
from pffbench.observe.machine import LoadMeter
from pffbench.observe.process_counters import Meter
from pffbench.record.gather import Conditions
from pffbench.run.context import RunContext
from pffbench.storage.durability import Settled, Settler
from pffbench.text import without_digests
from pffbench.workloads.repetition import Repetition

#: Most seconds to wait, before a repetition, until earlier writes have reached the device.
_SETTLE = 2.0


class Surroundings:
    """Measures and restores what surrounds repetitions; every method is collective.

    Parameters
    ----------
    context : RunContext
        Context of the run.
    meter : Meter
        Counters of this process.
    """

    def __init__(self, context: RunContext, meter: Meter) -> None:
        self._team = context.team
        self._meter = meter
        self._recorder = context.recorder
        #: Load meter and settler of one rank of each node; None on the others.
        self._load = LoadMeter() if self._team.is_leader else None
        self._settler = (
            Settler(context.scratch.directory, _SETTLE) if self._team.is_leader else None
        )
        self._interpreter = InterpreterState()
        #: Cases that have changed it, each of which is named once.
        self._changing: set[str] = set()

    def settle(self) -> Settled:
        """Wait until earlier writes are on the device, on every node."""
        with AgreedStep(self._team.comm, "settling"):
            return Settled() if self._settler is None else self._settler.settle()

    def run(self, repetition: Repetition, settled: Settled) -> Conditions:
        """Run a repetition; return the state of this rank's node meanwhile."""
        before = self._meter.begin()
        if self._load is not None:
            self._load.begin()
        with collector_off(), self._counting(repetition), self._interpreter_kept(repetition):
            repetition.place.peak.reset()
            repetition.subject.workload.run(repetition)
        load = None if self._load is None else self._load.since()
        return Conditions(settled, load, self._meter.since(before)[0])

    @contextmanager
    def _interpreter_kept(self, repetition: Repetition) -> Iterator[None]:
        """Restore what the code of a backend changes for all cases, and name the first time."""
        try:
            yield
        finally:
            changed, case = self._interpreter.restore(), repetition.subject.case.id
            if changed and self._recorder is not None and case not in self._changing:
                self._changing.add(case)
                name = without_digests(case)
                self._recorder.remark(f"{name} changed {', '.join(changed)}, which was restored")

    @contextmanager
    def _counting(self, repetition: Repetition) -> Iterator[None]:
        """Have the meter count what it counts beside the kernel's counters."""
        with AgreedStep(self._team.comm, "counting"):
            self._meter.start()
        try:
            yield
        except PhaseFailedError:
            with suppress(OSError):  # the case has failed already
                self._meter.stop()
            raise
        with AgreedStep(self._team.comm, "counting"):
            found = self._meter.stop()
        for what, amount in found.items():
            repetition.observed.count(*what, amount)
