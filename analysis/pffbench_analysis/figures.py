"""Figures of a chart: medians with intervals and repetitions, a row for each case."""

from __future__ import annotations

import math
from typing import Any

from pffbench.units import significant
from pffbench_analysis.charts import CaseMedian, Chart, Panel, dots_each, kept
from pffbench_analysis.picture import Picture, PicturePanel, Words
from pffbench_analysis.specs import (
    IN_ROW,
    ROW,
    Spec,
    Values,
    at,
    intervals,
    layer,
    log_scale,
    looks,
    number_axis,
    panel,
    point,
    points,
    row_axis,
    rules,
    texts,
    written,
)
from pffbench_analysis.style import colour


def draw(chart: Chart, words: Words) -> Picture:
    """Return the figure of a chart; each panel is a phase, all with one axis."""
    marks = [v for p in chart.panels for v in _drawn(p)]
    is_log = any(v > 0 for v in marks)
    x = number_axis(f"{chart.unit}, logarithmic" if is_log else chart.unit, log_scale(marks))
    rows = [f"{i} {label}" for i, label in enumerate(chart.labels)]
    most = dots_each(sum(len(panel.drawn) for panel in chart.panels))
    panels = [PicturePanel(p.heading, _panel(p, x, rows, most)) for p in chart.panels]
    columns = 2 if len(panels) <= 2 else 3
    return Picture(chart.heading, words, tuple(panels), columns)


def medians_spec(
    medians: Values,
    dots: Values,
    limit: Values,
    x: Spec,
    rows: list[str] | str,
    height: int | str,
    description: str = "",
) -> Spec:
    """Return the specification of medians, with intervals, repetitions and a bound.

    Parameters
    ----------
    medians : list of dict or str
        ``row``, ``value``, ``low``, ``high``, ``sure`` (whether these are an interval), ``text``
        and looks; ``low`` is None for one repetition.
    dots : list of dict or str
        ``row``, ``value``, ``fill`` and ``order`` (0 to 1, from the top of the row).
    limit : list of dict or str
        At most one: ``value`` and ``text``.
    x, rows
        The axes.
    height : int or str
        Of the panel, in pixels.
    description : str
        What the panel shows, for those who do not see it.
    """
    y = row_axis(rows)
    repetitions = {"x": at(x, "value"), "y": y, "yOffset": IN_ROW, **looks("fill")}
    dot = {"type": "circle", "size": 16, "opacity": 0.7, "strokeWidth": 0}
    bound = {"x": at(x, "value")}
    layers = [
        layer("repetitions", dot, dots, repetitions),
        rules("roofline", limit, bound, strokeDash=[5, 4], strokeWidth=1.3),
        texts("roofline_name", limit, at(x, "value"), {"value": 0}, align="center", dx=0, dy=-8),
        *intervals(medians, x, y),
        points("medians", medians, at(x, "value"), y, keep="isValid(datum.value)"),
        written(medians, y),
    ]
    return panel(layers, height, description, top=18 if limit else 4)


def _drawn(panel: Panel) -> list[float]:
    values = [v for e in panel.drawn for v in (e.value, e.low, e.high, *e.repetitions)]
    return values if panel.limit is None else [*values, panel.limit]


def _panel(panel: Panel, x: Spec, rows: list[str], most: int) -> Spec:
    medians, dots = [], []
    for row, median in zip(rows, panel.medians, strict=True):
        if median is None:
            medians.append({"row": row, "value": None, "low": None, "text": "–"})
            continue
        medians.append({"row": row, **_median(median)})
        dots += [{"row": row, **dot} for dot in _dots(median, most)]
    limit = [] if panel.limit is None else [{"value": panel.limit, "text": panel.limit_name}]
    return medians_spec(medians, dots, limit, x, rows, ROW * len(rows))


def _median(median: CaseMedian) -> dict[str, Any]:
    case, several = median.case, len(median.repetitions) > 1
    return {
        "value": median.value,
        "low": median.low if several else None,
        "high": median.high if several else None,
        "sure": median.has_interval,
        "text": significant(median.value) + "†" * median.unsure,
        **point(
            colour(case.sample.backend),
            filled=several,
            shape="square" if case.sample.transfer == "collective" else "circle",
            opacity=0.45 if case.sample.settings == "defaults" and not case.raw else 1.0,
        ),
    }


def _dots(median: CaseMedian, most: int) -> list[dict[str, Any]]:
    """Return at most a given number of repetitions, the first one uppermost."""
    places = kept(median.repetitions, most) if len(median.repetitions) > 1 else []
    return [
        {
            "value": median.repetitions[i],
            "fill": colour(median.case.sample.backend),
            "order": (n + 1) / (len(places) + 1),
        }
        for n, i in enumerate(places)
        if math.isfinite(median.repetitions[i])
    ]
