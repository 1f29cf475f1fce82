"""How sure a fitted law and its predictions are, by fitting to medians drawn anew."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pffbench_analysis.scaling.laws import Law
from pffbench_analysis.scaling.points import Estimate, Values, medians

RESAMPLES = 500
#: A prediction for more than this times the largest size is a guess.
FAR = 4.0


#: A prediction whose bounds are further apart than this tells nothing.
WIDE = 10.0
#: Few sizes tell little of how sizes scatter about a law. What is assumed beside them: as if two
#: further sizes had been seen to be off by 5 %.
_ASSUMED_SIZES, _ASSUMED_SCATTER = 2, 0.05


@dataclass(frozen=True)
class Prediction:
    """A rate that a law gives for a size that it was not fitted to.

    Parameters
    ----------
    size : int
        Ranks or nodes.
    rate : Estimate
        Bytes per second with the 95 % interval for the median of as many new repetitions.
    stretch : float
        The size over the largest one that was fitted.
    measured : float or None
        The rate that was measured there, for a size that was held out.
    """

    size: int
    rate: Estimate
    stretch: float
    measured: float | None = None

    @property
    def far(self) -> bool:
        """Whether it is too far away to be relied on."""
        return self.stretch > FAR

    @property
    def useless(self) -> bool:
        """Whether the interval is so wide that it tells nothing."""
        return self.rate.high > WIDE * self.rate.low

    @property
    def covers(self) -> bool | None:
        """Whether the interval holds what was measured; None when nothing was, or without one."""
        if self.measured is None or math.isnan(self.rate.low):
            return None
        return self.rate.low <= self.measured <= self.rate.high


class Bootstrap:
    """A law fitted to medians, and to many medians that could as well have been measured.

    Parameters
    ----------
    law : Law
        The law.
    sizes : sequence of int
        Ranks or nodes.
    values : sequence of array of float64
        For each size the bytes per second of every repetition.
    """

    def __init__(self, law: Law, sizes: Sequence[int], values: Sequence[Values]) -> None:
        self._law = law
        self._sizes = np.asarray(sizes, dtype=np.float64)
        self._rng = np.random.default_rng(0)
        middle = np.array([np.median(v) for v in values])
        self._best = law.fit(self._sizes, middle[np.newaxis])
        errors = np.log(law.rate(self._best, self._sizes)[0] / middle)
        self.residual = float(np.sqrt(np.mean(np.expm1(errors) ** 2)))
        # shape (resamples, sizes): logarithms of medians over the medians that were found
        drawn = [np.log(medians(v, RESAMPLES, self._rng)) for v in values]
        self._noise = np.column_stack(drawn) - np.log(middle)
        self._freedom = len(sizes) - len(law.parameters)
        self._squares = float(np.sum(errors**2))
        self._explained = float(np.mean(self._noise.var(axis=0)))
        #: Without repetitions or spare sizes nothing tells how sure the fit is.
        self._sure = self._freedom > 0 or bool(np.any(self._noise))
        moved = np.log(middle) + self._noise + self._draw_excess(len(sizes))
        self._drawn = law.fit(self._sizes, np.exp(moved)) if self._sure else None

    @property
    def coefficients(self) -> Values:
        """The coefficients of the fit to the medians themselves."""
        found: Values = self._best[0]
        return found

    def _draw_excess(self, columns: int) -> Values:
        """Draw the scatter of sizes about the law that their repetitions do not explain.

        The variance of all scatter is drawn from what the residuals and the assumption tell of
        it: sums of squares over a chi-square. What repetitions explain is taken off.
        """
        squares = self._squares + _ASSUMED_SIZES * _ASSUMED_SCATTER**2
        chance = self._rng.chisquare(self._freedom + _ASSUMED_SIZES, size=(RESAMPLES, 1))
        excess = np.maximum(squares / chance - self._explained, 0.0)
        drawn: Values = np.sqrt(excess) * self._rng.standard_normal((RESAMPLES, columns))
        return drawn

    def parameters(self) -> dict[str, Estimate]:
        """Return the parameters with their intervals."""
        found = self._law.parameters_of(self.coefficients)
        drawn = [] if self._drawn is None else [self._law.parameters_of(c) for c in self._drawn]
        return {name: _estimate(v, [d[name] for d in drawn]) for name, v in found.items()}

    def predict(self, size: int, measured: float | None = None) -> Prediction:
        """Predict a median that is still to be measured: it has noise of its own."""
        at = np.array([float(size)])
        value = float(self._law.rate(self._best, at)[0, 0])
        told: Values = np.empty(0)
        if self._drawn is not None:
            own = self._rng.permuted(self._noise, axis=0)
            column = self._rng.integers(own.shape[1], size=RESAMPLES)
            noise = own[np.arange(RESAMPLES), column] + self._draw_excess(1)[:, 0]
            told = self._law.rate(self._drawn, at)[:, 0] * np.exp(noise)
        rate = _estimate(value, told)
        return Prediction(size, rate, float(size / self._sizes[-1]), measured)


def _estimate(value: float, drawn: Sequence[float] | Values) -> Estimate:
    known = np.asarray(drawn, dtype=np.float64)
    known = known[np.isfinite(known)]
    if known.size == 0:
        return Estimate(value, math.nan, math.nan)
    low, high = np.percentile(known, [2.5, 97.5])
    # The best fit to the medians can lie outside of what resampled medians give.
    return Estimate(value, min(float(low), value), max(float(high), value))
