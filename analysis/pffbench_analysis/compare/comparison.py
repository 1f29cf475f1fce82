"""Two sides compared by the engine: a row for each total of each case, or why it has none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import NamedTuple

import msgspec

from pffbench.phases import TOTALS
from pffbench.record.run import MeasuredRun
from pffbench.results import words
from pffbench.results.cells import Cell, cells_of_starts, starts_of
from pffbench.results.compare import Comparison as Compared
from pffbench.results.compare import Question, compare
from pffbench.results.judge import FEWEST, NOTHING, Verdict
from pffbench.results.load import busy, summarise_load, unsettled
from pffbench.results.names import format_name
from pffbench.results.purposes import heading_of
from pffbench.text import counted
from pffbench_analysis.compare.sides import Lone, Match, Side, match
from pffbench_analysis.differences import ABSENT, Difference, differences

#: Of a change that is not the one of the times alone.
OVER_RAW = "over raw I/O"


class Row(NamedTuple):
    """A total of a case, or of all cases of a format."""

    #: What was measured, and in which total.
    name: str
    heading: str
    #: New and old; none where it is not comparable.
    cells: Sequence[tuple[Cell, Cell]] = ()
    #: What is shown of new over old.
    verdict: Verdict = NOTHING
    #: Of a difference, the phase that it is mostly in.
    phase: str = ""
    #: Why it is not comparable; empty if it is.
    reason: str = ""
    #: Whether the reason may hide a slowdown. A time below the resolution hides none.
    hides: bool = False

    @property
    def different(self) -> bool:
        """Whether a difference is shown."""
        return self.verdict.word in ("slower", "faster")

    @property
    def old(self) -> float:
        """Median seconds of the old side; the geometric mean of several cases."""
        return _typical([old for _, old in self.cells])

    @property
    def new(self) -> float:
        """Median seconds of the new side; the geometric mean of several cases."""
        return _typical([new for new, _ in self.cells])

    def __str__(self) -> str:
        ratio, over = self.verdict.ratio, f" {OVER_RAW}" if self.verdict.over_raw else ""
        change = f"{words.times(ratio.value)} ({words.interval(ratio)}){over}"
        return f"{self.name}, {self.heading}: {change}"


def _typical(cells: Sequence[Cell]) -> float:
    if not cells or not all(cell.median for cell in cells):
        return math.nan
    return math.exp(sum(math.log(cell.median) for cell in cells) / len(cells))


class Comparison(msgspec.Struct, frozen=True):
    """Two sides, compared."""

    #: The sides.
    old: Side
    new: Side
    #: All cases of a format together, then each total of each case.
    rows: tuple[Row, ...]
    #: Raw transfers next to formats, which show whether the machine changed.
    control: tuple[Row, ...]
    #: Cases of one side.
    alone: tuple[Lone, ...]
    #: Other differences between the runs: possible causes of a difference in time.
    differences: tuple[Difference, ...]
    #: Number of starts of the program on each side.
    starts: tuple[int, int]
    #: Number of cases that are judged.
    cases: int

    @property
    def comparable(self) -> list[Row]:
        """The rows that have a verdict."""
        return [row for row in self.rows if not row.reason]

    @property
    def refused(self) -> list[Row]:
        """The rows that have none."""
        return [row for row in self.rows if row.reason]

    def cautions(self) -> Iterator[str]:
        """Yield that a run had two sets of hosts or a busy machine, in the words of its answer."""
        for run in (*self.old.runs, *self.new.runs):
            load = summarise_load(run.repetitions)
            texts = *run.record.resumed_elsewhere, *busy(load), *unsettled(load)
            yield from (f"{run.directory}: {text}" for text in texts)


def compare_runs(
    old: Sequence[MeasuredRun], new: Sequence[MeasuredRun], across: Sequence[str] = ()
) -> Comparison:
    """Compare runs.

    All differences that are shown, of cases, of formats and of the control, are one family.

    Parameters
    ----------
    old, new : sequence of MeasuredRun
        The runs of each side, each a start of the program.
    across : sequence of str
        Parameters or options in which cases may differ: the subject of the comparison.

    Raises
    ------
    UserError
        `across` names a parameter or option that no case has.
    """
    sides = Side("old", tuple(old)), Side("new", tuple(new))
    matched, alone = match(*sides, across)
    there = cells_of_starts(old)
    here = cells_of_starts(new, starts_of(there.values()))
    entries = sides[0].record.cases
    only_raw = all(entry.raw for side in sides for entry in side.record.cases.values())
    cells: list[Cell] = []
    raw: list[Cell] = []
    refused: list[Row] = []
    for case in matched:
        is_control = entries[case.old].raw and not only_raw
        for total in _totals(case, sides):
            both = there.get((case.old, total)), here.get((case.new, total))
            row = _refused(case, total, both, sides)
            if row is not None:
                refused += [] if is_control else [row]
            elif not is_control:
                cells += _placed(case, both)
            elif entries[case.old].verified:
                raw += _placed(case, both)
    names = {case.old: case.label for case in matched}
    rows, control = _judged(_with_control(cells, raw), raw, names, sides)
    if changed := {row.heading for row in control if row.different}:
        # Over raw I/O that is shown to have changed, a format would change the other way.
        steady = [cell for cell in raw if cell.keys["heading"] not in changed]
        rows, control = _judged(_with_control(cells, steady), raw, names, sides)
    return Comparison(
        *sides,
        rows=(*rows, *refused),
        control=tuple(control),
        alone=tuple(alone),
        differences=(*differences(old[0], new[0]), *_stored(matched, sides)),
        starts=(starts_of(there.values()), starts_of(here.values())),
        cases=sum(only_raw or not entry.raw for entry in entries.values()),
    )


def _placed(case: Match, both: tuple[Cell | None, Cell | None]) -> list[Cell]:
    """Return the cells of both sides with the keys that they are compared by."""
    return [
        cell.with_keys(place=case.old, heading=heading_of(cell), side=side)
        for side, cell in zip(("old", "new"), both, strict=True)
        if cell
    ]


def _with_control(cells: Sequence[Cell], raw: Sequence[Cell]) -> list[Cell]:
    """Return cells with the times of raw I/O of the same bytes and files in the same rounds."""
    keys = ("side", "heading", "work", "files", "environment")
    times = {tuple(cell.keys.get(key) for key in keys): cell.seconds for cell in raw}
    return [
        cell._replace(control=times.get(tuple(cell.keys.get(key) for key in keys)))
        for cell in cells
    ]


def _totals(case: Match, sides: tuple[Side, Side]) -> list[str]:
    """Return the totals that a case has on one side, or an empty one if it has none."""
    there = {
        total
        for side, name in zip(sides, (case.old, case.new), strict=True)
        for run in side.runs
        for total in run.seconds.get(name, {})
    }
    return [total.removesuffix("_total") for total in TOTALS if total in there] or [""]


def _refused(
    case: Match, total: str, both: tuple[Cell | None, Cell | None], sides: tuple[Side, Side]
) -> Row | None:
    """Return the row of a total that cannot be compared; None if it can."""
    heading = next((heading_of(cell) for cell in both if cell), total)
    if reason := _obstacle(case, total, both, sides):
        return Row(case.label, heading, reason=reason, hides=True)
    short = [
        side.which
        for side, cell in zip(sides, both, strict=True)
        if cell and cell.median < max(run.resolution for run in side.runs)
    ]
    reason = f"below resolution in the {' and the '.join(short)} run"
    return Row(case.label, heading, reason=reason) if short else None


def _obstacle(
    case: Match, total: str, both: tuple[Cell | None, Cell | None], sides: tuple[Side, Side]
) -> str:
    """Return why a case cannot be compared in a total, however long it takes; empty if it can."""
    unfit = [text for side in sides for text in _unfit(side)]
    named = list(zip(sides, (case.old, case.new), both, strict=True))
    wrong = [side.which for side, name, _ in named if side.excluded(name)]
    lacking = [side.which for side, _, cell in named if not cell or not cell.seconds]
    if unfit:
        return "; ".join(unfit)
    if wrong:
        return f"failed, or read wrong data, in the {' and the '.join(wrong)} run"
    if lacking:
        return f"the {' and the '.join(lacking)} run has no finished repetition with it"
    if unequal := _unequal(named, total):
        return unequal
    if doubtful := [s.which for s, name, _ in named if total == "read" and _unproved(s, name)]:
        return f"state of the page cache not proved in the {' and the '.join(doubtful)} run"
    counts = [len(cell.seconds) for cell in both if cell]
    if min(counts) < FEWEST:
        return f"too few rounds: {counts[0]} and {counts[1]}, {FEWEST} of each are needed"
    return ""


def _unfit(side: Side) -> Iterator[str]:
    """Yield the reasons why the times of a side show nothing."""
    for run in side.runs:
        record = run.record
        if record.status != "finished":
            yield f"the {side.which} run is not finished ({record.status})"
        elif record.valid is not True:
            yield f"the {side.which} run is not valid: {record.objection or 'see its run.json'}"
        elif record.traced:
            yield f"the {side.which} run counted system calls, which slows them (use --counts)"


def _unequal(named: Sequence[tuple[Side, str, Cell | None]], total: str) -> str:
    """Return the sizes that are not the same in all runs; empty if all are."""
    first, *others = (
        (run.ranks, run.nodes, run.bytes_moved(name, f"{total}_total"))
        for side, name, _ in named
        for run in side.runs
        if name in run.by_case
    )
    other = next((sizes for sizes in others if sizes != first), first)
    there = zip(("ranks", "nodes", "bytes"), first, other, strict=True)
    return ", ".join(f"{a} and {b} {what}" for what, a, b in there if a != b)


def _unproved(side: Side, case: str) -> bool:
    """Return whether the source of some reads of a case is not known."""
    return any(
        one.read and one.read.cache == "unproved" and not one.warmup
        for run in side.runs
        if case in run.by_case and run.record.cases[case].verified
        for one in run.by_case[case]
    )


def _judged(
    cells: Sequence[Cell], raw: Sequence[Cell], names: Mapping[str, str], sides: tuple[Side, Side]
) -> tuple[list[Row], list[Row]]:
    """Return the rows of the formats, and of raw transfers next to them."""
    places = {cell.keys["backend"]: set[str]() for cell in cells}
    for cell in cells:
        places[cell.keys["backend"]].add(cell.keys["place"])
    several = [cell for cell in cells if len(places[cell.keys["backend"]]) > 1]
    side = Question("side", base="old")
    of_case = side._replace(within=("place", "heading"))
    together, single, control = compare(
        [
            (several, side._replace(within=("backend", "heading"), over=("place",))),
            (cells, of_case),
            (raw, side._replace(within=("heading",), over=("place",))),
        ]
    )
    formats = [_row(one, format_name(one.cells[0][0].keys["backend"]), True) for one in together]
    cases = [_with_phase(_row(one, names[one.cells[0][0].keys["place"]]), sides) for one in single]
    return [*formats, *cases], [_row(one, "raw I/O", True) for one in control]


def _row(found: Compared, name: str, together: bool = False) -> Row:
    label = f"{name}, {counted(len(found.cells), 'case')}" if together else name
    return Row(label, found.cells[0][0].keys["heading"], found.cells, found.verdict)


def _with_phase(row: Row, sides: tuple[Side, Side]) -> Row:
    """Add the phase that a difference is mostly in, by the medians."""
    if not row.different:
        return row
    (new, old), total = row.cells[0], f"{row.cells[0][0].keys['total']}_total"
    changes = {
        phase: _median(sides[1], new.case, phase) - _median(sides[0], old.case, phase)
        for phase in TOTALS[total]
    }
    return row._replace(phase=max(changes, key=lambda phase: abs(changes[phase])))


def _median(side: Side, case: str, phase: str) -> float:
    times = [s for run in side.runs for s in run.seconds.get(case, {}).get(phase, {}).values()]
    return median(times) if times else 0.0


def _stored(matched: Sequence[Match], sides: tuple[Side, Side]) -> Iterator[Difference]:
    """Yield the differences in how cases were stored or transferred."""
    for case in matched:
        one, other = (
            side.record.cases[name] for side, name in zip(sides, (case.old, case.new), strict=True)
        )
        for what, a, b in (
            ("stored as", one.stored_as, other.stored_as),
            ("transfer", _facts(one.transfer_facts), _facts(other.transfer_facts)),
        ):
            if a != b:
                yield Difference(f"{case.label}: {what}", str(a or ABSENT), str(b or ABSENT))


def _facts(facts: Mapping[str, str]) -> str:
    return ", ".join(f"{key} {value}" for key, value in sorted(facts.items()))
