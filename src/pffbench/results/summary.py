"""The summary of a run: for every case and phase its spread, rates and roofline, and the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Literal

import msgspec

from pffbench.errors import UserError
from pffbench.phases import MOVING
from pffbench.record.repetitions import median_counts
from pffbench.record.run import MeasuredRun
from pffbench.record.run_json import CaseEntry, JsonObject, RunRecord, readable
from pffbench.results.answer import Answer, answer_of
from pffbench.results.cells import Cell, cells_of, keys_of
from pffbench.results.comparisons import Compared, compare_work
from pffbench.results.load import LoadSummary, summarise_load
from pffbench.results.names import labels
from pffbench.results.phases import PhaseSummary, phase_summary
from pffbench.results.purposes import usable
from pffbench.storage.durability import DiskUsage

if TYPE_CHECKING:
    import pandas as pd


class EmptyRunError(UserError):
    """A run without a repetition that counts."""


class CaseSummary(msgspec.Struct, frozen=True):
    """One case: its properties and the summaries of its phases."""

    #: Its name in `run.json`.
    name: str
    #: What sets it apart from the other cases of its group, in words.
    label: str
    #: Its parameters and options as text; see `pffbench.results.cells.keys_of`.
    keys: Mapping[str, str]
    #: Its entry in `run.json`.
    entry: CaseEntry
    #: Number of ranks.
    ranks: int
    #: The phases in their order, then the sums.
    phases: Mapping[str, PhaseSummary]
    #: Repetitions that count.
    repetitions: int
    #: Bytes of array data that it writes, and that it reads.
    nbytes: int
    read_bytes: int
    #: State of the page cache before reading, or ``unproved``.
    cache: str
    #: Size on disk.
    disk: DiskUsage | None
    #: Largest peak memory of any rank in any repetition, in bytes.
    peak_memory: int
    #: Counters, by phase and name: median over repetitions, of all ranks together.
    counts: Mapping[tuple[str, str], float]

    @property
    def parameters(self) -> JsonObject:
        """Its parameters, as in `run.json`."""
        return self.entry.parameters

    @property
    def options(self) -> JsonObject:
        """Options of its backend, as in `run.json`."""
        return self.entry.options

    @property
    def backend(self) -> str:
        """Name of its backend."""
        return self.entry.backend

    @property
    def raw(self) -> bool:
        """Whether it moves raw bytes."""
        return self.entry.raw

    @property
    def invalid(self) -> str:
        """Why it takes part in no comparison; usually empty."""
        return self.entry.excluded


class Summary(msgspec.Struct, frozen=True):
    """The summary of a run."""

    #: The run.
    run: MeasuredRun
    #: The cases of each group, as planned: those that move the same bytes in the same boxes.
    groups: Mapping[str, Sequence[CaseSummary]]
    #: Load of the machine by other processes.
    load: LoadSummary
    #: The totals of each case.
    cells: Sequence[Cell]
    #: The answer; None where no repetition counts.
    answer: Answer | None
    #: The decision and the comparisons that it rests on; None if it has none.
    compared: Compared | None = None

    @property
    def record(self) -> RunRecord:
        """Contents of `run.json`."""
        return self.run.record

    @property
    def timed_groups(self) -> Mapping[str, Sequence[CaseSummary]]:
        """The groups to be shown with their times: none if these are of ways that lose data."""
        return {} if self.record.unsafe else self.groups

    @property
    def gaps(self) -> tuple[str, ...]:
        """Missing parts of the run: a summary may cover only a part of it."""
        return self.run.gaps

    def to_pandas(self) -> pd.DataFrame:
        """Return all times as a frame; needs pandas.

        Returns
        -------
        DataFrame
            One row for each case, round and phase or total, with the columns of `samples.csv`
            (times in seconds) and the parameters and options of the case, as text.
        """
        from pffbench.results.frames import frame_of

        return frame_of(self)

    def counts(self) -> pd.DataFrame:
        """Return what was counted as a frame; needs pandas.

        Returns
        -------
        DataFrame
            One row for each case, round, phase and counter: its total and its largest value of a
            rank.
        """
        from pffbench.results.frames import counts_of

        return counts_of(self)

    @property
    def cases(self) -> list[CaseSummary]:
        """All cases."""
        return [case for group in self.groups.values() for case in group]

    @property
    def by_name(self) -> dict[str, CaseSummary]:
        """All cases by their names."""
        return {case.name: case for case in self.cases}


def summarise(directory: str | Path) -> Summary:
    """Read a results directory and summarise it; errors as of `MeasuredRun.load`."""
    run = MeasuredRun.load(directory)
    with readable(directory):
        return summary_of(run)


def load(run: str | Path) -> Summary:
    """Read a results directory; see `pffbench.load`."""
    try:
        summary = summarise(run)
    except ValueError as error:
        raise UserError(str(error)) from None
    if not summary.cases:
        raise EmptyRunError(
            f"{run} holds no repetition that counts: it ended before the first one did"
        )
    return summary


def summary_of(run: MeasuredRun) -> Summary:
    """Summarise a run."""
    groups: dict[str, list[str]] = {}
    for name in run.by_case:
        groups.setdefault(run.record.cases[name].group, []).append(name)
    load = summarise_load(run.repetitions)
    cells = cells_of(run)
    compared = compare_work(usable(cells, run.resolution))
    answer = answer_of(run, cells, load, compared)
    return Summary(
        run,
        {group: _cases(run, names) for group, names in groups.items()},
        load,
        cells,
        answer,
        compared if answer is not None and answer.decides else None,
    )


def _cases(run: MeasuredRun, names: Sequence[str]) -> list[CaseSummary]:
    named = labels({name: keys_of(run.record.cases[name]) for name in names})
    raw = [
        name
        for name in names
        if (entry := run.record.cases[name]).raw and entry.verified and not entry.excluded
    ]
    return [_case(run, name, named[name], raw) for name in names]


def _case(run: MeasuredRun, name: str, label: str, raw: Sequence[str]) -> CaseSummary:
    entry, repetitions = run.record.cases[name], run.by_case[name]
    seconds = run.seconds[name]
    counted = [one for one in repetitions if not one.warmup]
    last = counted[-1].by_phase
    return CaseSummary(
        name=name,
        label=label,
        keys=keys_of(entry),
        entry=entry,
        ranks=run.ranks,
        phases={
            phase: phase_summary(phase, seconds, repetitions, _roof(run, name, phase, raw), run)
            for phase in seconds
        },
        repetitions=len(counted),
        nbytes=last["write"].bytes if "write" in last else 0,
        read_bytes=last["read"].bytes if "read" in last else 0,
        cache=" / ".join(sorted({one.read.cache for one in counted if one.read})),
        disk=next((one.disk for one in repetitions if one.disk), None),
        peak_memory=max(one.peak_memory for one in repetitions),
        counts=median_counts(repetitions),
    )


def _roof(run: MeasuredRun, name: str, phase: str, raw: Sequence[str]) -> float | None:
    """Return the part of the speed of raw bytes that a case reached.

    Over the rounds that the case and the raw transfer have in common, since a machine that changes
    between rounds would change their ratio. Raw bytes cannot be faster than a copy in memory.
    """
    entry = run.record.cases[name]
    if entry.raw or entry.excluded or phase not in MOVING:
        return None
    own = run.seconds[name][phase]
    copy_rate = run.record.floor.memory_copy_bytes_per_second
    copied = run.bytes_moved(name, phase) / copy_rate if copy_rate else 0.0
    found = []
    for other in raw:
        limit = run.seconds[other].get(phase, {})
        common = own.keys() & limit.keys()
        if common and (mine := median(own[r] for r in common)):
            found.append(max(median(limit[r] for r in common), copied) / mine)
    return min(found, default=0.0) or None


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
