"""The summary of a run: for every case and phase its spread, rates, ratio and roofline."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from msgspec.structs import replace

from pffbench.parallel.clock import RESOLUTION
from pffbench.phases import MOVING, TOTALS
from pffbench.record.counters import Medians, median_counts
from pffbench.record.run_json import RunRecord, readable
from pffbench.record.samples import Sample, is_torn, read_samples, whole
from pffbench.summary.dependence import variance_inflation
from pffbench.summary.headline import (
    Absence,
    Answer,
    ComparisonKey,
    Design,
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

__all__ = ["CaseSummary", "PhaseSummary", "Summary", "summarise"]


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
    run : str
        The results directory of its run, if several are joined; else empty.
    invalid : str
        Reason for its exclusion: it failed, or read wrong data; usually empty.
    repetitions : int
        Repetitions that count.
    disk_inodes : int or None
        Number of files and directories.
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
    counts: Mapping[tuple[str, str], float] = msgspec.field(default_factory=dict)
    run: str = ""
    invalid: str = ""
    repetitions: int = 0
    disk_inodes: int | None = None


class Summary(msgspec.Struct, frozen=True):
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

    def entry(self, case: CaseSummary) -> dict[str, Any]:
        """Return the entry of a case in `run.json`: parameters, options, storage."""
        return self.record.cases[case.sample.case]


def summarise(directory: str | Path) -> Summary:
    """Read a results directory and summarise it.

    Raises
    ------
    ValueError
        The directory holds no run that this version of pffbench can read.
    UserError
        It does, but its contents are not those that pffbench wrote.
    """
    record = RunRecord.load(directory)
    path = Path(directory) / "samples.csv"
    try:
        samples = read_samples(path)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    if unknown := {sample.case for sample in samples} - record.cases.keys():
        raise ValueError(f"{path} has rows of {min(unknown)}, which run.json does not know")
    with readable(directory):
        return _summarised(record, samples, directory)


#: Seconds of the repetitions of a case that count, by phase.
Seconds = Mapping[str, Mapping[int, float]]


def _summarised(record: RunRecord, samples: Sequence[Sample], directory: str | Path) -> Summary:
    complete = whole(samples, record.last_written)
    by_case: dict[str, list[Sample]] = defaultdict(list)
    left_out: set[tuple[str, int]] = set()
    finished = complete.finished
    for sample in samples:
        key = (sample.case, sample.repetition)
        # Of a million rows nearly all belong to completed repetitions: checked first.
        if key in finished or record.imported or complete.holds(*key, sample.phase):
            by_case[sample.case].append(sample)
        else:
            left_out.add(key)
    groups: dict[str, list[str]] = defaultdict(list)
    for name in record.cases:  # they ran in random order
        rows = by_case.get(name, [])
        if any(not row.warmup for row in rows):
            groups[rows[0].group].append(name)
    counts = median_counts(directory)
    design = Design.of_experiment(record.experiment)
    phases = {name: _by_phase(by_case[name]) for names in groups.values() for name in names}
    seconds = {name: _seconds(phases[name]) for name in phases}
    headline = _headline(seconds, record, design)
    found = {
        group: _group(
            {name: phases[name] for name in names},
            {name: seconds[name] for name in names},
            record,
            counts,
            _Bounds(
                record,
                {name: seconds[name] for name in names},
                design,
                [answer for answer in headline if answer.key.group == group],
            ),
        )
        for group, names in groups.items()
    }
    gaps = gaps_of(Path(directory) / "samples.csv", left_out - complete.written)
    load = load_summary(sample for rows in by_case.values() for sample in rows)
    absent = () if record.imported else tuple(absences(record.cases))
    return Summary(
        record,
        found,
        gaps,
        answers=tuple(answer for answer in headline if not answer.extra),
        cold_answers=tuple(answer for answer in headline if answer.extra),
        load=load,
        absent=absent,
    )


def _headline(seconds: Mapping[str, Seconds], record: RunRecord, design: Design) -> list[Answer]:
    """Return the headline; without results of other programs, which nobody verified."""
    if record.imported:
        return []
    times = {
        total: {name: own[total] for name, own in seconds.items() if own.get(total)}
        for total in TOTALS
    }
    return answers(record.cases, times, design, resolution_of(record))


def _group(
    by_phase: Mapping[str, Mapping[str, Sequence[Sample]]],
    seconds: Mapping[str, Seconds],
    record: RunRecord,
    counts: Medians,
    bounds: _Bounds,
) -> list[CaseSummary]:
    variants = variants_of(list(by_phase), record)
    found = [
        _case(phases, seconds[name], bounds, record, variants[name])
        for name, phases in by_phase.items()
    ]
    return [replace(case, counts=counts.get(case.sample.case, {})) for case in found]


def _by_phase(rows: Iterable[Sample]) -> dict[str, list[Sample]]:
    """Return the rows of a case by their phase, warm-ups included."""
    found: dict[str, list[Sample]] = defaultdict(list)
    for row in rows:
        found[row.phase].append(row)
    return dict(found)


def _seconds(phases: Mapping[str, Sequence[Sample]]) -> dict[str, dict[int, float]]:
    """Return seconds by phase and repetition, sums of phases included, warm-ups left out."""
    counted = {phase: _by_block(rows) for phase, rows in phases.items()}
    found = {phase: by_block for phase, by_block in counted.items() if by_block}
    for total, parts in TOTALS.items():
        present = [found[part] for part in parts if part in found]
        whole = set.intersection(*(set(part) for part in present)) if present else set()
        found[total] = {number: sum(part[number] for part in present) for number in sorted(whole)}
    return found


def _by_block(rows: Sequence[Sample]) -> dict[int, float]:
    """Return the seconds of the repetitions that count, as separate numbers.

    Numbers of the rows would keep the memory of a million rows, which is released with the rows.

    Times of a clock that ran backwards, which made the run INVALID, are left out. Those of rows
    that claim to be valid were rejected when the table was read.
    """
    counted = [(r.repetition, r.job) for r in rows if not r.warmup and 0 <= r.job < math.inf]
    numbers = np.array([number for number, _ in counted], dtype=np.int64)
    seconds = np.array([seconds for _, seconds in counted], dtype=np.float64)
    return dict(zip(numbers.tolist(), seconds.tolist(), strict=True))


class _Bounds:
    """The references of a group's cases: the fastest of their comparison, and raw bytes.

    Cases that failed or read wrong data are excluded.

    Parameters
    ----------
    record : RunRecord
        The run.
    seconds : dict
        Seconds by repetition, by phase, of each case of the group.
    level : float
        Maximum probability that an interval of a ratio misses the true ratio.
    headline : sequence of Answer
        The headline of the group, which provides fastest cases and ratios.
    """

    def __init__(
        self,
        record: RunRecord,
        seconds: Mapping[str, Seconds],
        design: Design,
        headline: Sequence[Answer],
    ) -> None:
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

    def limit(self, name: str, phase: str, nbytes: int) -> float | None:
        """Return the seconds of the raw transfer: not less than copying the bytes in memory."""
        if name not in self._keys or phase not in MOVING:
            return None
        known = [self._seconds[raw].get(phase) for raw in self._raw]
        medians = [float(np.median(list(times.values()))) for times in known if times]
        if not medians:
            return None
        return max(min(medians), nbytes / self._copy_rate if self._copy_rate else 0.0)

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

    @cached_property
    def _inflations(self) -> dict[tuple[str, int, bool], float]:
        return {}

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

    @cached_property
    def _best(self) -> dict[tuple[ComparisonKey, str], str | None]:
        return {}


def _case(
    by_phase: Mapping[str, Sequence[Sample]],
    seconds: Mapping[str, Mapping[int, float]],
    bounds: _Bounds,
    record: RunRecord,
    variant: str,
) -> CaseSummary:
    first = next(iter(by_phase.values()))[0]
    entry = record.cases.get(first.case, {})
    resolution = resolution_of(record)
    phases: dict[str, PhaseSummary] = {}
    for phase, by_block in seconds.items():
        if not by_block:
            continue
        parts = TOTALS.get(phase, (phase,))
        moved = max((by_phase[part][0].bytes for part in parts if part in by_phase), default=0)
        phases[phase] = phase_summary(
            phase,
            by_block,
            by_phase,
            bounds.ratio(first.case, phase),
            bounds.limit(first.case, phase, moved),
            resolution,
            bounds.inflation(phase, len(by_block), shared_cancels=False),
            record.floor.get("memory_new_bytes_per_second"),
        )
    rows = [row for some in by_phase.values() for row in some]
    closed = next((row for row in rows if row.disk_bytes is not None), None)
    reads = [row for row in by_phase.get("read", ()) if not row.warmup]
    return CaseSummary(
        sample=first,
        raw=bool(entry.get("raw", False)),
        variant=variant,
        nbytes=next((row.bytes for row in rows if row.phase == "write"), 0),
        cache=" / ".join(sorted({row.cache for row in reads})),
        stored_as=stored_as(entry),
        disk_bytes=None if closed is None else closed.disk_bytes,
        disk_files=None if closed is None else closed.disk_files,
        peak_memory=max(row.peak_memory for row in rows),
        phases=phases,
        read_bytes=reads[0].bytes if reads else 0,
        invalid=reason_out(entry),
        repetitions=len({row.repetition for row in rows if not row.warmup}),
        disk_inodes=None if closed is None else closed.disk_inodes,
    )


def resolution_of(record: RunRecord) -> float:
    """Return the resolution of the harness in seconds."""
    floor = record.floor
    return RESOLUTION * max(floor.get(key, 0.0) for key in (record.clock, "tick"))


def gaps_of(path: Path, cut: Set[tuple[str, int]]) -> tuple[str, ...]:
    """Describe omitted rows and repetitions.

    Parameters
    ----------
    path : Path
        `samples.csv`.
    cut : set of (str, int)
        The incomplete repetitions, as case and number.
    """
    found = []
    if is_torn(path):
        found.append(f"{path.name} ends in the midst of a line, which is left out")
    if cut:
        are = "s were" if len(cut) > 1 else " was"
        found.append(f"{len(cut)} repetition{are} cut short: the rows are left out")
    return tuple(found)


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


def compression_ratio(case: CaseSummary, *, padded: bool = False) -> float | None:
    """Return the bytes of array data over those of the chunks in the files; None: not counted.

    Parameters
    ----------
    case : CaseSummary
        The case.
    padded : bool
        Count the padding of chunks at the edges of an array as data: the compressor's input over
        its output. Otherwise padding makes the ratio smaller, below 1 without any compression.
    """
    stored = case.counts.get(("write", "stored_bytes"))
    data = case.counts.get(("write", "padded_bytes"), 0.0) if padded else float(case.nbytes)
    return data / stored if stored and data else None
