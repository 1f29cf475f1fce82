"""The summary of a run: for every case and phase its spread, rates, ratio and roofline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

from pffbench.phases import MOVING, TOTALS
from pffbench.record.counters import median_counts
from pffbench.record.run import MeasuredRun, resolution_of
from pffbench.record.run_json import JsonObject, RunRecord, readable
from pffbench.record.samples import Sample
from pffbench.summary.dependence import variance_inflation
from pffbench.summary.headline import (
    Absence,
    Answer,
    ComparisonKey,
    Design,
    TotalTimes,
    absences,
    answers,
    comparison_key,
    reason_out,
    takes_part,
)
from pffbench.summary.labels import stored_as, variants_of
from pffbench.summary.phases import PhaseSummary, phase_summary
from pffbench.summary.rank_test import ALPHA, Ratio, fastest_of, ratio_of_times
from pffbench.summary.statistics import LoadSummary, load_summary

if TYPE_CHECKING:
    from pffbench.summary.sweep import Sweep

__all__ = ["CaseSummary", "PhaseSummary", "Summary", "resolution_of", "summarise", "summary_of"]


class CaseSummary(msgspec.Struct, frozen=True):
    """One case: its properties and the summaries of its phases.

    Parameters
    ----------
    sample : Sample
        Any of its samples, for the fields that are the same in all of them.
    raw : bool
        Whether it moves raw bytes.
    variant : str
        Its differences from other cases of the same backend in the comparison, in addition to
        settings and transfer, such as ``codec=gzip``; often empty.
    nbytes : int
        Bytes of array data that it writes.
    cache : str
        State of the page cache before reading, or ``unproved``.
    stored_as : str
        Storage layout of its arrays.
    disk_bytes, disk_files : int or None
        Size on disk.
    peak_memory : int
        Largest peak memory of any rank in any repetition, in bytes.
    phases : dict of str to PhaseSummary
        The phases in their order, then the sums.
    read_bytes : int
        Bytes of array data that it reads.
    counts : dict of (str, str) to float
        Counters, by phase and name: median over repetitions, of all ranks together.
    invalid : str
        Reason for its exclusion: it failed, or read wrong data; usually empty.
    repetitions : int
        Repetitions that count.
    disk_inodes : int or None
        Number of files and directories.
    entry : dict
        Its entry in `run.json`.
    """

    sample: Sample
    raw: bool
    variant: str
    nbytes: int
    cache: str
    stored_as: str
    disk_bytes: int | None
    disk_files: int | None
    peak_memory: int
    phases: Mapping[str, PhaseSummary]
    read_bytes: int = 0
    counts: Mapping[tuple[str, str], float] = {}
    invalid: str = ""
    repetitions: int = 0
    disk_inodes: int | None = None
    entry: JsonObject = msgspec.field(default_factory=dict)

    @property
    def parameters(self) -> JsonObject:
        """Its parameters, as in `run.json`."""
        found: JsonObject = self.entry["parameters"]
        return found

    @property
    def options(self) -> JsonObject:
        """Options of its backend, as in `run.json`."""
        return self.entry.get("options") or {}


class Summary(msgspec.Struct, frozen=True, dict=True):
    """The summary of a run.

    Attributes
    ----------
    record : RunRecord
        Contents of `run.json`.
    groups : dict of str to list of CaseSummary
        The cases of each comparison, as planned.
    gaps : tuple of str
        Missing or omitted parts of the run: a summary may cover only a part of it.
    answers : tuple of Answer
        The headline: the fastest contender of each comparison, and its certainty.
    cold_answers : tuple of Answer
        The same of cold reads beside the headline (``cold_reads: extra``).
    load : LoadSummary
        Load of the machine by other processes.
    absent : tuple of Absence
        Formats missing from the headline, since they failed.
    """

    record: RunRecord
    groups: Mapping[str, Sequence[CaseSummary]]
    gaps: tuple[str, ...] = ()
    answers: tuple[Answer, ...] = ()
    cold_answers: tuple[Answer, ...] = ()
    load: LoadSummary = msgspec.field(default_factory=LoadSummary)
    absent: tuple[Absence, ...] = ()

    @property
    def cases(self) -> list[CaseSummary]:
        """All cases."""
        return [case for group in self.groups.values() for case in group]

    @property
    def by_name(self) -> dict[str, CaseSummary]:
        """All cases by their names."""
        return {case.sample.case: case for case in self.cases}

    @property
    def all_answers(self) -> tuple[Answer, ...]:
        """The headline, then cold reads beside it."""
        return (*self.answers, *self.cold_answers)

    @property
    def margin(self) -> float:
        """The relative difference under which two ways count as equally fast."""
        return Design.of_experiment(self.record.experiment).margin

    @cached_property
    def sweeps(self) -> tuple[Sweep, ...]:
        """What the run says about settings other than the format; empty where none vary."""
        from pffbench.summary.sweep import sweeps_of  # which imports this module

        return sweeps_of(self)


def summarise(directory: str | Path) -> Summary:
    """Read a results directory and summarise it; errors as of `MeasuredRun.load`."""
    run = MeasuredRun.load(directory)
    with readable(directory):
        return summary_of(run)


def summary_of(run: MeasuredRun) -> Summary:
    """Summarise a run."""
    record = run.record
    groups: dict[str, list[str]] = defaultdict(list)
    for name, phases in run.rows.items():
        groups[next(iter(phases.values()))[0].group].append(name)
    counts = median_counts(run.directory)
    design = Design.of_experiment(record.experiment)
    headline = _headline(run, design)
    found = {}
    for group, names in groups.items():
        bounds = _Bounds(run, names, design, [a for a in headline if a.key.group == group])
        variants = variants_of(names, record)
        found[group] = [
            _case(run, name, bounds, variants[name], counts.get(name, {})) for name in names
        ]
    return Summary(
        record,
        found,
        run.gaps,
        answers=tuple(answer for answer in headline if not answer.extra),
        cold_answers=tuple(answer for answer in headline if answer.extra),
        load=load_summary(
            row for phases in run.rows.values() for rows in phases.values() for row in rows
        ),
        absent=tuple(absences(record.cases)),
    )


def _headline(run: MeasuredRun, design: Design) -> list[Answer]:
    """Return the headline."""
    return answers(run.record.cases, _totals(run), design, run.resolution)


def _totals(run: MeasuredRun) -> TotalTimes:
    return {
        total: {name: own[total] for name, own in run.seconds.items() if total in own}
        for total in TOTALS
    }


class _Bounds:
    """The references of a group's cases: the fastest of their comparison, and raw bytes.

    Cases that failed or read wrong data are excluded.

    Parameters
    ----------
    run : MeasuredRun
        The run.
    names : sequence of str
        The cases of the group.
    design : Design
        The design of the run.
    headline : sequence of Answer
        The headline of the group, which provides fastest cases and ratios.
    """

    def __init__(
        self, run: MeasuredRun, names: Sequence[str], design: Design, headline: Sequence[Answer]
    ) -> None:
        record, seconds = run.record, {name: run.seconds[name] for name in names}
        self._answers = {(answer.key, answer.total): answer for answer in headline}
        self._seconds = seconds
        self._design = design
        self._copy_rate = record.floor.get("memory_copy_bytes_per_second", 0.0)
        self._keys = {
            name: comparison_key(record.cases[name])
            for name in seconds
            if takes_part(record.cases[name]) and not record.cases[name].get("raw", False)
        }
        self._raw = [
            name
            for name in seconds
            if record.cases[name].get("raw", False)
            and record.cases[name].get("verified", False)
            and takes_part(record.cases[name])
        ]
        # Both are computed when first asked for.
        self._inflations: dict[tuple[str, int, bool], float] = {}
        self._best: dict[tuple[ComparisonKey, str], str | None] = {}

    def ratio(self, name: str, phase: str) -> Ratio | None:
        """Return the time of a case over that of the fastest one of its comparison."""
        if name not in self._keys:
            return None
        best = self._fastest(self._keys[name], phase)
        if best is None:
            return None
        if best == name:  # times compared with themselves would give an interval around 1
            return Ratio(len(self._seconds[name][phase]), 1.0, 1.0, 1.0, 1.0)
        answer = self._answers.get((self._keys[name], phase))
        if answer is not None and name in answer.ratios:
            return answer.ratios[name]
        mine, other = (self._seconds[case][phase] for case in (name, best))
        n = len(mine.keys() & other.keys()) or min(len(mine), len(other))
        inflation = self.inflation(phase, n, shared_cancels=True)
        level = ALPHA / len(self._design.looks)
        return ratio_of_times(mine, other, level, inflation, paired=self._design.paired)

    def roof(self, name: str, phase: str, nbytes: int) -> float | None:
        """Return the part of the speed of raw bytes that a case reached.

        Over the blocks that the case and the raw transfer have in common, since a machine that
        changes between blocks would change their ratio. Raw bytes cannot be faster than a copy in
        memory.
        """
        if name not in self._keys or phase not in MOVING:
            return None
        mine = self._seconds[name][phase]
        copied = nbytes / self._copy_rate if self._copy_rate else 0.0
        found = []
        for raw in self._raw:
            common = mine.keys() & self._seconds[raw].get(phase, {}).keys()
            if common:
                limit, own = (
                    float(np.median([times[block] for block in common]))
                    for times in (self._seconds[raw][phase], mine)
                )
                found.append(max(limit, copied) / own if own else 0.0)
        return min(found, default=0.0) or None

    def inflation(self, phase: str, n: int, *, shared_cancels: bool) -> float:
        """Return the variance inflation by dependence in a phase.

        The common part of a block's cases cancels in ratios, but not in the median of a case.
        """
        key = (phase, n, shared_cancels)
        if key not in self._inflations:
            ways = [times[phase] for times in self._seconds.values() if times.get(phase)]
            found = variance_inflation([ways], n, shared_cancels=shared_cancels)
            self._inflations[key] = found
        return self._inflations[key]

    def _fastest(self, key: ComparisonKey, phase: str) -> str | None:
        if (key, phase) in self._answers:
            return self._answers[key, phase].case
        if (key, phase) not in self._best:
            ways = {
                name: self._seconds[name][phase]
                for name, own in self._keys.items()
                if own == key and self._seconds[name].get(phase)
            }
            paired = self._design.paired
            self._best[key, phase] = fastest_of(ways, paired=paired) if len(ways) > 1 else None
        return self._best[key, phase]


def _case(
    run: MeasuredRun,
    name: str,
    bounds: _Bounds,
    variant: str,
    counts: Mapping[tuple[str, str], float],
) -> CaseSummary:
    by_phase, entry = run.rows[name], run.record.cases[name]
    first = next(iter(by_phase.values()))[0]
    phases: dict[str, PhaseSummary] = {}
    seconds = run.seconds[name]
    for phase, by_block in seconds.items():
        parts = TOTALS.get(phase, (phase,))
        moved = max((by_phase[part][0].bytes for part in parts if part in by_phase), default=0)
        phases[phase] = phase_summary(
            phase,
            seconds,
            by_phase,
            bounds.ratio(name, phase),
            bounds.roof(name, phase, moved),
            run.resolution,
            bounds.inflation(phase, len(by_block), shared_cancels=False),
            run.record.floor.get("memory_new_bytes_per_second"),
        )
    rows = [row for some in by_phase.values() for row in some]
    closed = next((row for row in rows if row.disk_bytes is not None), first)
    reads = [row for row in by_phase.get("read", ()) if not row.warmup]
    return CaseSummary(
        sample=first,
        raw=bool(entry.get("raw", False)),
        variant=variant,
        nbytes=next((row.bytes for row in rows if row.phase == "write"), 0),
        cache=" / ".join(sorted({row.cache for row in reads})),
        stored_as=stored_as(entry),
        disk_bytes=closed.disk_bytes,
        disk_files=closed.disk_files,
        peak_memory=max(row.peak_memory for row in rows),
        phases=phases,
        read_bytes=reads[0].bytes if reads else 0,
        counts=counts,
        invalid=reason_out(entry),
        repetitions=len({row.repetition for row in rows if not row.warmup}),
        disk_inodes=closed.disk_inodes,
        entry=entry,
    )


#: Headings of a table, with their counters: the pages or chunks that contain the reads, the bytes
#: passed by read(2) and related calls, and the bytes fetched from a device meanwhile.
AMPLIFICATIONS = {
    "×touched": "touched_bytes",
    "×called": "read_bytes",
    "×device": "device_read_bytes",
}


def amplification(
    case: CaseSummary, counter: str, part: Literal["read", "write"] = "read"
) -> float | None:
    """Return a counter, such as ``touched_bytes``, over the requested bytes; None: not counted."""
    counted = case.counts.get((part, counter))
    requested = case.read_bytes if part == "read" else case.nbytes
    return None if counted is None or not requested else counted / requested


def compression_ratio(case: CaseSummary) -> float | None:
    """Return the bytes of array data over those of the chunks in the files; None: not counted.

    The padding of chunks at the edges of an array makes it smaller, below 1 without compression.
    """
    stored = case.counts.get(("write", "stored_bytes"))
    return case.nbytes / stored if stored and case.nbytes else None
