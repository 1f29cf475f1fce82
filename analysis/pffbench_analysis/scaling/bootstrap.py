"""Bootstrap intervals of fitted laws and predictions, from fits to resampled medians."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pffbench_analysis.scaling.laws import Law
from pffbench_analysis.scaling.points import Estimate, Values, medians

RESAMPLES = 500
#: Ratio to the largest size above which a prediction is a guess.
FAR = 4.0


#: Ratio of the bounds above which a prediction is useless.
WIDE = 10.0
#: Few sizes give little information on the scatter about a law. Assumed in addition: two
#: further sizes with deviations of 5 %.
_ASSUMED_SIZES, _ASSUMED_SCATTER = 2, 0.05


@dataclass(frozen=True)
class Prediction:
    """The rate of a law at a size that it was not fitted to.

    Parameters
    ----------
    size : int
        Ranks or nodes.
    rate : Estimate
        Bytes per second with the 95 % interval for the median of as many new repetitions.
    stretch : float
        The size over the largest one that was fitted.
    measured : float or None
        The measured rate, for a held-out size.
    """

    size: int
    rate: Estimate
    stretch: float
    measured: float | None = None

    @property
    def far(self) -> bool:
        """Whether the size is too far away for a reliable prediction."""
        return self.stretch > FAR

    @property
    def useless(self) -> bool:
        """Whether the interval is too wide to be informative."""
        return self.rate.high > WIDE * self.rate.low

    @property
    def covers(self) -> bool | None:
        """Whether the interval holds the measured rate; None without either."""
        if self.measured is None or math.isnan(self.rate.low):
            return None
        return self.rate.low <= self.measured <= self.rate.high


class Bootstrap:
    """A law fitted to the medians and to resampled medians.

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
        # shape (resamples, sizes): logarithms of resampled over measured medians
        drawn = [np.log(medians(v, RESAMPLES, self._rng)) for v in values]
        self._noise = np.column_stack(drawn) - np.log(middle)
        self._freedom = len(sizes) - len(law.parameters)
        self._squares = float(np.sum(errors**2))
        self._explained = float(np.mean(self._noise.var(axis=0)))
        #: Without repetitions or spare sizes the uncertainty of the fit is unknown.
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

        The variance of all scatter is drawn from the residuals and the assumption: sums of
        squares over a chi-square. The part explained by repetitions is subtracted.
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
        """Predict a median yet to be measured, including its own noise."""
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
    # The best fit to the medians can lie outside the range of resampled fits.
    return Estimate(value, min(float(low), value), max(float(high), value))
