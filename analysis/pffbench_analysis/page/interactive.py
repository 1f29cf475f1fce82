"""Templates of the figures whose data the page's scripts choose, as Vega-Lite specifications.

Texts that begin with ``$`` are names of values that `figures.js` puts in their place.
"""

from __future__ import annotations

from pffbench_analysis.figures import medians_spec
from pffbench_analysis.specs import (
    Spec,
    at,
    layer,
    lines,
    looks,
    number_axis,
    panel,
    points,
    row_axis,
    rules,
    texts,
)

_EVEN = {"zero": False, "nice": False, "padding": 12}


def interactive_specs() -> dict[str, Spec]:
    """Return the templates by the name of their figure."""
    value = number_axis("$title", "$scale")
    medians = medians_spec("$medians", "$dots", "$limit", value, "$rows", "$height", "$name")
    return {
        "medians": medians,
        "compression": _compression(value),
        "drift": _drift(value),
        "spread": _spread(value),
        "byrank": _by_rank(value),
    }


def _compression(y: Spec) -> Spec:
    """Return each case at the bytes in its files and its time."""
    x = at(number_axis("MiB in the files", "$sizes"), "stored")
    ends = {"x": x, "y": at(y, "low"), "y2": {"field": "high"}}
    drawn = [
        rules("intervals", "$ways", ends, "isValid(datum.low)"),
        points("ways", "$ways", x, at(y, "value"), 80),
        texts("names", "$ways", x, at(y, "value"), dx=9),
    ]
    return panel(drawn, 320, "$name")


def _drift(y: Spec) -> Spec:
    """Return lines over the repetitions: drift, outliers and slow starts show here."""
    x = at(number_axis("repetition", _EVEN) | {"axis": "$ticks"}, "repetition")
    dots = {"x": x, "y": at(y, "value"), **looks("fill", "opacity")}
    dot = {"type": "point", "filled": True, "size": 34, "strokeWidth": 0}
    drawn = [
        lines("repetition_lines", "$rows", x, at(y, "value"), strokeWidth=1.8),
        layer("repetitions", dot, "$rows", dots),
        points("keys", "$names", {"value": "width"}, at(y, "value"), 50),
        texts("names", "$names", {"value": "width"}, at(y, "value"), dx=8),
    ]
    return panel(drawn, "$height", "$name")


def _spread(x: Spec) -> Spec:
    """Return the distribution over the ranks: extremes, quartiles, median."""
    y = row_axis("$rows")
    all_ranks = {"x": at(x, "least"), "x2": {"field": "most"}, "y": y}
    middle = {"x": at(x, "q1"), "x2": {"field": "q3"}, "y": y, **looks("opacity")}
    middle["stroke"] = {"field": "colour", "type": "nominal", "scale": None}
    end = {"type": "tick", "size": 8, "thickness": 1.4, "color": "currentColor"}
    drawn = [
        rules("extremes", "$boxes", all_ranks, strokeWidth=1.4),
        rules("quartiles", "$boxes", middle, "isValid(datum.q1)", strokeWidth=7),
        *(layer(f"ends_{e}", end, "$boxes", {"x": at(x, e), "y": y}) for e in ("least", "most")),
        points("medians", "$boxes", at(x, "middle"), y, 90),
    ]
    return panel(drawn, "$height", "$name")


def _by_rank(y: Spec) -> Spec:
    """Return each rank, or group of neighbours, of a case: its median, least and most."""
    x = at(number_axis("$rank", _EVEN) | {"axis": "$ticks"}, "rank")
    ends = {"x": x, "y": at(y, "low"), "y2": {"field": "high"}}
    drawn = [
        rules("extremes", "$ranks", ends, strokeWidth=1.2, opacity=0.6),
        points("medians", "$ranks", x, at(y, "median"), 60),
    ]
    return panel(drawn, 220, "$name")
