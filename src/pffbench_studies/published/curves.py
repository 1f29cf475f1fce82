"""Data of figures: published and measured numbers over one parameter, the others equal."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pffbench_studies.published.counterparts import Match
from pffbench_studies.published.values import PublishedValue

#: Largest number of rows of a figure; those with most points are drawn.
MOST_ROWS = 6


class PublishedPoint(NamedTuple):
    """A number at its position on the axis.

    Parameters
    ----------
    x, y : float
        Position and number; the position of a name is its index in the axis.
    low, high : float
        Interval of a measured number, standard deviation around a published one; NaN where there
        is none.
    """

    x: float
    y: float
    low: float = math.nan
    high: float = math.nan


class PublishedCurve(NamedTuple):
    """The curves of an alternative.

    Parameters
    ----------
    alternative, backend : str
        Its name, and the backend that it was measured with.
    published, here : tuple of PublishedPoint
        Published and measured numbers, by position.
    """

    alternative: str
    backend: str
    published: tuple[PublishedPoint, ...]
    here: tuple[PublishedPoint, ...]


class PublishedPanel(NamedTuple):
    """Data of one panel.

    Parameters
    ----------
    row : str
        Subject: the data of the operation.
    quantity : str
        Quantity of the y axis, with its unit.
    curves : tuple of PublishedCurve
        The alternatives.
    """

    row: str
    quantity: str
    curves: tuple[PublishedCurve, ...]


@dataclass(frozen=True)
class PublishedAxis:
    """The x axis of a figure.

    Parameters
    ----------
    name : str
        Name of the files.
    heading, over : str
        First line of the figure, and label of the axis.
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
        """Return the position of a number; None if it has no such parameter."""
        text = value.parameters.get(self.parameter, "")
        if self.names:
            return float(self.names.index(text)) if text in self.names else None
        first = text.partition("x")[0]
        return float(first) if first.isdecimal() else None

    def others(self, value: PublishedValue) -> tuple[object, ...]:
        """Return what the numbers of one curve have in common."""
        without = (self.parameter, *self.regardless)
        parameters = tuple((k, text) for k, text in value.parameters.items() if k not in without)
        return value.quantity, value.unit, value.statistic, parameters


class Curves(NamedTuple):
    """Data of a figure.

    Parameters
    ----------
    axis : PublishedAxis
        The x axis of all panels.
    panels : tuple of PublishedPanel
        Row by row; all rows have the same quantities.
    left_out : int
        Number of rows left out.
    note : str
        Further reading note.
    """

    axis: PublishedAxis
    panels: tuple[PublishedPanel, ...]
    left_out: int = 0
    note: str = ""


def curves_over(
    axis: PublishedAxis,
    matches: Iterable[Match],
    values: Sequence[PublishedValue],
    row: Callable[[Match], str],
    quantities: Mapping[str, str],
) -> list[Curves]:
    """Return figures of measurements at two or more values of a parameter, or none.

    Parameters
    ----------
    axis : PublishedAxis
        The parameter.
    matches : iterable of Match
        Numbers of the run.
    values : sequence of PublishedValue
        All numbers of the study, so that its curves are whole.
    row : callable
        Subject of a number, without this parameter.
    quantities : mapping of str to str
        Operations of the drawn matches, and labels of their axes.
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
            there[key] = published[axis.others(match.published)]
    found: dict[str, dict[str, list[PublishedCurve]]] = {}
    for key, points in here.items():
        where, operation, alternative, backend = key
        if len({p.x for p in points}) > 1:
            measured = tuple(sorted(points, key=lambda p: p.x))
            curve = PublishedCurve(alternative, backend, there.get(key, ()), measured)
            found.setdefault(where, {}).setdefault(operation, []).append(curve)
    rows = sorted(found, key=lambda where: -_places(found[where].values()))
    panels = tuple(
        PublishedPanel(where, text, tuple(found[where].get(operation, ())))
        for where in rows[:MOST_ROWS]
        for operation, text in quantities.items()
    )
    return [Curves(axis, panels, len(rows[MOST_ROWS:]))] if panels else []


def _published(
    axis: PublishedAxis, values: Iterable[PublishedValue]
) -> dict[tuple[object, ...], tuple[PublishedPoint, ...]]:
    """Return the curves of the study; the first of duplicate numbers is used."""
    found: dict[tuple[object, ...], dict[float, PublishedPoint]] = {}
    for value in values:
        x = axis.place(value)
        if x is not None and not math.isnan(value.value):
            low, high = value.value - value.sd, value.value + value.sd
            own = found.setdefault(axis.others(value), {})
            own.setdefault(x, PublishedPoint(x, value.value, low, high))
    return {key: tuple(sorted(own.values())) for key, own in found.items()}


def _places(quantities: Collection[Sequence[PublishedCurve]]) -> int:
    """Return the largest number of positions at which an alternative was measured."""
    return max(len({p.x for p in c.here}) for curves in quantities for c in curves)
