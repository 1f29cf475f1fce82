"""A scaling series with a law for each of its curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pffbench_analysis.scaling.fits import Fits, fit_laws
from pffbench_analysis.scaling.points import Curve
from pffbench_analysis.scaling.series import Series


@dataclass(frozen=True, eq=False)
class Fitted:
    """A curve and its laws.

    Parameters
    ----------
    curve : Curve
        The measured curve.
    fits : Fits
        The laws fitted to it.
    """

    curve: Curve
    fits: Fits

    @property
    def held_out(self) -> set[int]:
        """The held-out sizes by which the law was chosen."""
        fit = self.fits.chosen
        return set() if fit is None else {p.size for p in fit.held_out}


def study(series: Series, predict: int | None = None) -> list[Fitted]:
    """Fit laws to all curves of a series.

    Parameters
    ----------
    series : Series
        The measured series.
    predict : int, optional
        Ranks or nodes to predict for; by default twice the largest size.
    """
    return [Fitted(curve, _fits(curve, predict)) for curve in series.curves]


def _fits(curve: Curve, predict: int | None) -> Fits:
    if curve.kind is None:
        few = "one size: nothing scales" if len(curve.points) == 1 else "not a scaling series"
        return Fits((), None, few)
    rates = {point.size: point.rates for point in curve.points}
    return fit_laws(rates, curve.kind, [predict or 2 * curve.sizes[-1]])


def groups(fitted: Sequence[Fitted]) -> dict[str, list[Fitted]]:
    """Return the curves of each comparison: the same work, done in several ways."""
    found: dict[str, list[Fitted]] = {}
    for one in fitted:
        found.setdefault(one.curve.case.sample.group, []).append(one)
    return found
