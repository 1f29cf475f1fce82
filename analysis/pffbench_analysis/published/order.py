"""Published orders of alternatives by speed, and the verdict of a run on them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pffbench.summary.inference import Decision
from pffbench_analysis.published.counterparts import Match


class OrderVerdict(StrEnum):
    """Verdict on an order."""

    SAME = "same order"
    OTHER = "other order"
    PARTLY = "same as far as decided"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class OrderedPair:
    """Two alternatives, in the order in which the study has them.

    Parameters
    ----------
    faster, slower : Match
        As published.
    decision : Decision or None
        On the time here of the one published as slower over that of the other; None where they
        have no block in common, or one is below resolution.
    """

    faster: Match
    slower: Match
    decision: Decision | None

    @property
    def agrees(self) -> bool | None:
        """Whether the run has the same order; None where that is not decided."""
        if self.decision is None or not self.decision.different:
            return None
        return self.decision.longer


@dataclass(frozen=True)
class Order:
    """The alternatives of one subject, operation and variant.

    Parameters
    ----------
    matches : tuple of Match
        Fastest published first; two or more.
    pairs : tuple of OrderedPair
        Pairs whose published numbers the study distinguishes.
    alike : tuple of OrderedPair
        The other pairs, which affect no verdict.
    """

    matches: tuple[Match, ...]
    pairs: tuple[OrderedPair, ...]
    alike: tuple[OrderedPair, ...] = ()

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


@dataclass(frozen=True)
class Correlation:
    """Rank correlation of a variant's numbers with the study's.

    Parameters
    ----------
    variant : str
        The variant.
    tau : float
        Kendall's tau-b of published numbers and medians here, intervals not regarded: 1 is the
        same order, 0 none, -1 the reverse.
    n : int
        Number of numbers.
    nearest : bool
        As of `Match`.
    """

    variant: str
    tau: float
    n: int
    nearest: bool
