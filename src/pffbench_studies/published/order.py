"""Published orders of alternatives by speed, and the verdict of a run on them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

import numpy as np

from pffbench.grouping import grouped
from pffbench.results.cells import Cell, of_starts
from pffbench.results.compare import Question, compare
from pffbench.results.judge import Word
from pffbench_studies.published.counterparts import Match


class OrderVerdict(StrEnum):
    """Verdict on an order."""

    SAME = "same order"
    OTHER = "other order"
    PARTLY = "same as far as decided"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class OrderedPair:
    """Two alternatives, in the order in which the study has them."""

    #: As published.
    faster: Match
    slower: Match
    #: What is shown here of the time of the one published as slower, over the other's.
    word: Word

    @property
    def distinct(self) -> bool:
        """Whether the study distinguishes the two."""
        return self.faster.published.differs_from(self.slower.published)

    @property
    def agrees(self) -> bool | None:
        """Whether the run has the same order; None where that is not decided."""
        return {"slower": True, "faster": False}.get(self.word)


@dataclass(frozen=True)
class Order:
    """The alternatives of one subject, operation and variant."""

    #: Fastest published first; two or more.
    matches: tuple[Match, ...]
    #: All pairs of these.
    all_pairs: tuple[OrderedPair, ...]

    @property
    def pairs(self) -> list[OrderedPair]:
        """The pairs whose published numbers the study distinguishes; no other affects a verdict."""
        return [pair for pair in self.all_pairs if pair.distinct]

    @property
    def agreeing(self) -> int:
        """Number of pairs with the same order here."""
        return sum(pair.agrees is True for pair in self.pairs)

    @property
    def disagreeing(self) -> int:
        """Number of pairs with the other order here."""
        return sum(pair.agrees is False for pair in self.pairs)

    @property
    def undecided(self) -> int:
        """Number of pairs that the run does not decide."""
        return len(self.pairs) - self.agreeing - self.disagreeing

    @property
    def verdict(self) -> OrderVerdict:
        """Verdict on the whole order; one reversed pair breaks it."""
        if self.disagreeing:
            return OrderVerdict.OTHER
        if not self.agreeing:
            return OrderVerdict.UNDECIDED
        return OrderVerdict.PARTLY if self.undecided else OrderVerdict.SAME


def orders(matches: Sequence[Match], *, restarted: bool = False) -> Iterator[Order]:
    """Yield the order of the alternatives of each subject, variant and operation.

    Alternatives that the study lacks, or does not distinguish, are in no order. The pairs of all
    orders are one family of comparisons.

    Parameters
    ----------
    matches : sequence of Match
        Numbers of a run.
    restarted : bool
        Whether the ranks start again in each round.
    """
    groups = grouped(
        ((m.subject, m.variant, m.operation), m) for m in times(matches) if not m.beyond
    )
    ordered = [sorted(group, key=lambda m: m.published.value) for group in groups.values()]
    ordered = [
        ranked
        for ranked in ordered
        if any(a.published.differs_from(b.published) for a, b in combinations(ranked, 2))
    ]
    cells = [
        _cell(match, str(order), str(place), restarted=restarted)
        for order, ranked in enumerate(ordered)
        for place, match in enumerate(ranked)
        if not match.below_resolution
    ]
    (found,) = compare([(cells, Question("place", ["order"]))])
    words = {(c.cells[0][0].keys["order"], c.base, c.value): c.verdict.word for c in found}
    for order, ranked in enumerate(ordered):
        pairs = (
            OrderedPair(a, b, words.get((str(order), str(i), str(j)), "open"))
            for (i, a), (j, b) in combinations(enumerate(ranked), 2)
        )
        yield Order(tuple(ranked), tuple(pairs))


def _cell(match: Match, order: str, place: str, *, restarted: bool) -> Cell:
    """Return a number as a cell: the times of an alternative, by its place in a published order."""
    times = {number: match.factor * s for number, s in match.phase.by_round.items()}
    keys = {"order": order, "place": place, "total": match.operation}
    return Cell(keys, of_starts(times) if restarted else times, 0, False, match.case.name)


def times(matches: Sequence[Match]) -> list[Match]:
    """Return the numbers that are times, for which less is better."""
    return [match for match in matches if match.measured is None]


@dataclass(frozen=True)
class Correlation:
    """Rank correlation of a variant's numbers with the study's."""

    #: The variant.
    variant: str
    #: Kendall's tau-b of published numbers and medians here, intervals not regarded: 1 is the same
    #: order, 0 none, -1 the reverse.
    tau: float
    #: Number of numbers.
    n: int


def correlations(matches: Sequence[Match]) -> Iterator[Correlation]:
    """Yield the rank correlation of each variant with two times or more."""
    for variant, own in grouped((m.variant, m) for m in times(matches)).items():
        if len(own) > 1:
            tau = kendall([m.published.value for m in own], [m.here for m in own])
            yield Correlation(variant, tau, len(own))


def kendall(one: Sequence[float], other: Sequence[float]) -> float:
    """Return Kendall's rank correlation tau-b; NaN where all values of one of the two are equal."""
    order, others = (np.sign(np.subtract.outer(values, values)) for values in (one, other))
    pairs = float((order**2).sum() * (others**2).sum())
    return float((order * others).sum()) / math.sqrt(pairs) if pairs else math.nan
