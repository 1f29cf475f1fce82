"""Which of several ways is fastest for a purpose, and which cannot be told from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from pffbench.results.statistics import Spread, spread
from pffbench_analysis.compare.inference import FALSE_DISCOVERIES, FEWEST, adjusted
from pffbench_analysis.compare.model import SMALLEST_EFFECT
from pffbench_analysis.recommend.candidates import Candidate
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
    ratio : Spread or None
        Its time over that of the first one within the same blocks; None for the first one.
    standing : Standing
        What can be said.
    """

    candidate: Candidate
    median: float
    ratio: Spread | None
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
    2 %. With fewer than five blocks nothing is called slower.
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
    ratios = [_ratios(seconds, best) for _, seconds in others]
    blocks = min((r.size for r in ratios), default=len(best))
    spreads = [spread(r) if r.size else None for r in ratios]
    # The first one is chosen by the same numbers, so any pair could have been looked at.
    pairs_each = len(measured) / 2
    q_values = adjusted([min(1.0, pairs_each * _p_value(r)) for r in ratios])
    placed = [Placed(first, _median(best), None, Standing.FIRST)]
    for (candidate, seconds), ratio, q in zip(others, spreads, q_values, strict=True):
        slower = blocks >= FEWEST and ratio is not None and _is_slower(ratio, q)
        standing = Standing.SLOWER if slower else Standing.TIE
        placed.append(Placed(candidate, _median(seconds), ratio, standing))
    few = f"{blocks} repetitions are too few to claim a difference; take at least {FEWEST}"
    return Answer(purpose, tuple(placed), few if blocks < FEWEST else "")


def _is_slower(ratio: Spread, q: float) -> bool:
    return ratio.low > 1 and q <= FALSE_DISCOVERIES and ratio.median >= 1 + SMALLEST_EFFECT


def _median(seconds: Mapping[int, float]) -> float:
    return float(np.median(list(seconds.values())))


def _ratios(
    mine: Mapping[int, float], best: Mapping[int, float]
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    common = sorted(set(mine) & set(best))
    return np.array([mine[b] / best[b] for b in common if best[b] > 0], dtype=np.float64)


def _p_value(ratios: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """Test whether the logarithms of ratios are zero in the mean; ones that never vary are."""
    if ratios.size < 2:
        return 1.0
    logarithms = np.log(ratios)
    if np.ptp(logarithms) == 0.0:
        return 1.0 if logarithms[0] == 0.0 else 0.0
    from scipy.stats import ttest_1samp

    return float(ttest_1samp(logarithms, 0.0).pvalue)
