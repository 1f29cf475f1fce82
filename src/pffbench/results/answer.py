"""The answer of a run: which way to use, what it costs at most, and what the others cost.

Terminal, page, `summary.md`, `results.json` and `recommend` show the same one.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from pffbench.experiment.standard import standard_of
from pffbench.record.run import MeasuredRun
from pffbench.record.run_json import RunRecord
from pffbench.results import counts, grid, losses, survival
from pffbench.results.cautions import cautions, missing
from pffbench.results.cells import Cell, grouped
from pffbench.results.comparisons import Compared
from pffbench.results.decision import Decision, way_keys
from pffbench.results.judge import FEWEST
from pffbench.results.load import LoadSummary
from pffbench.results.names import format_name, value_name
from pffbench.results.obstacles import (
    command_to_repeat,
    obstacle,
    seconds_again,
)
from pffbench.results.purposes import heading_of, purposes_of
from pffbench.results.rerun import command_again, command_to_resume, wrapped
from pffbench.results.table import Table
from pffbench.results.words import cost, listed, percent
from pffbench.text import counted, one_line, without_digests
from pffbench.units import Size, duration_text

#: Columns of an answer, on any terminal and in a log.
WIDTH = 80
#: The price, as a part, above which nothing is recommended.
HIGHEST_PRICE = 0.25
#: What an invalid run leaves to do.
_INVALID = (
    "Nothing follows from its times. pffbench doctor tests what works here, and summary.md has all "
    "reasons.",
)
#: The space between a number and its unit, a mark and its meaning, an option and its value.
_WITHIN = re.compile(r"(?<=\d) (?=%|[a-zA-Zµ])|(?<=[~?]:) |(?<=--set) ")
#: Rows of a run that compares nothing.
_MOST_ROWS = 8


class Answer(msgspec.Struct, frozen=True):
    """What a run answers."""

    #: ``USE``: a way is recommended. ``NO DECISION``: its price is too high. ``NO ANSWER``: the
    #: times show nothing. ``MEASURED``: the run compares nothing. ``COUNTED``: system calls were
    #: counted in place of times. ``LOSSES``: rows that were lost were counted. ``KEPT``: steps that
    #: are left of killed jobs were counted. ``INVALID``: something that was read was wrong, or was
    #: not proved, or the run has not ended.
    word: Literal[
        "USE", "NO DECISION", "NO ANSWER", "MEASURED", "COUNTED", "LOSSES", "KEPT", "INVALID"
    ]
    #: The sentence, without the word.
    headline: str
    #: What was verified, and how often everything ran.
    evidence: str
    #: Values of the keys in which ways differ, of the way to use.
    way: dict[str, str] = {}
    #: What it costs at most: upper bound of its time over the one of the best way.
    price: float | None = None
    #: The same in each column; null where it is not known.
    prices: dict[str, float | None] = {}
    #: Headings of the table.
    columns: tuple[str, ...] = ()
    #: Its rows.
    rows: tuple[tuple[str, ...], ...] = ()
    #: Sentences below the table.
    notes: tuple[str, ...] = ()
    #: The command that would decide more, or that measures again; empty where none helps.
    command: str = ""
    #: What the command is for.
    why_command: str = ""

    @property
    def decides(self) -> bool:
        """Whether ways are compared."""
        return self.word in ("USE", "NO DECISION")

    @property
    def sentence(self) -> str:
        """The word and the sentence; of an invalid run the evidence, which has its word."""
        if self.word == "INVALID":
            return self.evidence
        return f"USE {self.headline}" if self.word == "USE" else f"{self.word}: {self.headline}"

    @property
    def table(self) -> Table:
        """The table."""
        return Table("", ["", *self.columns], self.rows)

    @property
    def below(self) -> tuple[str, ...]:
        """The sentences below the table, and the evidence."""
        return self.notes if self.word == "INVALID" else (*self.notes, self.evidence)


def answer_of(
    run: MeasuredRun,
    cells: Sequence[Cell],
    load: LoadSummary,
    found: Compared | None,
    highest_price: float = HIGHEST_PRICE,
) -> Answer | None:
    """Answer a run; None where no round counts.

    Parameters
    ----------
    run : MeasuredRun
        The run.
    cells : sequence of Cell
        Its cells.
    load : LoadSummary
        The use of the machine by others.
    found : Compared or None
        What its usable cells show; None if nothing is compared.
    highest_price : float
        The price, as a part, above which nothing is recommended.
    """
    record = run.record
    every = [cell for cell in cells if cell.seconds]
    if record.has_losses:
        return _lost(run, every, load)
    if not every:
        return None
    evidence = evidence_of(run, every)
    if record.valid is not True:
        then = _INVALID if record.valid is False else ()
        notes = (*then, *cautions(run, every, (), load))
        if record.valid is None and record.status == "interrupted":
            again = command_to_resume(record, run.directory)
            return Answer(
                "INVALID", "", evidence, notes=notes, command=again, why_command="To continue:"
            )
        return Answer("INVALID", "", evidence, notes=notes)
    if record.traced:
        return _counted(run, every, evidence)
    if survival.kills_of(run):
        return _kept(run, every, evidence, load)
    if why := obstacle(run, every, load):
        about = f" (about {duration_text(why.seconds)})" if why.seconds else ""
        again = "To continue" if "--resume" in why.command else "To measure again"
        purpose = f"{again}{about}:" if why.command else ""
        return Answer(
            "NO ANSWER",
            f"{why.reason}.",
            evidence,
            notes=tuple(cautions(run, every, (), load)),
            command=why.command,
            why_command=purpose,
        )
    if found is None:
        return _measured(run, every, evidence, load)
    return _with_way(run, every, found, evidence, load, 1 + highest_price)


def _counted(run: MeasuredRun, cells: Sequence[Cell], evidence: str) -> Answer:
    """Return the counts of a run in which system calls were counted: of the work of most cases."""
    works = grouped(cells, lambda cell: cell.keys["work"]).values()
    names = {cell.case for cell in max(works, key=len)}
    cases = counts.case_counts(run, names)
    more = len({cell.case for cell in cells}) - len(names)
    also = [f"{counted(more, 'more case')} in summary.md."] if more else []
    again = {"counters": "false", "repetitions": f"{FEWEST}"}
    return Answer(
        "COUNTED",
        counts.headline(cases),
        evidence,
        columns=counts.answer_columns(cases),
        rows=tuple(counts.answer_rows(cases)),
        notes=(*counts.notes(cases), *also, *missing(run, cells)),
        command=command_again(run.record, again),
        why_command="To measure times:",
    )


def _lost(run: MeasuredRun, cells: Sequence[Cell], load: LoadSummary) -> Answer:
    """Return the rows that each case lost, and what ways that lose none cost."""
    cases = losses.case_losses(run, cells, load)
    return Answer(
        "LOSSES",
        losses.headline(cases),
        evidence_of(run, cells),
        columns=losses.COLUMNS,
        rows=tuple(map(losses.row, cases)),
        notes=(*losses.notes(cases, load), *missing(run, cells)),
        command=command_again(run.record, {"unsafe": "false", "unsupported": "skip"}),
        why_command="To measure the ways that lose nothing:",
    )


def _kept(run: MeasuredRun, cells: Sequence[Cell], evidence: str, load: LoadSummary) -> Answer:
    """Return the steps that are left of killed jobs, and what flushing each step costs."""
    cases = survival.survivors_of(run, cells, load)
    return Answer(
        "KEPT",
        survival.headline(cases),
        evidence,
        columns=survival.columns(cases),
        rows=tuple(survival.rows(cases)),
        notes=(*survival.notes(cases, load), *missing(run, cells)),
    )


def _with_way(
    run: MeasuredRun,
    cells: Sequence[Cell],
    found: Compared,
    evidence: str,
    load: LoadSummary,
    most: float,
) -> Answer:
    decision = found.decided.decision
    use = decision.price <= most
    command, purpose = "", ""
    if not use and run.record.status == "interrupted":
        command, purpose = command_to_resume(run.record, run.directory), "To continue:"
    elif not use and not math.isinf(decision.price):
        rounds = 4 * decision.rounds  # half as wide an interval
        seconds = seconds_again(run.record, 4.0)
        command = command_to_repeat(run.record, rounds, seconds)
        about = f" (about {duration_text(seconds)})" if seconds else ""
        purpose = f"More rounds make the price smaller{about}:"
    return Answer(
        "USE" if use else "NO DECISION",
        f"{_headline(decision, most)}{grid.disk_sentence(decision)}",
        evidence,
        decision.used,
        _finite(decision.price),
        {heading: _finite(price) for heading, price in found.decided.prices.items()},
        tuple(purpose.heading for purpose in found.decided.purposes),
        tuple(tuple(row) for row in grid.rows(found)),
        (*grid.notes(found), *cautions(run, cells, found.formats, load)),
        command,
        purpose,
    )


def _headline(decision: Decision, most: float) -> str:
    name = grid.way_name(decision)
    if decision.price < 1.005:
        return f"{name}: no measured way is faster (95 % confidence)."
    if decision.price <= most:
        return f"{name}: {cost(decision.price)} than the fastest way measured (95 % confidence)."
    if math.isinf(decision.price):
        return f"the ways share fewer than {FEWEST} rounds."
    return (
        f"the best choice so far is {name}. It may be {percent(decision.price)} slower than "
        f"another way (95 % confidence). The limit is {100 * (most - 1):.0f} %."
    )


def _finite(value: float) -> float | None:
    return None if math.isinf(value) or math.isnan(value) else value


def _measured(run: MeasuredRun, cells: Sequence[Cell], evidence: str, load: LoadSummary) -> Answer:
    """Return the times of a run that compares nothing, and the command that compares it."""
    record = run.record
    formats = [cell for cell in cells if not cell.raw] or list(cells)
    headings = tuple(purpose.heading for purpose in purposes_of(formats))
    by_case = grouped(formats, lambda cell: cell.case)
    keys = way_keys([[some[0] for some in by_case.values()]])
    rows = []
    for some in list(by_case.values())[:_MOST_ROWS]:
        there = {heading_of(cell): cell for cell in some}
        words = [value_name(key, some[0].keys[key]) for key in keys if some[0].keys.get(key)]
        name = ", ".join(words) or format_name(some[0].keys["backend"])
        rows.append((name, *(grid.amount(there[h]) if h in there else "" for h in headings)))
    names = list(dict.fromkeys(cell.keys["backend"] for cell in formats))
    other = "hdf5" if "zarr" in names else "zarr"
    command = command_again(record, {"backend": f"[{', '.join([*names, other])}]"})
    return Answer(
        "MEASURED",
        _why_nothing_is_compared(formats),
        evidence,
        columns=headings,
        rows=tuple(rows),
        notes=tuple(cautions(run, cells, (), load)),
        command=command,
        why_command=f"To compare with {format_name(other)}:" if command else "",
    )


def _why_nothing_is_compared(cells: Sequence[Cell]) -> str:
    if all(cell.raw for cell in cells):
        return "only raw I/O ran, so no formats are compared."
    if len({cell.case for cell in cells}) == 1:
        return "one way was measured, so nothing is compared."
    return "no two cases with usable times did the same work, so nothing is compared."


def evidence_of(run: MeasuredRun, cells: Sequence[Cell] = ()) -> str:
    """Return what was verified and how often everything ran, after the verdict on the run."""
    record = run.record
    if record.valid is None:
        return {
            "written": "WRITTEN: nothing has been read and verified yet.",
            "interrupted": "INTERRUPTED: rounds are missing.",
        }.get(record.status, "NOT FINISHED: rounds are missing.")
    unsafe = record.has_losses
    if not unsafe and (reason := record.objection):
        more = len(record.reasons) - 1
        also = f" (and {counted(more, 'more reason')})" if more > 0 else ""
        return f"INVALID: {without_digests(reason)}{also}."
    word = "INTERRUPTED" if record.status != "finished" else "UNSAFE" if unsafe else "VALID"
    each = [len(next(iter(s.values()), ())) for s in run.seconds.values()] or [0]
    rounds = f"{min(each)}–{max(each)}" if min(each) < max(each) else f"{each[0]}"
    cases = counted(len(each), "case")
    if out := record.without_time:
        cases = f"{len(each)} of {len(each) + out} cases fitted in the time"
    mpi = record.provenance.get("mpi_io") or {}
    facts = [
        "every byte compared" if unsafe else _verified(record),
        cases,
        f"{rounds} round{'s' * (rounds != '1')}",
        "one process without MPI" if "missing" in mpi else counted(record.ranks, "rank"),
        _sizes(cells),
        str((record.provenance.get("filesystem") or {}).get("type") or ""),
        str(standard_of(record.experiment) or ""),
    ]
    return f"{word}: {', '.join(filter(None, facts))}."


def _verified(record: RunRecord) -> str:
    """Return whose bytes were verified; a backend that stores nothing has none."""
    measured = [entry for entry in record.cases.values() if not entry.excluded]
    lacking = dict.fromkeys(entry.backend for entry in measured if not entry.verified)
    if not lacking:
        return "every byte verified"
    if all(not entry.verified for entry in measured):
        return "nothing verified"
    return f"every byte verified but those of {listed([format_name(one) for one in lacking])}"


def _sizes(cells: Sequence[Cell]) -> str:
    sizes = sorted({cell.nbytes for cell in cells if not cell.raw})
    ends = list(dict.fromkeys(str(Size(size)) for size in (*sizes[:1], *sizes[-1:])))
    units = {end.rpartition(" ")[2] for end in ends}
    if len(ends) > len(units):  # 8–48 MiB
        ends[0] = ends[0].rpartition(" ")[0]
    return "–".join(ends)


def lines_of(answer: Answer) -> Iterator[str]:
    """Yield the answer as lines of at most 80 columns."""
    yield from wrap(answer.sentence)
    if answer.rows:
        yield from ("", *answer.table.lines(WIDTH), "")
    for note in answer.below:
        yield from wrap(note)
    if answer.command:
        yield from wrap(answer.why_command)
        yield from wrapped(one_line(answer.command), WIDTH)


def wrap(text: str) -> list[str]:
    """Return a text in lines, none of which ends between a number and its unit."""
    joined = _WITHIN.sub("\N{NO-BREAK SPACE}", one_line(text))
    lines = textwrap.wrap(joined, WIDTH, break_long_words=False, break_on_hyphens=False)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]
