"""Which of several ways is fastest for a purpose, and which cannot be told from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from pffbench_analysis.compare.inference import FALSE_DISCOVERIES, FEWEST, adjusted
from pffbench_analysis.compare.model import SMALLEST_EFFECT
from pffbench_analysis.recommend.candidates import Candidate
from pffbench_analysis.recommend.contrast import Contrast, contrast, p_values
from pffbench_analysis.recommend.purposes import Purpose


class Standing(StrEnum):
    """How a way stands to the one with the smallest median."""

    FIRST = "smallest median"
    SLOWER = "slower"
    TIE = "no difference shown"


@dataclass(frozen=True)
class Placed:
    """A way with its time and its standing.

    Parameters
    ----------
    candidate : Candidate
        The way.
    median : float
        Seconds of the purpose, the median over repetitions.
    ratio : Contrast or None
        Its time over that of the first one; None for the first one.
    standing : Standing
        What can be said.
    """

    candidate: Candidate
    median: float
    ratio: Contrast | None
    standing: Standing


@dataclass(frozen=True)
class Answer:
    """What is said of a purpose.

    Parameters
    ----------
    purpose : Purpose
        The purpose.
    placed : tuple of Placed
        The ways, the fastest first; empty where nothing can be said.
    why_not : str
        Why nothing can be said, or why no difference is claimed; mostly empty.
    """

    purpose: Purpose
    placed: tuple[Placed, ...]
    why_not: str = ""

    @property
    def first(self) -> Placed:
        """The way with the smallest median."""
        return self.placed[0]

    @property
    def ties(self) -> list[Placed]:
        """The ways that are not shown to be slower than the first one."""
        return [placed for placed in self.placed if placed.standing is Standing.TIE]

    @property
    def slower(self) -> list[Placed]:
        """The ways that are shown to be slower."""
        return [placed for placed in self.placed if placed.standing is Standing.SLOWER]


def judge(candidates: Sequence[Candidate], purpose: Purpose) -> Answer:
    """Compare ways within their blocks, each with the one of the smallest median.

    A way is called slower when the 95 % bootstrap interval of the median ratio within blocks
    excludes 1, a paired t test on the logarithms finds it with a false discovery rate of at most
    5 % (Benjamini and Hochberg, 1995) in view of all pairs of ways, and the difference is at least
    2 %. With fewer than five blocks nothing is called slower. Ways of two runs that were joined
    have no block in common: of these the interval is that of the ratio of the medians of
    independent repetitions, and the test Welch's.
    """
    measured = [(c, seconds) for c in candidates if (seconds := c.seconds(purpose))]
    if not measured:
        return Answer(purpose, (), "it was not measured")
    if short := [c for c, _ in measured if c.warned(purpose, "below_resolution")]:
        return Answer(
            purpose,
            (),
            f"too short to be told apart from the harness ({short[0].label}); take larger arrays",
        )
    measured.sort(key=lambda one: float(np.median(list(one[1].values()))))
    (first, best), *others = measured
    ratios = [contrast(best, seconds) for _, seconds in others]
    blocks = min((0 if r is None else r.n for r in ratios), default=len(best))
    # The first one is chosen by the same numbers, so any pair could have been looked at.
    pairs_each = len(measured) / 2
    q_values = adjusted([min(1.0, pairs_each * p) for p in p_values(ratios)])
    placed = [Placed(first, _median(best), None, Standing.FIRST)]
    for (candidate, seconds), ratio, q in zip(others, ratios, q_values, strict=True):
        slower = blocks >= FEWEST and ratio is not None and _is_slower(ratio, q)
        standing = Standing.SLOWER if slower else Standing.TIE
        placed.append(Placed(candidate, _median(seconds), ratio, standing))
    few = f"{blocks} repetitions are too few to claim a difference; take at least {FEWEST}"
    return Answer(purpose, tuple(placed), few if blocks < FEWEST else "")


def _is_slower(ratio: Contrast, q: float) -> bool:
    return ratio.low > 1 and q <= FALSE_DISCOVERIES and ratio.median >= 1 + SMALLEST_EFFECT


def _median(seconds: Mapping[int, float]) -> float:
    return float(np.median(list(seconds.values())))
