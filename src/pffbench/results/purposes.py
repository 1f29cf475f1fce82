"""Purposes: the parts of the work in which ways are compared, and the price of a way for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pffbench.results.cells import NOT_IN_FORCE, Cell
from pffbench.results.decision import Decision, Weights, decide_way
from pffbench.results.judge import FEWEST, bounds
from pffbench.results.words import listed
from pffbench.units import Size

#: The work of a user who names none.
ONCE: Weights = {"write": 1.0, "read": 1.0}
#: States of the cache in which files are read from the page cache.
CACHED = frozenset({"warm", "shifted"})
_ORDER = ("write", "update", "read")


class Purpose(NamedTuple):
    """A part of the work that ways are compared in, and a column of the answer."""

    #: ``write``, ``update`` or ``read``.
    total: str
    #: What it is for a user.
    heading: str
    #: The cells, raw ones among them.
    cells: Sequence[Cell]

    @property
    def verb(self) -> str:
        """The heading within a sentence: ``read from the page cache``."""
        return self.heading.replace("read, page cache", "read from the page cache")

    @property
    def alone(self) -> str:
        """What a program does that does nothing else: ``only reads from disk``."""
        said = self.verb.replace("change to", "change data on").replace(
            "change and", "change data and"
        )
        first, _, others = said.partition(" ")
        return f"only {first}s {others.replace('close', 'closes')}"


class Worst(NamedTuple):
    """The price of a way in a single comparison, with words for which one."""

    price: float
    where: str


class Decided(NamedTuple):
    """The way to use, and what it costs for each purpose alone."""

    #: The way to use for all of the work, and the price of each way.
    decision: Decision
    #: The work, in words: ``1 write and 1 read from the page cache``.
    work: str
    #: The parts of the work.
    purposes: Sequence[Purpose]
    #: The prices of all ways for each part alone, by heading.
    each: Mapping[str, Decision]
    #: The highest price of the way in a single comparison; None if there is only one for each part.
    worst: Worst | None = None

    @property
    def backend(self) -> str:
        """The format to use."""
        return self.decision.cell.keys["backend"]

    @property
    def prices(self) -> dict[str, float]:
        """Price of the way for each part that it was measured in, by heading."""
        ways = {heading: one.way_of(self.decision.used) for heading, one in self.each.items()}
        return {h: self.each[h].prices[way] for h, way in ways.items() if way is not None}

    @property
    def most(self) -> float:
        """The highest price."""
        return max([self.decision.price, *self.prices.values()])


def decide_work(cells: Sequence[Cell], weights: Weights | None = None) -> Decided | None:
    """Choose a way for a work, and return its price for each part; None if nothing is compared.

    Parameters
    ----------
    cells : sequence of Cell
        Of totals, as `usable` returns them.
    weights : dict of str to float, optional
        How often data are written and read; once each if not given.
    """
    cached = [c for c in cells if c.keys["cache"] in CACHED]
    main = cached if any(not c.raw for c in cached) else cells
    totals = {c.keys["total"] for c in main if not c.raw}
    wanted = {t: n for t, n in (weights or ONCE).items() if t in totals and n}
    wanted = wanted or dict.fromkeys(totals, 1.0)
    decision = decide_way(main, wanted)
    if decision is None:
        return None
    purposes = purposes_of(cells)
    each = {p.heading: one for p in purposes if (one := decide_way(p.cells, {p.total: 1.0}))}
    work = _work_in_words(purposes_of(main), wanted)
    return Decided(decision, work, purposes, each, _worst(purposes, each, decision))


def _work_in_words(purposes: Sequence[Purpose], weights: Weights) -> str:
    """Return how often data are written and read: ``1 write and 10 reads from disk``."""
    texts = []
    for purpose in purposes:
        if number := weights.get(purpose.total):
            noun = f"{purpose.total}{'' if number == 1 else 's'}"
            if purpose.total == "read":
                cached = "page cache" in purpose.heading
                noun += " from the page cache" if cached else " from disk"
            texts.append(f"{number:g} {noun}")
    return listed(list(dict.fromkeys(texts)))


def _worst(
    purposes: Sequence[Purpose], each: Mapping[str, Decision], decision: Decision
) -> Worst | None:
    found = []
    for purpose in purposes:
        one = each.get(purpose.heading)
        way = one.way_of(decision.used) if one else None
        if one is None or way is None or len(one.cells[way]) < 2:
            continue
        for place, cell in enumerate(one.cells[way]):
            seconds = {other: [some[place].seconds] for other, some in one.cells.items()}
            size = f", {Size(cell.nbytes)} in all"
            found.append(Worst(bounds(seconds)[way], f"to {purpose.verb}{size}"))
    return max(found, key=lambda worst: worst.price, default=None)


def usable(cells: Sequence[Cell], resolution: float) -> list[Cell]:
    """Return the cells that comparisons rest on: of equal work, and long enough to be measured.

    A way takes no part whose hints or stripes are not in force, since they name it. Nor does one
    with too few rounds next to others that have enough: the time budget has ended it.

    Parameters
    ----------
    cells : sequence of Cell
        Of totals.
    resolution : float
        Seconds below which the overhead of the harness matters.
    """
    measured = [
        c for c in cells if c.seconds and c.median >= resolution and NOT_IN_FORCE not in c.keys
    ]
    often = [c for c in measured if len(c.seconds) >= FEWEST]
    measured = often if any(not c.raw for c in often) else measured
    matched = [c for c in measured if c.raw or c.keys.get("settings") == "matched"]
    return matched if any(not c.raw for c in matched) else measured


def purposes_of(cells: Sequence[Cell]) -> list[Purpose]:
    """Return the parts of the work: writing and changing, then reading by the cache.

    Cases whose files are read from disk are compared in reading only, unless all are. What only raw
    transfers do is a part where there is nothing else.
    """
    found: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        total, cache = cell.keys["total"], cell.keys["cache"]
        if total == "read" or cache in CACHED:
            found.setdefault((total, heading_of(cell)), []).append(cell)
    if not any(not c.raw and c.keys["total"] != "read" for some in found.values() for c in some):
        for cell in cells:
            if cell.keys["total"] != "read" and cell.keys["cache"] not in CACHED:
                found.setdefault((cell.keys["total"], heading_of(cell)), []).append(cell)
    purposes = [Purpose(total, heading, some) for (total, heading), some in found.items()]
    kept = [p for p in purposes if any(not cell.raw for cell in p.cells)] or purposes
    return sorted(kept, key=lambda purpose: _ORDER.index(purpose.total))


def heading_of(cell: Cell) -> str:
    """Return what a cell measures, in words."""
    total = cell.keys["total"]
    if total == "read":
        return "read, page cache" if cell.keys["cache"] in CACHED else "read from disk"
    verb = {"write": "write", "update": "change"}[total]
    return f"{verb} to disk" if cell.keys.get("durability") == "sync" else f"{verb} and close"
