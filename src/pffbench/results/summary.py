"""The summary of a run: for every case and phase its spread, rates, ratio and roofline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pffbench.results.record import RunRecord
from pffbench.results.samples import WRITE_PHASES, Sample, read_samples, whole
from pffbench.results.statistics import Caveat, Spread, spread, warnings_for

#: Sums of phases: what it takes until data are written as durably as asked, or are read.
TOTALS = {
    "write_total": WRITE_PHASES,
    "read_total": ("open", "open_array", "read", "close_read"),
}
#: Parameters that tables have columns for.
_OWN_COLUMNS = frozenset({"settings", "transfer"})
#: Phases in which data move: these have rates and a roofline.
MOVING = ("write", "read", *TOTALS)


@dataclass(frozen=True)
class PhaseSummary:
    """One phase, or sum of phases, of one case over the repetitions that count.

    Parameters
    ----------
    phase : str
        Name of the phase.
    seconds : Spread
        Job time: the slowest rank of each repetition.
    by_block : dict of int to float
        The same seconds for each repetition.
    rate : float or None
        Median bytes per second of all ranks together; None where no data move.
    per_array : float
        Median seconds divided by the number of arrays of all ranks.
    ratio : Spread or None
        Time over that of the best case of the comparison, block by block; None for raw bytes.
    roofline : float or None
        Part that was reached of the best speed of raw bytes: the smallest seconds of any raw
        transfer of the same bytes, in any repetition that counts, over the median seconds.
    warnings : tuple of Caveat
        What makes the numbers less trustworthy.
    """

    phase: str
    seconds: Spread
    by_block: Mapping[int, float]
    rate: float | None
    per_array: float
    ratio: Spread | None
    roofline: float | None
    warnings: tuple[Caveat, ...]


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


@dataclass(frozen=True)
class Summary:
    """A run, summarised.

    Parameters
    ----------
    record : RunRecord
        What `run.json` says.
    groups : dict of str to list of CaseSummary
        The cases of each comparison, in the order in which they ran.
    """

    record: RunRecord
    groups: Mapping[str, Sequence[CaseSummary]]

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
    """
    record = RunRecord.load(directory)
    path = Path(directory) / "samples.csv"
    try:
        samples = read_samples(path)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    complete = whole(samples, record.last_written)
    by_case: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        if complete.holds(sample.case, sample.repetition, sample.phase):
            by_case[sample.case].append(sample)
    groups: dict[str, list[str]] = defaultdict(list)
    for name, rows in by_case.items():
        if any(not row.warmup for row in rows):
            groups[rows[0].group].append(name)
    return Summary(
        record,
        {
            group: _group([by_case[name] for name in names], record)
            for group, names in groups.items()
        },
    )


def _group(cases: Sequence[Sequence[Sample]], record: RunRecord) -> list[CaseSummary]:
    seconds = {rows[0].case: _seconds(rows) for rows in cases}
    raw = {name for name in seconds if record.cases.get(name, {}).get("raw", False)}
    moving = {name for name in raw if record.cases[name].get("verified", False)}
    best = {phase: _fastest(seconds, set(seconds) - raw, phase) for phase in _phases(seconds)}
    limit = {phase: _limit(seconds, moving, phase) for phase in MOVING}
    variants = _variants([rows[0].case for rows in cases], record)
    return [
        _case(rows, seconds, best, limit, record, rows[0].case in raw, variants[rows[0].case])
        for rows in cases
    ]


def _variants(names: Sequence[str], record: RunRecord) -> dict[str, str]:
    """Return, for each case, the parameters that its backend was swept over."""
    told = {
        name: {**record.cases[name]["parameters"], **record.cases[name]["options"]}
        for name in names
        if name in record.cases
    }
    swept: dict[str, set[str]] = defaultdict(set)
    for mine in told.values():
        same = [other for other in told.values() if other["backend"] == mine["backend"]]
        swept[mine["backend"]] |= {k for k, v in mine.items() if any(o.get(k) != v for o in same)}
    return {
        name: " ".join(
            f"{key}={_short(mine[key])}"
            for key in mine
            if key in swept[mine["backend"]] - _OWN_COLUMNS
        )
        for name, mine in told.items()
    }


