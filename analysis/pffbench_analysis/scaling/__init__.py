"""Scaling over ranks and nodes: rates and efficiencies.

In a notebook::

    from pffbench_analysis.scaling import load_series

    series = load_series(["results/1n", "results/2n", "results/4n"])
    curve = series.curves[0]
    curve.points[-1].efficiency
"""

from pffbench_analysis.scaling.series import Curve, Point, Series, load_series

__all__ = ["Curve", "Point", "Series", "load_series"]
