"""What a run with ``counters: calls`` answers: the system calls and bytes of each case.

Counts are the same on a busy machine. Times of such a run mean nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pffbench.phases import TOTALS
from pffbench.record.repetitions import Repetition, median_counts
from pffbench.record.run import MeasuredRun
from pffbench.results.cells import keys_of
from pffbench.results.names import labels
from pffbench.results.table import Table
from pffbench.text import counted
from pffbench.units import Size

#: Beginnings of the names of counters, as `pffbench.observe.system_calls` makes them.
_CALL, _BYTES, RACED = "call_", "bytes_", "raced_"
#: Counted a second time under this ending: calls that may make a file.
_MAKING = "_O_CREAT"
_OPENING = ("open", "creat")
#: Opens of each file, and of each rank, from which on a sentence says so.
_OFTEN = 4
#: Bytes moved over those wanted from which on a sentence says so.
_MORE = 1.05
_TITLES = {"write_total": "write", "update_total": "update", "read_total": "read"}


class PartCounts(NamedTuple):
    """Counts of a case in one total, of all ranks together in one repetition."""

    #: System calls on the files of the run, and those of them that open a file.
    calls: int
    opens: int
    #: Bytes that its calls wrote, or read in the total ``read_total``.
    nbytes: int
    #: Bytes that were read while data were written.
    read_back: int
    #: Bytes of array data.
    wanted: int
    #: Most further calls of a repetition, whose number depends on timing.
    raced: int = 0

    @property
    def factor(self) -> float:
        """Bytes moved for each byte wanted."""
        return self.nbytes / self.wanted if self.wanted else 0.0


class CaseCounts(NamedTuple):
    """Counts of a case."""

    #: Words that set it apart from the others.
    label: str
    #: By total.
    parts: Mapping[str, PartCounts]
    #: Files that it writes, and ranks of the run.
    files: int
    ranks: int
    #: Whether it moves raw bytes.
    raw: bool


def case_counts(run: MeasuredRun, wanted: Collection[str] = ()) -> list[CaseCounts]:
    """Return the counts of the cases of a run that did not fail, in its order.

    Parameters
    ----------
    run : MeasuredRun
        The run.
    wanted : collection of str
        Names of cases; all if none is given.
    """
    names = [name for name in run.by_case if not run.record.cases[name].excluded]
    names = [name for name in names if not wanted or name in wanted]
    named: dict[str, str] = {}
    for raw in (False, True):  # else the chunks, which raw bytes do not have, would be in each name
        some = [name for name in names if run.record.cases[name].raw is raw]
        named |= labels({name: keys_of(run.record.cases[name]) for name in some})
    found = []
    for name in names:
        entry, counts = run.record.cases[name], median_counts(run.by_case[name])
        parts = {
            total: _part(counts, total, run.bytes_moved(name, total))._replace(
                raced=raced_calls(run.by_case[name], TOTALS[total])
            )
            for total in TOTALS
            if total in run.seconds[name]
        }
        files = entry.disk.files if entry.disk else 0
        found.append(CaseCounts(named[name], parts, files, run.ranks, entry.raw))
    return found


def _part(counts: Mapping[tuple[str, str], float], total: str, wanted: int) -> PartCounts:
    calls = opens = written = read = 0.0
    for (phase, name), amount in counts.items():
        if phase not in TOTALS[total] or name.endswith(_MAKING):
            continue
        kind = name.removeprefix(_CALL)
        if name.startswith(_CALL):
            calls += amount
            opens += amount if kind.startswith(_OPENING) else 0
        elif name.startswith(_BYTES):
            if "write" in name:
                written += amount
            else:
                read += amount
    moved, back = (read, 0.0) if total == "read_total" else (written, read)
    return PartCounts(int(calls), int(opens), int(moved), int(back), wanted)


def raced_calls(repetitions: Iterable[Repetition], phases: Collection[str] = ()) -> int:
    """Return the most calls of a repetition that only timing decides, in some phases or all."""
    sums = (
        sum(c.total for c in one.counts
            if c.name.startswith(RACED) and (c.phase in phases or not phases))
        for one in repetitions
        if not one.warmup
    )  # fmt: skip
    return int(max(sums, default=0))


def answer_columns(cases: Sequence[CaseCounts]) -> tuple[str, ...]:
    """Return the headings of the answer's table, without the first one."""
    titles = [_TITLES[total] for total in _totals(cases)]
    return (*(text for one in titles for text in (one, "opens")), "files")