def _short(value: object) -> str:
    return "×".join(map(str, value)) if isinstance(value, list) else str(value)


Seconds = Mapping[str, Mapping[str, Mapping[int, float]]]


def _seconds(rows: Iterable[Sample]) -> dict[str, dict[int, float]]:
    """Return seconds by phase and repetition, sums of phases included, warm-ups left out."""
    found: dict[str, dict[int, float]] = defaultdict(dict)
    for row in rows:
        if not row.warmup:
            found[row.phase][row.repetition] = row.own_max
    for total, parts in TOTALS.items():
        present = [found[part] for part in parts if part in found]
        whole = set.intersection(*(set(part) for part in present)) if present else set()
        found[total] = {number: sum(part[number] for part in present) for number in sorted(whole)}
    return dict(found)


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
    rows: Sequence[Sample],
    seconds: Seconds,
    best: Mapping[str, Mapping[int, float] | None],
    limit: Mapping[str, float | None],
    record: RunRecord,
    raw: bool,
    variant: str,
) -> CaseSummary:
    first = rows[0]
    entry = record.cases.get(first.case, {})
    amounts = {row.phase: row.bytes for row in rows}
    nbytes = {"write": amounts.get("write", 0), "read": amounts.get("read", 0)}
    nbytes |= {"write_total": nbytes["write"], "read_total": nbytes["read"]}
    resolution = 100 * max(record.floor["barrier"], record.floor["tick"])
    phases: dict[str, PhaseSummary] = {}
    for phase, by_block in seconds[first.case].items():
        if not by_block:
            continue
        values = list(by_block.values())
        warmup = [row.own_max for row in rows if row.warmup and row.phase == phase]
        found = spread(values)
        moved = nbytes.get(phase, 0)
        phases[phase] = PhaseSummary(
            phase=phase,
            seconds=found,
            by_block=by_block,
            rate=moved / found.median if moved and found.median else None,
            per_array=found.median / first.arrays,
            ratio=None if raw else _ratio(by_block, best.get(phase)),
            roofline=None if raw or not (least := limit.get(phase)) else least / found.median,
            warnings=tuple(warnings_for(values, warmup, resolution)),
        )
    closed = next((row for row in rows if row.disk_bytes is not None), None)
    reads = [row for row in rows if row.phase == "read" and not row.warmup]
    return CaseSummary(
        sample=first,
        raw=raw,
        variant=variant,
        nbytes=nbytes["write"],
        cache=" / ".join(sorted({row.cache for row in reads})),
        stored_as=_stored(entry),
        disk_bytes=None if closed is None else closed.disk_bytes,
        disk_files=None if closed is None else closed.disk_files,
        peak_memory=max(row.peak_memory for row in rows),
        phases=phases,
    )


def _ratio(by_block: Mapping[int, float], other: Mapping[int, float] | None) -> Spread | None:
    """Return the ratio of times within the blocks that both have."""
    common = sorted(set(by_block) & set(other or {}))
    if other is None or not common or any(other[b] <= 0 for b in common):
        return None
    return spread([by_block[b] / other[b] for b in common])


def _stored(entry: Mapping[str, object]) -> str:
    stored = entry.get("stored_as")
    if not isinstance(stored, dict):
        return ""
    if entry.get("raw"):
        return "raw bytes"
    chunks = stored["chunks"]
    shape = "contiguous" if chunks is None else "chunks " + "×".join(map(str, chunks))
    parts = [shape, f"codec {stored['codec']}", f"fill {stored['fill']}"]
    parts += [f"{key} {value}" for key, value in stored["more"].items()]
    return ", ".join(parts)
