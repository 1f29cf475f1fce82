"""The record of a run of several environments: one results directory of all job steps."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from msgspec.structs import replace

from pffbench.case import Case
from pffbench.grouping import grouped
from pffbench.parallel.agreement import Failure
from pffbench.parallel.clock import Floor
from pffbench.record.counters import Counted
from pffbench.record.gather import Count
from pffbench.record.ranks import RecordedTimes
from pffbench.record.run_json import RunRecord
from pffbench.record.samples import (
    CompletedRepetitions,
    Sample,
    keep_only,
    read_samples,
    whole,
)
from pffbench.run.recorder import Recorder
from pffbench.run.recording import moved
from pffbench.text import one_line
from pffbench_environments.resume import changed_environment
from pffbench_environments.steps import StepResult

#: Columns of `samples.csv` that are measured in each repetition.
_MEASURED = (
    "own_max", "own_median", "own_min", "synced_max", "seconds", "cpu_seconds", "minor_faults",
    "new_memory", "settle_seconds", "load", "busy_others", "steal", "cpu_pressure", "io_pressure",
    "idle_seconds",
)  # fmt: skip
#: The number of a repetition in a reason why a step is not valid.
_REPETITION = re.compile(r" repetition \d+:")
#: Facts of a case that a step finds out, in its entry of `run.json`.
_FACTS = ("stored_as", "disk", "transfer_facts", "invalid")


def floor_of(record: RunRecord) -> Floor:
    """Return the floor that a record has."""
    return Floor(**{key: record.floor[key] for key in ("own", "synced", "tick")})


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
            Position of its first case in the block.
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
                self._take_facts(case.id, step.cases[case.id])
        if step is not None:
            self._take_remarks(step, number)
            self._recorder.note_floor(floor_of(step))
            self._record.floor = step.floor | self._record.floor  # rates of memory
            self._record.allocator |= step.allocator
            self._note_changes(environment, step)
        self._record.save(self._recorder.directory)

    def _adopt(
        self, case: Case, result: StepResult, own: Sequence[int], number: int, place: int
    ) -> None:
        """Append repetitions of a step as one, by their medians."""
        of_ranks = result.ranks.get(case.id, {})
        times = [of_ranks[n] for n in own if n in of_ranks]
        counted = [row for row in result.counts if row.case == case.id and row.repetition in own]
        rows = (row for row in result.samples[case.id] if row.repetition in own)
        samples = [
            replace(
                _middle_sample(alike),
                repetition=number,
                warmup=number < self._warmup,
                position=place,
            )
            for alike in grouped((row.phase, row) for row in rows).values()
        ]
        self._recorder.append(
            samples, _middle_times(times) if times else None, _middle_counts(counted)
        )
        if number >= self._warmup:  # those of a step come with its first repetition
            self._recorder.progress.repetition(case, number)

    def _take_facts(self, case: str, entry: Mapping[str, Any]) -> None:
        mine = self._record.cases[case]
        for key in _FACTS:
            if entry.get(key):
                mine.setdefault(key, entry[key])

    def _take_remarks(self, step: RunRecord, number: int) -> None:
        """Take over remarks and reasons of a step, with the number of this run."""
        failed = {name for name, entry in step.cases.items() if "failure" in entry}
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
        if other := moved(self._record, step):
            trouble.append(other)
        for text in trouble:
            if text not in self._record.reasons:
                self._record.reasons.append(text)
                self._recorder.progress.message(f"INVALID: {text}")

    def note_failures(self, cases: Sequence[Case], result: StepResult, number: int) -> None:
        """Record the cases that failed, and the case during which a step died."""
        step, lost = result.record, []
        for case in cases:
            failure = {} if step is None else step.cases.get(case.id, {}).get("failure", {})
            if failure:
                told = {key: value for key, value in failure.items() if key != "repetition"}
                self._recorder.fail(case, number, Failure(**told))
            elif not result.numbers(case).issuperset(self._counted):
                lost.append(case)
        if not lost and result.trouble:
            self._recorder.remark(f"{cases[0].environment}, block {number}: {result.trouble}")
        # Before any case had begun none of them can be named. Cases run in turns, so that later the
        # first one of those that ran least often was at hand; the others may go on.
        if step is not None and lost:
            lost = [min(lost, key=lambda case: len(result.numbers(case)))]
        for case in lost:
            why = one_line(result.trouble or "the job step did not run it", 400)
            host = self._record.topology["hosts"][0]
            self._recorder.fail(case, number, Failure("job step", 0, host, why, "", 1))

    def forget_block(self, number: int) -> None:
        """Drop the rows of a block that a stopped run has begun, to run it again as a whole.

        Rows in other files are replaced by those of the same repetition.

        Parameters
        ----------
        number : int
            Number of its repetition in the run; warm-ups belong to the first one.
        """
        path = Path(self._recorder.directory) / "samples.csv"
        before = whole(read_samples(path)).finished
        first = 0 if number == self._warmup else number
        kept = frozenset(key for key in before if not first <= key[1] <= number)
        if len(kept) < len(before):
            keep_only(str(path), CompletedRepetitions(kept))


def _middle_sample(rows: Sequence[Sample]) -> Sample:
    """Return the row of one phase with the medians of what was measured in several repetitions."""
    first = rows[0]
    if len(rows) == 1:
        return first
    medians: dict[str, Any] = {
        name: median(getattr(row, name) for row in rows)
        for name in _MEASURED
        if all(getattr(row, name) is not None for row in rows)
    }
    for name in ("minor_faults", "new_memory"):
        if name in medians:
            medians[name] = int(medians[name])
    return replace(
        first,
        **medians,
        peak_memory=max(row.peak_memory for row in rows),
        valid=all(row.valid for row in rows),
        below_resolution=any(row.below_resolution for row in rows),
    )


def _middle_times(times: Sequence[RecordedTimes]) -> RecordedTimes:
    own, synced, peak = (
        np.median([getattr(t, name) for t in times], axis=0)
        for name in ("own", "synced", "peak_memory")
    )
    return times[0]._replace(own=own, synced=synced, peak_memory=peak.astype(np.int64))


def _middle_counts(rows: Sequence[Counted]) -> list[Count]:
    found = grouped(((row.phase, row.counter), row) for row in rows)
    return [
        Count(phase, counter, median(r.total for r in some), median(r.largest for r in some))
        for (phase, counter), some in found.items()
    ]
