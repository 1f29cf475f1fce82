"""Scaling over ranks and nodes: points, efficiencies, fitted laws and predictions.

In a notebook::

    from pffbench_analysis.scaling import fit_laws, load_series

    series = load_series(["results/1n", "results/2n", "results/4n"])
    curve = series.curves[0]
    fit_laws({point.size: point.rates for point in curve.points}, curve.kind, predict=[16])
"""

from pffbench_analysis.scaling.bootstrap import Prediction
from pffbench_analysis.scaling.fits import Fit, Fits, fit_laws
from pffbench_analysis.scaling.points import Curve, Estimate, Point
from pffbench_analysis.scaling.series import Series, load_series
from pffbench_analysis.scaling.study import Fitted, study

__all__ = [
    "Curve",
    "Estimate",
    "Fit",
    "Fits",
    "Fitted",
    "Point",
    "Prediction",
    "Series",
    "fit_laws",
    "load_series",
    "study",
]
