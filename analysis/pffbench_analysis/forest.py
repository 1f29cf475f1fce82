"""The figure of the answer of a run: ratios with intervals, a panel per total."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pffbench.summary.conclusions import interval, number
from pffbench_analysis.answer import AnswerPanel, AnswerRow
from pffbench_analysis.picture import Picture, PicturePanel, Words
from pffbench_analysis.specs import (
    INK,
    ROW,
    Spec,
    at,
    band,
    headings,
    layer,
    log_scale,
    number_axis,
    panel,
    point,
    points,
    row_axis,
    rules,
    written,
)
from pffbench_analysis.style import colour, plain, short

_SHAPES = {
    "fastest": "diamond", "ahead": "diamond", "slower": "circle", "equal": "square",
    "undecided": "circle",
}  # fmt: skip
_STANDINGS = {
    "fastest": "fastest", "ahead": "smallest median, not decided", "slower": "slower",
    "equal": "equally fast", "undecided": "not decided",
}  # fmt: skip


def draw_answer(panels: Sequence[AnswerPanel], margin: float, words: Words) -> Picture:
    """Return the figure of the answer.

    Parameters
    ----------
    panels : sequence of AnswerPanel
        One or more.
    margin : float
        Half-width, as a part, of the band in which contenders count as equally fast.
    words : Words
        Text around the panels.
    """
    names = tuple(row.name for panel in panels for row in panel.rows)
    drawn = tuple(answer_specs(panels, margin))
    return Picture("How many times as long as the fastest", words, drawn, names=names)


def answer_specs(panels: Sequence[AnswerPanel], margin: float) -> list[PicturePanel]:
    """Return the panels of the answer, for files and for the page."""
    ratios = [row.ratio for panel in panels for row in panel.rows]
    ends = [v for ratio in ratios for v in (ratio.low, ratio.value, ratio.high)]
    scale = log_scale([*ends, 1 / (1 + margin), 1 + margin], 0.06)
    return [PicturePanel(panel.heading, _panel(panel, margin, scale)) for panel in panels]


def row_facts(row: AnswerRow, heading: str) -> dict[str, str]:
    """Return what is known of a contender, in words."""
    facts = {"format": row.name, "fastest case": row.case, "in": heading}
    if row.comparison:
        facts["comparison"] = row.comparison
    facts |= {"standing": _STANDINGS[row.standing], "median": _seconds(row.seconds)}
    if not row.is_first:
        facts |= {"times as long": _ratio(row), "repetitions": f"{row.ratio.n}"}
    if row.needed:
        facts["would decide it"] = f"about {row.needed} repetitions"
    return facts


def _panel(found: AnswerPanel, margin: float, scale: Spec) -> Spec:
    rows: list[str] = []
    titles: list[dict[str, Any]] = []
    for row in found.rows:
        title = f"{row.key[0]} "
        if row.comparison and title not in rows:
            rows.append(title)
            titles.append({"row": title, "text": row.comparison})
        rows.append(_id(row))
    values = [_values(row, found.heading, scale["domain"]) for row in found.rows]
    x = number_axis("time over the smallest median, logarithmic", scale)
    y = row_axis(rows)
    ends = {"x": at(x, "low"), "x2": {"field": "high"}, "y": y}
    cap = {"type": "tick", "thickness": 1.8, "size": 10, "color": INK}
    arrow = {"type": "point", "shape": "triangle-right", "size": 60, "filled": True, "color": INK}
    layers = [
        *band(margin, x),
        rules("intervals", values, ends, "isValid(datum.low)", strokeWidth=1.8),
    ]
    for end, angle in (("low", 180), ("high", 0)):
        encoding = {"x": at(x, end), "y": y}
        bounded, open_ = f"datum.{end}_ends", f"isValid(datum.low) && !datum.{end}_ends"
        layers += [
            layer(f"caps_{end}", cap, values, encoding, keep=f"isValid(datum.low) && {bounded}"),
            layer(f"arrows_{end}", {**arrow, "angle": angle}, values, encoding, keep=open_),
        ]
    layers += [
        points("ratios", values, at(x, "ratio"), y, 130, "isValid(datum.ratio)"),
        written(values, y),
        *headings(titles, y),
    ]
    told = ", ".join(f"{row.comparison} {row.name} {_text(row)}".strip() for row in found.rows)
    return panel(layers, ROW * len(rows), f"{found.heading}: {told}")


def _id(row: AnswerRow) -> str:
    return f"{row.key[0]} {plain(row.name)}"


def _values(row: AnswerRow, heading: str, bounds: Sequence[float]) -> dict[str, Any]:
    ratio = row.ratio
    filled = row.standing not in ("ahead", "undecided")
    return {
        "row": _id(row),
        "standing": row.standing,
        "ratio": ratio.value if math.isfinite(ratio.value) else None,
        "low": None if row.is_first else max(ratio.low, bounds[0]),
        "high": None if row.is_first else min(ratio.high, bounds[1]),
        "low_ends": ratio.low > bounds[0],
        "high_ends": ratio.high < bounds[1],
        "text": _text(row),
        "told": row_facts(row, heading),
        **point(colour(row.backend), filled=filled, shape=_SHAPES[row.standing]),
    }


def _text(row: AnswerRow) -> str:
    if row.is_first:
        return f"{'fastest' if row.standing == 'fastest' else 'ahead'}, {_seconds(row.seconds)}"
    return _ratio(row)


def _ratio(row: AnswerRow) -> str:
    if not math.isfinite(row.ratio.value):
        return "–"
    return f"{number(row.ratio.value)} ({interval(row.ratio)})"


def _seconds(seconds: float) -> str:
    return f"{short(seconds)} s" if seconds >= 1 else f"{short(1e3 * seconds)} ms"
