"""Scaling over ranks and nodes: points, efficiencies, crossings and predictions.

In a notebook::

    from pffbench_analysis.scaling import load_series

    series = load_series(["results/1n", "results/2n", "results/4n"])
    curve = series.curves[0]
    curve.efficiency(curve.points[-1]), series.prediction(curve)
"""

from pffbench_analysis.scaling.points import Curve, Point
from pffbench_analysis.scaling.prediction import Prediction, predict
from pffbench_analysis.scaling.series import Series, load_series

__all__ = ["Curve", "Point", "Prediction", "Series", "load_series", "predict"]
