"""Published numbers and those of a run over one parameter, the others equal: data of figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pffbench_analysis.published.counterparts import Match, PublishedValue

#: Rows of panels of a figure: those with most points are drawn.
MOST_ROWS = 6


@dataclass(frozen=True)
class PublishedPoint:
    """A number at its place on the axis.

    Parameters
    ----------
    x, y : float
        Place and number; the place of a name is its number in the axis.
    low, high : float
        Interval of what was measured, standard deviation around what was published; NaN where
        there is none.
    """

    x: float
    y: float
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True)
class PublishedCurve:
    """An alternative.

    Parameters
    ----------
    alternative, backend : str
        Its name, and the backend that it was measured with.
    published, here : tuple of Point
        What the study has and what was measured, by their places.
    """

    alternative: str
    backend: str
    published: tuple[PublishedPoint, ...]
    here: tuple[PublishedPoint, ...]


@dataclass(frozen=True)
class PublishedPanel:
    """What one pair of axes shows.

    Parameters
    ----------
    row : str
        What was worked on.
    quantity : str
        What is on the vertical axis, with its unit.
    curves : tuple of Curve
        The alternatives.
    """

    row: str
    quantity: str
    curves: tuple[PublishedCurve, ...]


@dataclass(frozen=True)
class Curves:
    """A figure.

    Parameters
    ----------
    name : str
        Of its files.
    heading : str
        Its first line.
    over : str
        What is on the horizontal axis.
    names : tuple of str
        What stands at the places 0, 1, … of an axis of names; empty for one of numbers.
    panels : tuple of Panel
        Row by row; all rows have the same quantities.
    left_out : int
        Rows that had no room.
    note : str
        What else has to be known to read it.
    """

    name: str
    heading: str
    over: str
    names: tuple[str, ...]
    panels: tuple[PublishedPanel, ...]
    left_out: int = 0
    note: str = ""


@dataclass(frozen=True)
class PublishedAxis:
    """The horizontal axis of a figure.

    Parameters
    ----------
    name : str
        Of the files.
    heading, over : str
        First line of the figure, and what the axis says.
    parameter : str
        Column of the study's table.
    names : tuple of str
        Values of the parameter in their order; empty where it is a number, or such as ``64x64x64``.
    regardless : tuple of str
        Columns in which numbers of one curve may differ.
    """

    name: str
    heading: str
    over: str
    parameter: str
    names: tuple[str, ...] = ()
    regardless: tuple[str, ...] = ()

    def place(self, value: PublishedValue) -> float | None:
        """Return where a number stands; None where it has no such parameter."""
        text = value.parameters.get(self.parameter, "")
        if self.names:
            return float(self.names.index(text)) if text in self.names else None
        first = text.partition("x")[0]
        return float(first) if first.isdecimal() else None


@runtime_checkable
class DrawsCurves(Protocol):
    """A matcher of a study that varied a parameter, with figures over it."""

    def curves(self, matches: Sequence[Match], values: Sequence[PublishedValue]) -> list[Curves]:
        """Return what the figures show; none where nothing was measured at two values."""
        ...


def curves_over(
    axis: PublishedAxis,
    matches: Iterable[Match],
    values: Sequence[PublishedValue],
    row: Callable[[Match], str],
    quantities: Mapping[str, str],
) -> list[Curves]:
    """Return a figure of what was measured with two or more values of a parameter, or none.

    Parameters
    ----------
    axis : Axis
        The parameter.
    matches : iterable of Match
        Numbers of the run.
    values : sequence of PublishedValue
        All numbers of the study, so that its curves are whole.
    row : callable
        What was worked on, but for this parameter.
    quantities : mapping of str to str
        Operations of the matches that are drawn, and what their axes say.
    """
    published = _published(axis, values)
    there: dict[tuple[str, str, str, str], tuple[PublishedPoint, ...]] = {}
    here: dict[tuple[str, str, str, str], list[PublishedPoint]] = {}
    for match in matches:
        x = axis.place(match.published)
        if x is None or match.operation not in quantities or match.here <= 0:
            continue
        key = row(match), match.operation, match.alternative, match.case.sample.backend
        here.setdefault(key, []).append(PublishedPoint(x, match.here, *match.interval))
        if not match.beyond:
            there[key] = published[_but(axis, match.published)]
    found: dict[str, dict[str, list[PublishedCurve]]] = {}
    for (where, operation, alternative, backend), points in here.items():
        if len({p.x for p in points}) < 2:
            continue
        curve = PublishedCurve(
            alternative,
            backend,
            there.get((where, operation, alternative, backend), ()),
            tuple(sorted(points, key=lambda p: p.x)),
        )
        found.setdefault(where, {}).setdefault(operation, []).append(curve)
    rows = sorted(found, key=lambda where: -_places(found[where].values()))
    panels = [
        PublishedPanel(where, text, tuple(found[where].get(operation, ())))
        for where in rows[:MOST_ROWS]
        for operation, text in quantities.items()
    ]
    if not panels:
        return []
    left_out = len(rows[MOST_ROWS:])
    return [Curves(axis.name, axis.heading, axis.over, axis.names, tuple(panels), left_out)]


def _published(
    axis: PublishedAxis, values: Iterable[PublishedValue]
) -> dict[tuple[object, ...], tuple[PublishedPoint, ...]]:
    """Return the curves of the study; of numbers that it has twice the first ones."""
    found: dict[tuple[object, ...], dict[float, PublishedPoint]] = {}
    for value in values:
        x = axis.place(value)
        if x is not None and not math.isnan(value.value):
            low, high = value.value - value.sd, value.value + value.sd
            found.setdefault(_but(axis, value), {}).setdefault(
                x, PublishedPoint(x, value.value, low, high)
            )
    return {key: tuple(own[x] for x in sorted(own)) for key, own in found.items()}


def _but(axis: PublishedAxis, value: PublishedValue) -> tuple[object, ...]:
    """Return what numbers of one curve have in common."""
    without = (axis.parameter, *axis.regardless)
    others = tuple((k, text) for k, text in value.parameters.items() if k not in without)
    return value.quantity, value.unit, value.statistic, others


def _places(quantities: Iterable[Sequence[PublishedCurve]]) -> int:
    """Return at how many places any alternative was measured at most."""
    return max(len({p.x for p in c.here}) for curves in quantities for c in curves)
