"""Fitting laws to measured points, choosing one by held-out error, and predicting with it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pffbench_analysis.scaling.laws import LAWS, Law
from pffbench_analysis.scaling.points import Estimate, Kind, Values, medians

_RESAMPLES = 500
#: Sizes from which on two of them are held out, not one.
_MANY = 6
#: The fewest sizes from which a law can be told: two to fit it, one to check it.
FEWEST = 3
#: A prediction for more than this times the largest size is a guess.
FAR = 4.0


#: A prediction whose bounds are further apart than this tells nothing.
WIDE = 10.0
#: A law that is off by more than this where it was fitted fits poorly.
POOR = 0.10
#: Logarithm of a factor that no scatter between sizes exceeds: tails of one degree of freedom do.
_WILDEST = math.log(100.0)


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


@dataclass(frozen=True, eq=False)
class Fit:
    """A law, fitted to all sizes, and how it did when the largest were held out.

    Parameters
    ----------
    law : Law
        The law.
    coefficients : array of float64
        Of `Law.fit`.
    parameters : dict of str to Estimate
        By name; the intervals are from the bootstrap.
    residual : float
        Root mean square of the relative errors at the sizes that were fitted.
    held_out : tuple of Prediction
        The largest sizes, predicted from all the others.
    held_out_error : float
        Root mean square of the logarithms of predicted over measured.
    predictions : tuple of Prediction
        For the sizes that were asked for.
    """

    law: Law
    coefficients: Values
    parameters: Mapping[str, Estimate]
    residual: float
    held_out: tuple[Prediction, ...]
    held_out_error: float
    predictions: tuple[Prediction, ...]

    def rate(self, sizes: Sequence[float] | Values) -> Values:
        """Return the fitted rates in bytes per second."""
        at = np.asarray(sizes, dtype=np.float64)
        found: Values = self.law.rate(self.coefficients[np.newaxis], at)[0]
        return found


@dataclass(frozen=True)
class Fits:
    """The laws that were tried.

    Parameters
    ----------
    tried : tuple of Fit
        In the order of `LAWS`; empty when there are too few sizes.
    chosen : Fit or None
        The one with the least held-out error. The intervals of its predictions hold those of the
        other laws that are not told from it: their errors differ by less than the medians that
        were held out are uncertain, or their own intervals hold these medians.
    reason : str
        Why this one, or why none.
    """

    tried: tuple[Fit, ...]
    chosen: Fit | None
    reason: str


def fit_laws(
    rates: Mapping[int, Sequence[float] | Values], kind: Kind, predict: Sequence[int] = ()
) -> Fits:
    """Fit the laws that suit a kind of scaling, and choose one by held-out error.

    A law is tried when the sizes that remain after holding out the largest are at least as many
    as its parameters. Medians of the repetitions are fitted, each with the same relative weight.
    Intervals are from a bootstrap: repetitions are drawn anew within each size, and, where the
    medians lie further from the law than their repetitions explain, the excess is drawn as well.

    Parameters
    ----------
    rates : mapping of int to sequence of float
        For each size the bytes per second of every repetition.
    kind : {"weak", "strong"}
        Which laws are tried.
    predict : sequence of int
        Sizes to predict for.
    """
    sizes = sorted(rates)
    if len(sizes) < FEWEST:
        return Fits((), None, f"{len(sizes)} sizes: a law needs {FEWEST}, to be fitted and checked")
    values = [np.asarray(rates[size], dtype=np.float64) for size in sizes]
    held = 1 if len(sizes) < _MANY else 2
    tried = tuple(
        _fit(law, sizes, values, held, predict)
        for law in LAWS
        if kind in law.kinds and len(law.parameters) <= len(sizes) - held
    )
    margin = _uncertainty(values[-held:])
    best = min(tried, key=lambda fit: fit.held_out_error)
    alike = [
        fit
        for fit in tried
        if fit.held_out_error <= best.held_out_error + margin
        or all(prediction.covers for prediction in fit.held_out)
    ]
    what = "size" if held == 1 else f"{held} sizes"
    if len(tried) == 1:
        reason = f"the only law that {len(sizes)} sizes allow"
    else:
        reason = f"least error in predicting the largest {what} from the others"
    if others := [fit.law.title for fit in alike if fit is not best]:
        reason += f"; not told apart from {' and '.join(others)}, whose intervals are included"
    return Fits(tried, _widened(best, alike), reason)


def _widened(best: Fit, alike: Sequence[Fit]) -> Fit:
    """Return a fit whose predictions allow for the laws that do as well: which holds is open."""

    def hull(found: Sequence[Prediction]) -> Prediction:
        own = found[0].rate  # that of the chosen law
        sure = [p.rate for p in found if not math.isnan(p.rate.low)] or [own]
        low, high = min(r.low for r in sure), max(r.high for r in sure)
        return replace(
            found[0], rate=Estimate(own.value, min(low, own.value), max(high, own.value))
        )

    order = [best, *(fit for fit in alike if fit is not best)]
    return replace(
        best,
        held_out=tuple(map(hull, zip(*(fit.held_out for fit in order), strict=True))),
        predictions=tuple(map(hull, zip(*(fit.predictions for fit in order), strict=True))),
    )


def _uncertainty(values: Sequence[Values]) -> float:
    """Return how far medians are uncertain: half a 95 % interval, relative, the mean of them."""
    rng = np.random.default_rng(0)
    found = [np.percentile(np.log(medians(v, _RESAMPLES, rng)), [2.5, 97.5]) for v in values]
    return float(np.mean([(high - low) / 2 for low, high in found]))


def _fit(
    law: Law, sizes: Sequence[int], values: Sequence[Values], held: int, predict: Sequence[int]
) -> Fit:
    whole = _Bootstrap(law, sizes, values)
    part = _Bootstrap(law, sizes[:-held], values[:-held])
    left_out = tuple(
        part.predict(size, measured=float(np.median(v)))
        for size, v in zip(sizes[-held:], values[-held:], strict=True)
    )
    errors = [math.log(p.rate.value / p.measured) for p in left_out if p.measured]
    return Fit(
        law,
        whole.coefficients,
        whole.parameters(),
        whole.residual,
        left_out,
        math.sqrt(sum(e * e for e in errors) / len(errors)),
        tuple(whole.predict(size) for size in predict),
    )


class _Bootstrap:
    """A law fitted to medians, and to many medians that could as well have been measured."""

    def __init__(self, law: Law, sizes: Sequence[int], values: Sequence[Values]) -> None:
        self._law = law
        self._sizes = np.asarray(sizes, dtype=np.float64)
        self._rng = np.random.default_rng(0)
        middle = np.array([np.median(v) for v in values])
        self._best = law.fit(self._sizes, middle[np.newaxis])
        errors = np.log(law.rate(self._best, self._sizes)[0] / middle)
        self.residual = float(np.sqrt(np.mean(np.expm1(errors) ** 2)))
        # shape (resamples, sizes): logarithms of medians over the medians that were found
        drawn = [np.log(medians(v, _RESAMPLES, self._rng)) for v in values]
        self._noise = np.column_stack(drawn) - np.log(middle)
        self._freedom = len(sizes) - len(law.parameters)
        self._excess = self._beyond_noise(errors)
        #: Without repetitions or spare sizes nothing tells how sure the fit is.
        self._sure = self._freedom > 0 or bool(np.any(self._noise))
        moved = np.log(middle) + self._noise + self._draw_excess(len(sizes))
        self._drawn = law.fit(self._sizes, np.exp(moved)) if self._sure else None

    @property
    def coefficients(self) -> Values:
        """The coefficients of the fit to the medians themselves."""
        found: Values = self._best[0]
        return found

    def _beyond_noise(self, errors: Values) -> float:
        """Return the scatter of sizes about the law that their repetitions do not explain."""
        if self._freedom <= 0:
            return 0.0
        variance = float(np.sum(errors**2)) / self._freedom - float(
            np.mean(self._noise.var(axis=0))
        )
        return math.sqrt(max(variance, 0.0))

    def _draw_excess(self, columns: int) -> Values:
        """Draw that scatter, with the heavy tails of one that is known from few sizes."""
        drawn: Values = np.zeros((_RESAMPLES, columns))
        if self._excess > 0.0:
            freedom = self._freedom
            scale = np.sqrt(freedom / self._rng.chisquare(freedom, size=(_RESAMPLES, 1)))
            drawn = self._excess * scale * self._rng.standard_normal((_RESAMPLES, columns))
            drawn = np.clip(drawn, -_WILDEST, _WILDEST)
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
            column = self._rng.integers(own.shape[1], size=_RESAMPLES)
            noise = own[np.arange(_RESAMPLES), column] + self._draw_excess(1)[:, 0]
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
