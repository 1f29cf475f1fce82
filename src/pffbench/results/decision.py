"""The decision: which way to use for a purpose, and what it costs at most if another one is better.

The ways of the same work are all combinations of format, files, chunks and other settings that a
run has measured for it. The way to use is the one with the smallest price.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pffbench.results.cells import Cell, grouped, summed, varying
from pffbench.results.judge import BETWEEN_RATIOS, bounds

Weights = Mapping[str, float]
#: A way, by the values of the keys in which ways differ.
Way = tuple[str, ...]
#: Keys that do not tell ways apart.
NOT_OF_WAYS = frozenset({"run", "total", "work", "ranks"})


class Decision(NamedTuple):
    """What to use for a purpose."""

    #: Keys in which the ways differ.
    keys: Sequence[str]
    #: Upper bound of the time of each way over that of the best one, the smallest first.
    prices: Mapping[Way, float]
    #: Times of each way for the purpose, in each comparison.
    cells: Mapping[Way, Sequence[Cell]]

    @property
    def way(self) -> Way:
        """The way to use."""
        return next(iter(self.prices))

    @property
    def used(self) -> dict[str, str]:
        """The values of the keys of the way to use."""
        return self.named(self.way)

    def named(self, way: Way) -> dict[str, str]:
        """Return the values of a way by their keys."""
        return dict(zip(self.keys, way, strict=True))

    def best_of(self, key: str, value: str) -> Way | None:
        """Return the cheapest way with a value of a key; None if no way has it."""
        return next((way for way in self.prices if self.named(way).get(key) == value), None)

    def way_of(self, named: Mapping[str, str]) -> Way | None:
        """Return the way that has all values of another one; None if it was not measured.

        Keys in which no two ways here differ must have the value of all of them.
        """
        way = tuple(named.get(key, "") for key in self.keys)
        if way not in self.cells:
            return None
        own = self.cells[way][0].keys
        return way if all(own.get(key, "") == value for key, value in named.items()) else None

    def over(self, way: Way, base: Way | None) -> float:
        """Return the time of a way over the one of another way, averaged over the comparisons."""
        if base is None:
            return math.nan
        return math.exp((_mean(self.cells[way]) - _mean(self.cells[base])) / len(self.cells[way]))

    @property
    def cell(self) -> Cell:
        """Its times in the first comparison."""
        return self.cells[self.way][0]

    @property
    def largest(self) -> Cell:
        """Its times in the comparison of the most bytes."""
        return max(self.cells[self.way], key=lambda cell: cell.nbytes)

    @property
    def price(self) -> float:
        """What it costs at most."""
        return self.prices[self.way]

    @property
    def rounds(self) -> int:
        """Rounds that every way has."""
        return min(len(cell.seconds) for cells in self.cells.values() for cell in cells)


def decide_way(
    cells: Sequence[Cell], weights: Weights, *, between: float = BETWEEN_RATIOS
) -> Decision | None:
    """Choose a way for a purpose; None where nothing is compared.

    Compared are the ways of the largest comparison, over all comparisons that have the same ways,
    such as several sizes of the arrays.

    Parameters
    ----------
    cells : sequence of Cell
        Of one run, and one state of the cache. Raw transfers take no part.
    weights : dict of str to float
        How often data are written and read, such as ``{"write": 1, "read": 1}``.
    between : float
        As in `pffbench.results.judge.bounds`.
    """
    comparisons = _comparisons(summed([c for c in cells if not c.raw], weights))
    keys = way_keys(comparisons)
    named = [{_way(cell, keys): cell for cell in some} for some in comparisons]
    if not named:
        return None
    largest = max(named, key=len)
    alike = [ways for ways in named if ways.keys() == largest.keys()]
    of_ways = {way: [ways[way] for ways in alike] for way in largest}
    prices = bounds(
        {way: [cell.seconds for cell in some] for way, some in of_ways.items()}, between=between
    )
    order = sorted(prices, key=lambda way: (prices[way], _mean(of_ways[way])))
    return Decision(keys, {way: prices[way] for way in order}, of_ways)


def way_keys(comparisons: Iterable[Sequence[Cell]]) -> list[str]:
    """Return the keys in which ways of the same work differ, the format first."""
    keys = dict.fromkeys(
        k for some in comparisons for k in varying([c.keys for c in some], NOT_OF_WAYS)
    )
    return sorted(keys, key=lambda key: key != "backend")


def _comparisons(cells: Sequence[Cell]) -> list[list[Cell]]:
    alike = grouped(cells, lambda cell: (cell.keys["work"], cell.nbytes))
    return [some for some in alike.values() if len(some) > 1]


def _way(cell: Cell, keys: Sequence[str]) -> Way:
    return tuple(cell.keys.get(key, "") for key in keys)


def _mean(cells: Sequence[Cell]) -> float:
    return sum(math.log(cell.median) for cell in cells if cell.median > 0)
