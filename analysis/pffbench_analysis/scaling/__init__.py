"""Scaling over ranks and nodes: points, efficiencies and crossings.

In a notebook::

    from pffbench_analysis.scaling import load_series

    series = load_series(["results/1n", "results/2n", "results/4n"])
    curve = series.curves[0]
    curve.efficiency(curve.points[-1])
"""

from pffbench_analysis.scaling.points import Curve, Point
from pffbench_analysis.scaling.series import Series, load_series

__all__ = ["Curve", "Point", "Series", "load_series"]
