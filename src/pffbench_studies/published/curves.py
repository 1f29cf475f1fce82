"""Data of figures: published and measured numbers over one parameter, the others equal."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pffbench.grouping import grouped
from pffbench_studies.published.counterparts import Match
from pffbench_studies.published.values import PublishedValue, indexed

#: Largest number of rows of a figure; those with most points are drawn.
MOST_ROWS = 6


class PublishedPoint(NamedTuple):
    """A number at its position on the axis."""

    #: Position and number; the position of a name is its index in the axis.
    x: float
    y: float
    #: Interval of a measured number, standard deviation around a published one; NaN where there is
    #: none.
    low: float = math.nan
    high: float = math.nan


class PublishedCurve(NamedTuple):
    """The curves of an alternative."""

    #: Its name, and the backend that it was measured with.
    alternative: str
    backend: str
    #: Published and measured numbers, by position.
    published: tuple[PublishedPoint, ...]
    here: tuple[PublishedPoint, ...]


class PublishedPanel(NamedTuple):
    """Data of one panel."""

    #: Subject: the data of the operation.
    row: str
    #: Quantity of the y axis, with its unit.
    quantity: str
    #: The alternatives.
    curves: tuple[PublishedCurve, ...]


@dataclass(frozen=True)
class PublishedAxis:
    """The x axis of a figure."""

    #: Name of the files.
    name: str
    #: First line of the figure, and label of the axis.
    heading: str
    over: str
    #: Column of the study's table.
    parameter: str
    #: Values of the parameter in their order; empty where it is a number, or such as ``64x64x64``.
    names: tuple[str, ...] = ()
    #: Columns in which numbers of one curve may differ.
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
    """Data of a figure."""

    #: The x axis of all panels.
    axis: PublishedAxis
    #: Row by row; all rows have the same quantities.
    panels: tuple[PublishedPanel, ...]
    #: Number of rows left out.
    left_out: int = 0
    #: Further reading note.
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
    drawn = [m for m in matches if m.operation in quantities and m.here > 0]
    curves = grouped(
        ((row(m), m.operation, m.alternative, m.case.backend), (x, m))
        for m in drawn
        if (x := axis.place(m.published)) is not None
    )
    published = _published(axis, values)
    found: dict[str, dict[str, list[PublishedCurve]]] = {}
    for (where, operation, alternative, backend), own in curves.items():
        first = own[0][1]
        there = () if first.beyond else published[axis.others(first.published)]
        here = sorted(PublishedPoint(x, *m.estimate) for x, m in own)
        if here[0].x < here[-1].x:
            curve = PublishedCurve(alternative, backend, there, tuple(here))
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
    numbers = (value for value in values if not math.isnan(value.value))
    first = indexed(numbers, lambda value: (axis.place(value), axis.others(value)))
    points = grouped(
        (others, PublishedPoint(x, v.value, v.value - v.sd, v.value + v.sd))
        for (x, others), v in first.items()
        if x is not None
    )
    return {others: tuple(sorted(own)) for others, own in points.items()}


def _places(quantities: Collection[Sequence[PublishedCurve]]) -> int:
    """Return the largest number of positions at which an alternative was measured."""
    return max(len({p.x for p in c.here}) for curves in quantities for c in curves)
