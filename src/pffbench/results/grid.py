"""The grid of an answer: formats in rows, purposes in columns, and the sentences below it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from pffbench.results import words
from pffbench.results.cells import Cell, grouped
from pffbench.results.compare import Comparison
from pffbench.results.comparisons import AVERAGED, Compared, at_its_best
from pffbench.results.decision import Decision, Way
from pffbench.results.judge import Pair, estimates
from pffbench.results.names import RAW, format_name, value_name
from pffbench.results.purposes import Decided, Purpose
from pffbench.results.table import Table

#: Ways, beyond the one to use, whose cost is said in a sentence.
_MOST_CHANGES = 6
#: Ways that need so many times the bytes on disk differ in it.
_MORE_DISK = 1.10
#: Ways that need so many times the bytes of the least have the least, by its digits.
_AS_LITTLE = 1.005


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
        yield [RAW, *(_raw(purpose, decided) for purpose in decided.purposes)]


def compared_name(found: Compared, one: Comparison) -> str:
    """Return the value of a comparison in words: a format with its settings, or another value.

    Values that follow from it are named too, such as the transfer of a shared file.
    """
    if one.by == "backend":
        return _format_and_settings(one.value, found.decided.decision)
    cell, base = (cell.keys for cell in one.cells[0])
    changed = [k for k in found.decided.decision.keys if cell.get(k) != base.get(k) and k != one.by]
    return ", ".join(value_name(k, cell.get(k, "")) for k in [one.by, *changed])


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


def _raw(purpose: Purpose, decided: Decided) -> str:
    """Return the time of raw transfers over the format to use with its best settings."""

    def place(cell: Cell) -> tuple[str | None, ...]:
        return tuple(cell.keys.get(key) for key in ("work", "files", "environment"))

    raw = {place(c): c for c in purpose.cells if c.raw}
    every = [c for c in purpose.cells if not c.raw and c.keys["backend"] == decided.backend]
    own = [c for c in every if at_its_best(c, decided.decision)] or every
    both = [(raw[place(c)].seconds, c.seconds) for c in own if place(c) in raw]
    known = estimates({"raw": Pair(both)}) if both else {}
    return words.times(math.exp(known["raw"].centre)) if known else ""


def notes(found: Compared) -> Iterator[str]:
    """Yield the sentences below the table."""
    prices = found.decided.prices
    known = [purpose for purpose in found.decided.purposes if purpose.heading in prices]
    costs = [words.percent(prices[purpose.heading]) for purpose in known]
    if every := [*found.formats, *found.changes]:
        most = max(len(c.cells) for c in found.formats or every)
        same = "in the same size and layout" if found.formats else "with the same other settings"
        averaged = f" {same}, averaged" if most > 1 else ""
        marks = {"same": "same: within 10 %.", "open": "~: not decided."}
        there = {c.verdict.word for c in every}
        explained = [text for word, text in marks.items() if word in there]
        base = format_name(found.decided.backend)
        legend = f"×: time divided by {base}'s{averaged} (95 % interval)."
        yield " ".join([legend, *explained])
    everywhere = len(known) == len(found.decided.purposes)
    if len(prices) > 1 and everywhere and set(costs) == {words.percent(1.0)}:
        yield "In no column is another way faster."
    elif len(prices) > 1:
        users = ["a program", *["one"] * (len(known) - 1)]
        each = [
            f"{cost} for {user} that {purpose.alone}"
            for cost, user, purpose in zip(costs, users, known, strict=True)
        ]
        yield (
            f"The price is {words.percent(found.decided.decision.price)} for {found.decided.work}. "
            f"It is {words.listed(each)}."
        )
    if (worst := found.decided.worst) and not math.isinf(worst.price):
        yield f"In the worst comparison at most {words.percent(worst.price)} slower {worst.where}."
    yield from _changes(found)


def _changes(found: Compared) -> Iterator[str]:
    """Yield what another value of a key costs, the files first."""
    by_value = list(grouped(found.changes, lambda c: f"{c.by} {c.value}").values())
    verbs = _verbs(found)
    for some in by_value[:_MOST_CHANGES]:
        name = compared_name(found, some[0])
        costs = [f"{verbs[c.cells[0][0].keys['column']]} {words.verdict(c.verdict)}" for c in some]
        by = some[0].by
        (*usual,) = {base.keys.get(by, "") for c in some for _, base in c.cells}
        of = f" of {value_name(by, usual[0])}" if len(usual) == 1 and usual[0] else ""
        yield f"{name[0].upper()}{name[1:]} instead{of}: {', '.join([*costs, *_disk(some)])}."
    if len(by_value) > _MOST_CHANGES:
        yield f"{len(by_value) - _MOST_CHANGES} more changes are in summary.md."


def _verbs(found: Compared) -> dict[str, str]:
    """Return the purposes in one word, or in several where the word is not enough."""
    purposes = found.decided.purposes
    totals = [purpose.total for purpose in purposes]
    return {p.heading: p.verb if totals.count(p.total) > 1 else p.total for p in purposes}


def disk_sentence(decision: Decision) -> str:
    """Return what disk space costs in time, where ways differ in it; else nothing."""
    sizes = {way: sum(c.stored for c in some) for way, some in decision.cells.items()}
    least, most = min(sizes.values()), max(sizes.values())
    if not least or most < _MORE_DISK * least:
        return ""
    used = sizes[decision.way]
    if used < _MORE_DISK * least:
        return f" It needs the least disk, {words.times(used / most)} of the most."
    small = next(way for way in decision.prices if sizes[way] < _MORE_DISK * least)
    changed = [
        value_name(key, value)
        for key, value in decision.named(small).items()
        if value and value != decision.used[key]
    ]
    time = words.times(decision.over(small, decision.way))
    disk = words.times(sizes[small] / used)
    near = "" if sizes[small] < _AS_LITTLE * least else f" (within {words.percent(_MORE_DISK)})"
    return f" Least disk{near}: {', '.join(changed)}, {disk} the bytes in {time} the time."


def _disk(some: Sequence[Comparison]) -> list[str]:
    """Return how many times the bytes on disk a change needs, if it is another number."""
    pairs = [(one.stored, base.stored) for c in some for one, base in c.cells]
    ratios = [one / base for one, base in pairs if one and base]
    if not ratios:
        return []
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return [] if 0.95 < mean < 1.05 else [f"disk {words.times(mean)}"]


def ways_table(found: Compared) -> Table:
    """Return all ways, the cheapest first: their times, and what each costs at most.

    Times are over the one of the way to use, average of all comparisons. A cost is an upper bound
    over the best way, with a probability of 95 %.
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
    used = way_name(decision)
    title = f"All ways: times the time of {used}; at most: how much slower than the best way"
    return Table(title, ["", "at most", *columns], table_rows)
