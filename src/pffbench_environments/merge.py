"""The record of a run of several environments: one results directory of all job steps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median
from typing import TypeVar

import numpy as np
from msgspec.structs import asdict, replace

from pffbench.case import Case
from pffbench.grouping import grouped
from pffbench.mpi.agreement import Failure
from pffbench.observe.clock import Floor
from pffbench.observe.machine import MemoryRates
from pffbench.record.ranks import RecordedTimes
from pffbench.record.repetitions import (
    Counted,
    MachineState,
    PhaseTimes,
    Repetition,
    read_repetitions,
)
from pffbench.record.run_json import CaseEntry, FloorEntry, RunRecord
from pffbench.run.recorder import Recorder
from pffbench.run.resume import moved
from pffbench.text import one_line
from pffbench_environments.resume import changed_environment
from pffbench_environments.steps import StepResult

Measured = TypeVar("Measured", PhaseTimes, MachineState, Counted)
#: The number of a repetition in a reason why a step is not valid.
_REPETITION = re.compile(r" repetition \d+:")


def floor_of(entry: FloorEntry) -> Floor:
    """Return the floor that a record has."""
    return Floor(entry.own, entry.synced, entry.tick)


class StepMerger:
    """Adds the results of job steps to those of the run.

    Parameters
    ----------
    recorder : Recorder
        Recorder of the run.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._record = recorder.run_record
        self._warmup = recorder.warmup
        often = int(self._record.experiment["step_repetitions"])
        #: The repetitions of a step that count.
        self._counted = range(self._warmup, self._warmup + often)

    def add(
        self, environment: str, cases: Sequence[Case], result: StepResult, number: int, first: int
    ) -> None:
        """Add what a step recorded.

        Parameters
        ----------
        environment : str
            Name of its environment.
        cases : sequence of Case
            The cases that it was to run, in their order.
        result : StepResult
            Its results.
        number : int
            Number of their repetition in the run.
        first : int
            Position of its first case in the round.
        """
        step = result.record
        for place, case in enumerate(cases, start=first):
            there = result.numbers(case)
            # The first step's warm-ups stand for those of the run; each step has its own.
            for own in range(self._warmup if number == self._warmup else 0):
                if own in there:
                    self._adopt(case, result, (own,), own, place)
            if there.issuperset(self._counted):
                self._adopt(case, result, self._counted, number, place)
            if step is not None and case.id in step.cases:
                _take_facts(self._record.cases[case.id], step.cases[case.id])
        if step is not None:
            self._take_remarks(step, number)
            floor = step.floor
            rates = None
            if copy := floor.memory_copy_bytes_per_second:
                rates = MemoryRates(copy, floor.memory_new_bytes_per_second)
            self._recorder.note_floor(floor_of(floor), rates)
            self._record.allocator |= step.allocator
            self._note_changes(environment, step)
        self._recorder.save()

    def _adopt(
        self, case: Case, result: StepResult, own: Sequence[int], number: int, place: int
    ) -> None:
        """Append repetitions of a step as one, by their medians."""
        repetition = replace(
            _middle([one for one in result.repetitions[case.id] if one.round in own]),
            round=number,
            position=place,
            warmup=number < self._warmup,
        )
        of_ranks = result.ranks.get(case.id, {})
        times = [of_ranks[n] for n in own if n in of_ranks]
        self._recorder.append(repetition, _middle_times(times) if times else None)
        if number >= self._warmup:  # those of a step come with its first repetition
            self._recorder.progress.repetition(case, number)

    def _take_remarks(self, step: RunRecord, number: int) -> None:
        """Take over remarks and reasons of a step, with the number of this run."""
        failed = {name for name, entry in step.cases.items() if entry.failure}
        for text in step.remarks:
            if text not in self._record.remarks:
                self._record.remarks.append(text)
        for text in step.reasons:
            # Those of failures come with them.
            if not any(text.startswith(f"{name} repetition") for name in failed):
                self._record.reasons.append(_REPETITION.sub(f" repetition {number}:", text))

    def _note_changes(self, environment: str, step: RunRecord) -> None:
        """Record where a step ran otherwise than its environment was found to be."""
        trouble = [*changed_environment(self._record, environment, step.provenance)]
        if moved(self._record, step.topology.hosts):
            trouble.append(f"{environment}: a job step ran on other hosts than the run")
        for text in trouble:
            if text not in self._record.reasons:
                self._record.reasons.append(text)
                self._recorder.progress.message(f"INVALID: {text}")

    def note_failures(self, cases: Sequence[Case], result: StepResult, number: int) -> None:
        """Record the cases that failed, and the case during which a step died."""
        step, lost = result.record, []
        for case in cases:
            entry = None if step is None else step.cases.get(case.id)
            if entry is not None and entry.failure:
                told = {k: v for k, v in asdict(entry.failure).items() if k != "repetition"}
                self._recorder.fail(case, number, Failure(**told))
            elif not result.numbers(case).issuperset(self._counted):
                lost.append(case)
        if not lost and result.trouble:
            self._recorder.remark(f"{cases[0].environment}, round {number}: {result.trouble}")
        # Before any case had begun none of them can be named. Cases run in turns, so that later the
        # first one of those that ran least often was at hand; the others may go on.
        if step is not None and lost:
            lost = [min(lost, key=lambda case: len(result.numbers(case)))]
        for case in lost:
            why = one_line(result.trouble or "the job step did not run it", 400)
            host = self._record.topology.hosts[0]
            self._recorder.fail(case, number, Failure("job step", 0, host, why, "", 1))

    def forget_round(self, number: int) -> None:
        """Drop what a stopped run has recorded of a round, to run it again as a whole.

        Rows in other files are replaced by those of the same repetition.

        Parameters
        ----------
        number : int
            Number of its repetition in the run; warm-ups belong to the first one. It is the last
            one that has begun.
        """
        first = 0 if number == self._warmup else number
        known = read_repetitions(self._recorder.directory)
        self._recorder.keep([one for one in known if one.round < first])


