"""Fitting of laws to measured points, choice by held-out error, and prediction."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pffbench_analysis.scaling.bootstrap import RESAMPLES, Bootstrap, Prediction
from pffbench_analysis.scaling.laws import LAWS, Law
from pffbench_analysis.scaling.points import Estimate, Kind, Values, medians

#: Number of sizes from which two are held out instead of one.
_MANY = 6
#: Smallest number of sizes for a law: two to fit it, one to check it.
FEWEST = 3
#: Residual above which a law fits poorly.
POOR = 0.10


@dataclass(frozen=True, eq=False)
class Fit:
    """A law fitted to all sizes, and its error when the largest are held out.

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
        Predictions for the requested sizes.
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
    """The fitted laws of a curve.

    Parameters
    ----------
    tried : tuple of Fit
        Fits in the order of `LAWS`; empty for too few sizes.
    chosen : Fit or None
        The one with the smallest held-out error. The intervals of its predictions include those of
        the other laws that are not distinguished from it: their errors differ by less than the
        uncertainty of the held-out medians, or their own intervals hold these medians.
    reason : str
        Reason for the choice, or for none.
    """

    tried: tuple[Fit, ...]
    chosen: Fit | None
    reason: str


def fit_laws(
    rates: Mapping[int, Sequence[float] | Values], kind: Kind, predict: Sequence[int] = ()
) -> Fits:
    """Fit the laws that suit a kind of scaling, and choose one by held-out error.

    A law is fitted if at least as many sizes remain after holding out the largest as it has
    parameters. Medians of the repetitions are fitted, each with the same relative weight.
    Intervals are from a bootstrap: repetitions are resampled within each size, and, where the
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
    """Return a fit whose predictions allow for the laws that fit equally well."""

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
    """Return the uncertainty of medians: the mean relative half-width of their 95 % intervals."""
    rng = np.random.default_rng(0)
    found = [np.percentile(np.log(medians(v, RESAMPLES, rng)), [2.5, 97.5]) for v in values]
    return float(np.mean([(high - low) / 2 for low, high in found]))


def _fit(
    law: Law, sizes: Sequence[int], values: Sequence[Values], held: int, predict: Sequence[int]
) -> Fit:
    whole = Bootstrap(law, sizes, values)
    part = Bootstrap(law, sizes[:-held], values[:-held])
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
