"""The summary of a run: for every case and phase its spread, rates, ratio and roofline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from pffbench.results.amplification import Medians, median_counts
from pffbench.results.gaps import gaps_of
from pffbench.results.phases import MOVING, TOTALS, PhaseSummary, phase_summary
from pffbench.results.record import RunRecord, readable
from pffbench.results.samples import Sample, read_samples
from pffbench.results.whole import whole
from pffbench.results.wording import stored_as, variants_of

__all__ = ["MOVING", "TOTALS", "CaseSummary", "PhaseSummary", "Summary", "summarise"]


@dataclass(frozen=True)
class CaseSummary:
    """One case: what it is and how its phases went.

    Parameters
    ----------
    sample : Sample
        Any sample of it, for what is the same in all of them.
    raw : bool
        Whether it moves raw bytes.
    variant : str
        What sets it apart from other cases of the same backend in the comparison, beside
        settings and transfer, such as ``codec=gzip``; often empty.
    nbytes : int
        Bytes of array data that it writes.
    cache : str
        State of the page cache before reading, or ``unproved``.
    stored_as : str
        How its arrays are really stored.
    disk_bytes, disk_files : int or None
        What lay on disk.
    peak_memory : int
        Largest peak memory of any rank in any repetition, in bytes.
    phases : dict of str to PhaseSummary
        The phases in their order, then the sums.
    read_bytes : int
        Bytes of array data that it reads.
    counts : dict of (str, str) to float
        What was counted, by phase and counter: median over repetitions, of all ranks together.
    run : str
        The results directory that it comes from, where several are joined; else empty.
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
    counts: Mapping[tuple[str, str], float] = field(default_factory=dict)
    run: str = ""


@dataclass(frozen=True)
class Summary:
    """A run, summarised.

    Parameters
    ----------
    record : RunRecord
        What `run.json` says.
    groups : dict of str to list of CaseSummary
        The cases of each comparison, in the order in which they ran.
    gaps : tuple of str
        What of the run is not there, or was left out: a summary can be of a part of it.
    """

    record: RunRecord
    groups: Mapping[str, Sequence[CaseSummary]]
    gaps: tuple[str, ...] = ()

    @property
    def cases(self) -> list[CaseSummary]:
        """All cases."""
        return [case for group in self.groups.values() for case in group]


def summarise(directory: str | Path) -> Summary:
    """Read a results directory and summarise it.

    Raises
    ------
    ValueError
        The directory holds no run that this version of pffbench can read.
    UserError
        It does, but what is in it is not what pffbench wrote.
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


def _summarised(record: RunRecord, samples: Sequence[Sample], directory: str | Path) -> Summary:
    complete = whole(samples, record.last_written)
    by_case: dict[str, list[Sample]] = defaultdict(list)
    left_out: set[tuple[str, int]] = set()
    finished = complete.finished
    for sample in samples:
        key = (sample.case, sample.repetition)
        # Of a million rows nearly all are of repetitions that came to their end: asked first.
        if key in finished or record.imported or complete.holds(*key, sample.phase):
            by_case[sample.case].append(sample)
        else:
            left_out.add(key)
    groups: dict[str, list[str]] = defaultdict(list)
    for name, rows in by_case.items():
        if any(not row.warmup for row in rows):
            groups[rows[0].group].append(name)
    counts = median_counts(directory)
    return Summary(
        record,
        {
            group: _group([by_case[name] for name in names], record, counts)
            for group, names in groups.items()
        },
        gaps_of(Path(directory) / "samples.csv", left_out - complete.written),
    )


def _group(
    cases: Sequence[Sequence[Sample]], record: RunRecord, counts: Medians
) -> list[CaseSummary]:
    by_phase = {rows[0].case: _by_phase(rows) for rows in cases}
    seconds = {name: _seconds(phases) for name, phases in by_phase.items()}
    raw = {name for name in seconds if record.cases.get(name, {}).get("raw", False)}
    moving = {name for name in raw if record.cases[name].get("verified", False)}
    best = {phase: _fastest(seconds, set(seconds) - raw, phase) for phase in _phases(seconds)}
    limit = {phase: _limit(seconds, moving, phase) for phase in MOVING}
    variants = variants_of([rows[0].case for rows in cases], record)
    found = [
        _case(phases, seconds, best, limit, record, name in raw, variants[name])
        for name, phases in by_phase.items()
    ]
    return [replace(case, counts=counts.get(case.sample.case, {})) for case in found]


Seconds = Mapping[str, Mapping[str, Mapping[int, float]]]


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


def _by_block(rows: Iterable[Sample]) -> dict[int, float]:
    """Return the seconds of the repetitions that count, as numbers of their own.

    Those of the rows lie between all that a row has: kept, they would keep the memory of a million
    rows, which is given back when the rows are forgotten.
    """
    counted = [(row.repetition, row.own_max) for row in rows if not row.warmup]
    numbers = np.array([number for number, _ in counted], dtype=np.int64)
    seconds = np.array([seconds for _, seconds in counted], dtype=np.float64)
    return dict(zip(numbers.tolist(), seconds.tolist(), strict=True))


def _phases(seconds: Seconds) -> list[str]:
    return list(dict.fromkeys(phase for phases in seconds.values() for phase in phases))


def _fastest(seconds: Seconds, names: Iterable[str], phase: str) -> Mapping[int, float] | None:
    """Return the seconds by repetition of the case with the smallest median."""
    found = [seconds[name][phase] for name in sorted(names) if seconds[name].get(phase)]
    return min(found, key=lambda by_block: float(np.median(list(by_block.values()))), default=None)


def _limit(seconds: Seconds, raw: Iterable[str], phase: str) -> float | None:
    """Return the smallest seconds that any raw transfer ever took: a bound is a best case."""
    return min((s for name in raw for s in seconds[name].get(phase, {}).values()), default=None)


def _case(
    by_phase: Mapping[str, Sequence[Sample]],
    seconds: Seconds,
    best: Mapping[str, Mapping[int, float] | None],
    limit: Mapping[str, float | None],
    record: RunRecord,
    raw: bool,
    variant: str,
) -> CaseSummary:
    first = next(iter(by_phase.values()))[0]
    entry = record.cases.get(first.case, {})
    resolution = 100 * max(record.floor.get(key, 0.0) for key in ("barrier", "tick"))
    phases: dict[str, PhaseSummary] = {}
    for phase, by_block in seconds[first.case].items():
        if not by_block:
            continue
        limited = None if raw else limit.get(phase)
        compared = None if raw else best.get(phase)
        phases[phase] = phase_summary(phase, by_block, by_phase, compared, limited, resolution)
    rows = [row for some in by_phase.values() for row in some]
    closed = next((row for row in rows if row.disk_bytes is not None), None)
    reads = [row for row in by_phase.get("read", ()) if not row.warmup]
    return CaseSummary(
        sample=first,
        raw=raw,
        variant=variant,
        nbytes=next((row.bytes for row in rows if row.phase == "write"), 0),
        cache=" / ".join(sorted({row.cache for row in reads})),
        stored_as=stored_as(entry),
        disk_bytes=None if closed is None else closed.disk_bytes,
        disk_files=None if closed is None else closed.disk_files,
        peak_memory=max(row.peak_memory for row in rows),
        phases=phases,
        read_bytes=reads[0].bytes if reads else 0,
    )
