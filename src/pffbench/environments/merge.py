"""The record of a run of several environments: one results directory of all job steps."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from msgspec.structs import replace

from pffbench.case import Case
from pffbench.environments.step import StepResult
from pffbench.experiment.load import to_plain
from pffbench.experiment.plan import Plan
from pffbench.parallel.agreement import Failure
from pffbench.parallel.clock import Floor
from pffbench.provenance.binding import job_clock
from pffbench.provenance.inputs import changed_inputs
from pffbench.record.counters import Counted, append_counts
from pffbench.record.gather import Count
from pffbench.record.progress import Progress
from pffbench.record.ranks import RecordedTimes
from pffbench.record.run_json import RunRecord, digest_of
from pffbench.record.samples import (
    CompletedRepetitions,
    Sample,
    keep_only,
    read_samples,
    whole,
)
from pffbench.run.recorder import Recorder, floor_entry
from pffbench.run.resume import changed_software, moved

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


def merged_record(
    plan: Plan,
    experiment_file: str,
    run_id: str,
    scratch: str,
    probes: Mapping[str, Mapping[str, Any]],
    starts: Mapping[str, str],
) -> RunRecord:
    """Create the record of a new run of several environments.

    Parameters
    ----------
    plan : Plan
        The cases of all environments.
    experiment_file : str
        Path of the experiment.
    run_id : str
        Name of the run.
    scratch : str
        Directory in which the steps create theirs.
    probes : dict of str to dict
        Facts of each environment, as `pffbench.environments.probe` prints them.
    starts : dict of str to str
        Command that starts each environment.
    """
    plain = to_plain(plan.experiment)
    first = next(iter(probes.values()))
    topology, provenance = first["topology"], first["provenance"]
    return RunRecord(
        run_id=run_id,
        name=plan.experiment.name,
        question=plan.experiment.question,
        command=sys.orig_argv,
        ranks=plan.ranks,
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        experiment=plain,
        experiment_digest=digest_of(plain),
        experiment_file=experiment_file,
        cases={case.id: _entry(case, probes[case.environment]) for case in plan.cases},
        left_out=[{"case": name, "reason": reason} for name, reason in plan.left_out],
        limits=list(plan.limits),
        scratch=scratch,
        topology=_placement(topology),
        floor=floor_entry([Floor(**first["floor"])]),
        clock=job_clock(topology["nodes"], provenance.get("ranks", [])),
        startup=first["startup"],
        provenance=provenance,
        environments={
            name: {
                "start": starts[name],
                "provenance": probe["provenance"],
                "startup": probe["startup"],
            }
            for name, probe in probes.items()
        },
    )


def _placement(topology: Mapping[str, Any]) -> dict[str, Any]:
    counts = [topology["nodes"].count(node) for node in sorted(set(topology["nodes"]))]
    return {**topology, "ranks_per_node": counts}


def _entry(case: Case, probe: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry of a case: that of its environment, with what tells environments apart."""
    same = replace(case, environment="").id
    entry = dict(probe["entries"][same])
    parameters = {**entry["parameters"], "environment": case.environment}
    return entry | {"parameters": parameters, "same_case": same, "roofline": case.roofline}