def answer_rows(cases: Sequence[CaseCounts]) -> Iterator[tuple[str, ...]]:
    """Yield the row of each case in the answer's table."""
    for case in cases:
        parts = [case.parts.get(total) for total in _totals(cases)]
        texts = [f"{n:,}" if p else "" for p in parts for n in ((p.calls, p.opens) if p else "  ")]
        yield (case.label, *texts, f"{case.files:,}")


def counts_table(run: MeasuredRun) -> Table:
    """Return the counts of all cases."""
    cases = case_counts(run)
    totals = _totals(cases)
    headings = [f"{_TITLES[t]}: {one}" for t in totals for one in ("calls", "opens", "bytes", "×")]
    rows = []
    for case in cases:
        row: list[str | int | None] = [case.label]
        for total in totals:
            part = case.parts.get(total)
            row += (
                [part.calls, part.opens, part.nbytes, f"{part.factor:.2f}×"] if part else [None] * 4
            )
        rows.append([*row, case.files])
    about = "All ranks, one repetition. ×: bytes moved for each byte of array data."
    return Table("System calls", ["case", *headings, "files"], rows, (about, *_raced(cases)))


def headline(cases: Sequence[CaseCounts]) -> str:
    """Return which case needs the fewest system calls for each total."""
    formats = [case for case in cases if not case.raw] or list(cases)
    if len(formats) == 1:
        return f"the system calls of {formats[0].label}. Times were not measured."
    fewest: dict[str, list[str]] = {}
    for total in _totals(formats):
        there = [case for case in formats if total in case.parts]
        least = min(there, key=lambda case: case.parts[total].calls)
        calls = least.parts[total].calls
        fewest.setdefault(least.label, []).append(f"to {_TITLES[total]} ({calls:,})")
    texts = [f"{label} {' and '.join(some)}" for label, some in fewest.items()]
    return f"fewest system calls: {', '.join(texts)}. Times were not measured."


def notes(cases: Sequence[CaseCounts]) -> Iterator[str]:
    """Yield what a reader needs below the table, and the cases that move more than wanted."""
    titles = " and ".join(f"to {_TITLES[total]}" for total in _totals(cases))
    yield f"System calls {titles}, and opens among them: all ranks, one repetition."
    for case in cases:
        if case.raw:
            continue
        for total, part in case.parts.items():
            if words := list(_excess(case, total, part)):
                yield f"{case.label} {' and '.join(words)}, to {_wanted(total, part)}."
    yield from _raced(cases)


def _raced(cases: Sequence[CaseCounts]) -> Iterator[str]:
    """Yield which cases had calls whose number depends on timing; no other count has them."""
    for case in cases:
        for total, part in case.parts.items():
            if part.raced:
                more = counted(part.raced, "more call")
                yield (
                    f"{case.label} made up to {more} to {_TITLES[total]}, which depend on timing: "
                    "ranks or threads made a directory at the same time."
                )


def _excess(case: CaseCounts, total: str, part: PartCounts) -> Iterator[str]:
    often = _OFTEN * max(case.files, case.ranks)
    if total == "read_total" and case.files and part.opens > often:
        each = f"each of {counted(case.files, 'file')}" if case.files > 1 else "its file"
        yield f"opens {each} {part.opens / case.files:.3g} times"
    if part.factor > _MORE:
        verb = "reads" if total == "read_total" else "writes"
        yield f"{verb} {Size(part.nbytes)}"
    if part.read_back > (_MORE - 1) * part.wanted:
        yield f"reads {Size(part.read_back)} back"


def _wanted(total: str, part: PartCounts) -> str:
    return f"{_TITLES[total]} {Size(part.wanted)}"


def _totals(cases: Sequence[CaseCounts]) -> list[str]:
    return [total for total in TOTALS if any(total in case.parts for case in cases)]
