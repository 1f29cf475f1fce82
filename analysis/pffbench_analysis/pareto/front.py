"""The Pareto front of ratio and speed, and the confidence in its members."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from pffbench_analysis.pareto.points import DataKind, Direction, Speed
from pffbench_analysis.recommend.judge import Pairs

Matrix = np.ndarray[Any, np.dtype[np.bool_]]
Values = np.ndarray[Any, np.dtype[np.float64]]


class FrontStanding(StrEnum):
    """Standing of a point relative to the front."""

    ON = "on the front"
    BY_MEDIAN = "on the front by its median"
    CLOSE = "not told apart from the front"
    OFF = "off the front"
    NONE = "not measured"

    @property
    def on_front(self) -> bool:
        """Whether the medians put it on the front."""
        return self in (FrontStanding.ON, FrontStanding.BY_MEDIAN)


@dataclass(frozen=True)
class FrontPosition:
    """A point's standing, and the point that causes it.

    Parameters
    ----------
    standing : FrontStanding
        The standing.
    by : int or None
        Index of the point that beats it, or from which it is not distinguished.
    """

    standing: FrontStanding
    by: int | None = None


def non_dominated(values: Values) -> Matrix:
    """Return which rows no other row dominates.

    A row dominates another one if it is nowhere smaller and somewhere larger. Equal rows
    do not dominate each other; a row with NaN is never on the front.

    Parameters
    ----------
    values : array of float64, shape (n, objectives)
        Objectives, to be maximised.

    Returns
    -------
    array of bool, shape (n,)
    """
    there = ~np.isnan(values).any(axis=1)
    one, other = values[:, np.newaxis], values[np.newaxis]
    dominates = (one >= other).all(axis=2) & (one > other).any(axis=2)
    dominated: Matrix = np.asarray(dominates.any(axis=0))
    return there & ~dominated


def shown_faster(decisions: Pairs, count: int) -> Matrix:
    """Return a matrix that is True at [i, j] where way i is shown to be faster than way j."""
    faster = np.zeros((count, count), dtype=np.bool_)
    for (a, b), decision in decisions.items():
        if decision.different:
            faster[(b, a) if decision.longer else (a, b)] = True
    return faster


def standings(kind: DataKind, directions: Sequence[Direction]) -> list[FrontPosition]:
    """Return the standing of each point relative to the front of ratio and rates.

    The front is that of the medians: points that no other one matches or exceeds in ratio, as it
    is shown with three digits, and in each rate. A point off it is *off the front* when one with
    no smaller ratio is shown to be faster in every direction; else it is *not told apart*. A point
    on it is there for sure when each one with no smaller ratio is shown to be slower in some
    direction; else it is there *by its median*.
    """
    points = kind.points
    speeds = [[point.speed(direction) for direction in directions] for point in points]
    ratios = np.array([point.shown_ratio for point in points])
    rates = np.array([[_rate(speed) for speed in row] for row in speeds]).reshape(len(points), -1)
    on_front = non_dominated(np.column_stack([ratios, rates]))
    there = ~np.isnan(rates).any(axis=1)
    shown = np.stack([shown_faster(kind.answers[d].decisions, len(points)) for d in directions])
    # Rows are the other points, columns the judged point.
    as_small = (ratios[:, np.newaxis] >= ratios) & ~np.eye(len(points), dtype=bool)
    beats = as_small & shown.all(axis=0)
    leaves_open = as_small & there[:, np.newaxis] & ~shown.any(axis=0).T
    dominates = as_small & (rates[:, np.newaxis] >= rates).all(axis=2)
    found = []
    for place in range(len(points)):
        if not there[place]:
            found.append(FrontPosition(FrontStanding.NONE))
        elif on_front[place]:
            by = _first(leaves_open[:, place], on_front)
            found.append(
                FrontPosition(FrontStanding.ON if by is None else FrontStanding.BY_MEDIAN, by)
            )
        else:
            by = _first(beats[:, place], on_front)
            beaten = by is not None
            by = by if beaten else _first(dominates[:, place], on_front)
            found.append(FrontPosition(FrontStanding.OFF if beaten else FrontStanding.CLOSE, by))
    return found


def _rate(speed: Speed | None) -> float:
    return np.nan if speed is None else speed.nbytes / speed.seconds.median


def _first(those: Matrix, on_front: Matrix) -> int | None:
    """Return the index of the first of some points, preferably one of the front."""
    for found in (those & on_front, those):
        if found.any():
            return int(np.argmax(found))
    return None
