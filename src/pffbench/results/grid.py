"""The grid of an answer: formats in rows, purposes in columns, and the sentences below it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from pffbench.results import words
from pffbench.results.cells import Cell, grouped
from pffbench.results.compare import Comparison
from pffbench.results.comparisons import AVERAGED, Compared
from pffbench.results.decision import Decision, Way
from pffbench.results.judge import Pair, estimates
from pffbench.results.names import format_name, value_name
from pffbench.results.purposes import Purpose
from pffbench.results.table import Table

#: Ways, beyond the one to use, whose cost is said in a sentence.
_MOST_CHANGES = 6


def way_name(decision: Decision, way: Way | None = None) -> str:
    """Return a way in words; the way to use if none is given."""
    named = decision.named(way or decision.way)
    backend = [] if "backend" in named else [format_name(decision.cell.keys["backend"])]
    return ", ".join([*backend, *(value_name(key, value) for key, value in named.items() if value)])


def amount(cell: Cell) -> str:
    """Return the median time of a cell, and its rate."""
    return f"{words.seconds(cell.median)}, {words.rate(cell.nbytes, cell.median)}"


def rows(found: Compared) -> Iterator[list[str]]:
    """Yield the row of the format to use, of the others, and of raw transfers."""
    decided = found.decided
    base = [cell_of(purpose, found) for purpose in decided.purposes]
    yield [format_name(decided.backend), *(amount(cell) if cell else "" for cell in base)]
    for some in grouped(found.formats, lambda c: c.value).values():
        there = {c.cells[0][0].keys["column"]: words.verdict(c.verdict) for c in some}
        texts = [there.get(purpose.heading, "") for purpose in decided.purposes]
        yield [compared_name(found, some[0]), *texts]
    if any(cell.raw for purpose in decided.purposes for cell in purpose.cells):
        yield ["raw I/O", *(_raw(purpose, decided.backend) for purpose in decided.purposes)]


def compared_name(found: Compared, one: Comparison) -> str:
    """Return the value of a comparison in words: a format with its settings, or another value."""
    if one.by == "backend":
        return _format_and_settings(one.value, found.decided.decision)
    return value_name(one.by, one.value)


def _format_and_settings(backend: str, decision: Decision) -> str:
    """Return a format with the settings of its best way, where they are not those to use."""
    best = decision.best_of("backend", backend)
    differing = [
        value_name(key, value)
        for key, value in (decision.named(best) if best else {}).items()
        if key not in (*AVERAGED, "backend") and value and value != decision.used[key]
        if "." not in key
    ]
    return ", ".join([format_name(backend), *differing])


def cell_of(purpose: Purpose, found: Compared) -> Cell | None:
    """Return the cell of the way to use, or else one of its format; the one of most bytes."""
    own = [c for c in purpose.cells if not c.raw and c.keys["backend"] == found.decided.backend]
    used = found.decided.decision.used
    exact = [c for c in own if all(c.keys.get(k, "") == v for k, v in used.items())]
    return max(exact or own, key=lambda c: c.nbytes, default=None)


def _raw(purpose: Purpose, backend: str) -> str:
    """Return the time of raw transfers over the one of the format to use."""

    def place(cell: Cell) -> tuple[str | None, ...]:
        return tuple(cell.keys.get(key) for key in ("work", "layout", "environment"))

    raw = {place(c): c for c in purpose.cells if c.raw}
    own = [c for c in purpose.cells if not c.raw and c.keys["backend"] == backend]
    both = [(raw[place(c)].seconds, c.seconds) for c in own if place(c) in raw]
    known = estimates({"raw": Pair(both)}) if both else {}
    return words.times(math.exp(known["raw"].centre)) if known else ""


def notes(found: Compared) -> Iterator[str]:
    """Yield the sentences below the table."""
    if found.formats:
        most = max(len(c.cells) for c in found.formats)
        over = f", average of {most} comparisons" if most > 1 else ""
        marks = {"same": "same: within 10 %", "open": "~: not decided"}
        there = {c.verdict.word for c in found.formats}
        explained = "".join(f"; {text}" for word, text in marks.items() if word in there)
        base = format_name(found.decided.backend)
        yield f"×: the time of {base}{over} (95 % interval){explained}."
    prices = found.decided.prices
    costs = [
        f"{words.percent(prices[purpose.heading])} {purpose.verb}"
        for purpose in found.decided.purposes
        if purpose.heading in prices
    ]
    if len(costs) > 1:
        yield f"At most slower than the best way for each purpose alone: {', '.join(costs)}."
    if (worst := found.decided.worst) and not math.isinf(worst.price):
        yield f"In the worst comparison at most {words.percent(worst.price)} slower {worst.where}."
    yield from _changes(found)


def _changes(found: Compared) -> Iterator[str]:
    """Yield what another value of a key costs, the files first."""
    verbs = {purpose.heading: purpose.verb for purpose in found.decided.purposes}
    by_value = list(grouped(found.changes, lambda c: f"{c.by} {c.value}").values())
    for some in by_value[:_MOST_CHANGES]:
        costs = [f"{words.verdict(c.verdict)} {verbs[c.cells[0][0].keys['column']]}" for c in some]
        name = compared_name(found, some[0])
        yield f"{name[0].upper()}{name[1:]} instead: {', '.join([*costs, *_disk(some)])}."
    if len(by_value) > _MOST_CHANGES:
        yield f"{len(by_value) - _MOST_CHANGES} more changes are in summary.md."


def _disk(some: Sequence[Comparison]) -> list[str]:
    """Return how many times the bytes on disk a change needs, if it is another number."""
    pairs = [(one.stored, base.stored) for c in some for one, base in c.cells]
    ratios = [one / base for one, base in pairs if one and base]
    if not ratios:
        return []
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return [] if 0.95 < mean < 1.05 else [f"{words.times(mean)} the bytes on disk"]


def ways_table(found: Compared) -> Table:
    """Return all ways, the cheapest first: their times, and what each costs at most.

    Times are over the one of the way to use, average of all comparisons. A cost is an upper bound
    over the best way, with a probability of 95 % for all ways of a purpose together.
    """
    decision, each = found.decided.decision, found.decided.each
    columns = [text for heading in each for text in (heading, "at most")]
    table_rows = []
    for way, price in decision.prices.items():
        row = [way_name(decision, way), words.percent(price)]
        for other in each.values():
            there = other.way_of(decision.named(way))
            row += (
                ["", ""]
                if there is None
                else [
                    words.times(other.over(there, other.way_of(decision.used))),
                    words.percent(other.prices[there]),
                ]
            )
        table_rows.append(row)
    title = f"All ways: × the time of {way_name(decision)}, and at most slower than the best way"
    return Table(title, ["", "at most", *columns], table_rows)