def _take_facts(mine: CaseEntry, found: CaseEntry) -> None:
    """Take over facts of a case that a step finds out, of the first step that does."""
    mine.stored_as = mine.stored_as or found.stored_as
    mine.disk = mine.disk or found.disk
    mine.transfer_facts = mine.transfer_facts or found.transfer_facts
    mine.invalid = mine.invalid or found.invalid


def _middle(alike: Sequence[Repetition]) -> Repetition:
    """Return a repetition with the medians of what was measured in several."""
    first = alike[0]
    names = [times.phase for times in first.phases]
    counts = grouped(((one.phase, one.name), one) for each in alike for one in each.counts)
    read = first.read
    if read is not None and read.new_memory is not None:
        new = [one.read.new_memory for one in alike if one.read and one.read.new_memory is not None]
        read = replace(read, new_memory=int(median(new)))
    return replace(
        first,
        phases=tuple(_medians([one.by_phase[name] for one in alike]) for name in names),
        totals={total: median(one.totals[total] for one in alike) for total in first.totals},
        valid=all(one.valid for one in alike),
        peak_memory=max(one.peak_memory for one in alike),
        machine=_medians([one.machine for one in alike]),
        read=read,
        counts=tuple(map(_medians, counts.values())),
    )


def _medians(alike: Sequence[Measured]) -> Measured:
    """Return the first of some records, with the medians of their numbers that are not whole."""
    first, others = alike[0], [asdict(one) for one in alike]
    numbers = [name for name, value in others[0].items() if isinstance(value, float)]
    return replace(first, **{name: median(one[name] for one in others) for name in numbers})


def _middle_times(times: Sequence[RecordedTimes]) -> RecordedTimes:
    own, synced, peak = (
        np.median([getattr(t, name) for t in times], axis=0)
        for name in ("own", "synced", "peak_memory")
    )
    return times[0]._replace(own=own, synced=synced, peak_memory=peak.astype(np.int64))