class MergingRecorder(Recorder):
    """Adds the results of job steps to those of the run."""

    @property
    def progress(self) -> Progress:
        """The progress reports."""
        return self._progress

    @property
    def _often(self) -> int:
        """How often a step runs each case after warming up."""
        return int(self.run_record.experiment["step_repetitions"])

    def add(self, cases: Sequence[Case], result: StepResult, number: int, first: int) -> None:
        """Add what a step recorded of cases.

        Parameters
        ----------
        cases : sequence of Case
            The cases of one environment that it was to run, in their order.
        result : StepResult
            Its results.
        number : int
            Number of their repetition in the run.
        first : int
            Position of its first case in the block.
        """
        step = result.record
        for place, case in enumerate(cases):
            name = replace(case, environment="").id
            rows = result.samples.get(name, ())
            there = {row.repetition for row in rows}
            # The first step's warm-ups stand for those of the run; each step has its own.
            for own in range(self._warmup if number == self._warmup else 0):
                if own in there:
                    self._adopt(case, name, result, (own,), own, first + place)
            if is_complete(rows, self._warmup, self._often):
                counted = tuple(range(self._warmup, self._warmup + self._often))
                self._adopt(case, name, result, counted, number, first + place)
            if step is not None and (entry := step.cases.get(name)) is not None:
                self._take_facts(case.id, entry)
        if step is not None:
            self._take_remarks(step, {replace(c, environment="").id: c.id for c in cases}, number)
            self.note_floor(Floor(**{key: step.floor[key] for key in ("own", "synced", "tick")}))
            self.run_record.floor = step.floor | self.run_record.floor  # rates of memory
            self.run_record.allocator |= step.allocator
        self.run_record.save(self.directory)

    def _adopt(
        self,
        case: Case,
        name: str,
        result: StepResult,
        own: Sequence[int],
        number: int,
        place: int,
    ) -> None:
        """Append repetitions of a step to the raw files as one, by their medians.

        The rows come last, with which it counts as finished.
        """
        warmup = number < self._warmup
        of_ranks = result.ranks.get(name, {})
        if times := [of_ranks[n] for n in own if n in of_ranks]:
            self._ranks.append(case.id, number, *_middle_times(times))
        counted = [row for row in result.counts if row.case == name and row.repetition in own]
        if counted:
            append_counts(self.directory, case.id, number, warmup, _middle_counts(counted))
        by_phase: dict[str, list[Sample]] = defaultdict(list)
        for row in result.samples[name]:
            if row.repetition in own:
                by_phase[row.phase].append(row)
        samples = [
            replace(
                _middle_sample(rows),
                case=case.id,
                repetition=number,
                warmup=warmup,
                position=place,
                environment=case.environment,
            )
            for rows in by_phase.values()
        ]
        self._samples.append(samples)
        self._note_totals(samples)
        if not warmup:  # those of a step come with its first repetition
            self._progress.repetition(case, number)

    def _take_facts(self, case: str, entry: Mapping[str, Any]) -> None:
        mine = self.run_record.cases[case]
        for key in _FACTS:
            if entry.get(key):
                mine.setdefault(key, entry[key])

    def _take_remarks(self, step: RunRecord, names: Mapping[str, str], number: int) -> None:
        """Take over remarks and reasons of a step, with the names and number of this run."""
        record = self.run_record
        failed = {name for name, entry in step.cases.items() if "failure" in entry}
        for text in step.remarks:
            told = _renamed(text, names)
            if told not in record.remarks:
                record.remarks.append(told)
        for text in step.reasons:
            if any(text.startswith(f"{name} repetition") for name in failed):
                continue  # `fail` records it
            told = _REPETITION.sub(f" repetition {number}:", text)
            record.reasons.append(_renamed(told, names))

    def forget_block(self, number: int) -> None:
        """Drop the rows of a block that a stopped run has begun, to run it again as a whole.

        Rows in other files are replaced by those of the same repetition.

        Parameters
        ----------
        number : int
            Number of its repetition in the run; warm-ups belong to the first one.
        """
        path = Path(self.directory) / "samples.csv"
        before = whole(read_samples(path)).finished
        first = 0 if number == self._warmup else number
        kept = frozenset(key for key in before if not first <= key[1] <= number)
        if len(kept) < len(before):
            keep_only(str(path), CompletedRepetitions(kept))

    def note_failure(self, case: Case, result: StepResult, number: int) -> bool:
        """Record the failure of a case in a step; return whether it failed."""
        step = result.record
        entry = None if step is None else step.cases.get(replace(case, environment="").id)
        if entry is None or "failure" not in entry:
            return False
        told = {key: value for key, value in entry["failure"].items() if key != "repetition"}
        self.fail(case, number, Failure(**told))
        return True

    def note_step(self, environment: str, step: RunRecord) -> None:
        """Record where a step ran otherwise than its environment was found to be."""
        now = replace(
            self.run_record, provenance=self.run_record.environments[environment]["provenance"]
        )
        trouble = [f"{environment}: {text}" for text in changed_software(now, step)]
        trouble += changed_inputs(now.provenance, step.provenance)
        if other := moved(self.run_record, step):
            trouble.append(other)
        for text in trouble:
            if text not in self.run_record.reasons:
                self.run_record.reasons.append(text)
                self._progress.message(f"INVALID: {text}")


def is_complete(rows: Sequence[Sample], warmup: int, often: int) -> bool:
    """Return whether a step has run a case as often as it was to."""
    return {row.repetition for row in rows} >= set(range(warmup, warmup + often))


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
    found: dict[tuple[str, str], list[Counted]] = defaultdict(list)
    for row in rows:
        found[row.phase, row.counter].append(row)
    return [
        Count(phase, counter, median(r.total for r in some), median(r.largest for r in some))
        for (phase, counter), some in found.items()
    ]


def _renamed(text: str, names: Mapping[str, str]) -> str:
    for name, new in names.items():
        text = text.replace(name, new)
    return text

