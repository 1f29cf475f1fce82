"""Compression ratio against speed: the ways on the Pareto front, and those to take.

A purpose of the recommendations: the candidates and the judge are those of all others. In a
notebook::

    from pffbench.summary.summary import summarise
    from pffbench_analysis.recommend.frontier import kinds_of, standings

    kinds = kinds_of(summarise("results/first"))
    standings(kinds[0], ("write",))
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import PurePath
from typing import Any, Literal

import numpy as np

from pffbench.summary.summary import PhaseSummary, Summary
from pffbench.text import counted
from pffbench.units import Estimate
from pffbench_analysis.charts import differences
from pffbench_analysis.recommend.candidates import READING, WRITING, Candidate, Purpose, Work, works
from pffbench_analysis.recommend.judge import (
    Pairs,
    RankedWay,
    Recommendation,
    WayStanding,
    judge,
)
from pffbench_analysis.style import plain

Direction = Literal["write", "read"]
DIRECTIONS: tuple[Direction, ...] = ("write", "read")
#: The choices of a kind of data.
SMALLEST, WRITTEN, READ, BALANCED = (
    "smallest files", "fastest writing", "fastest reading", "balance",
)  # fmt: skip
_BALANCE = Purpose(BALANCED, {"write_total": 1.0, "read_total": 1.0}, times_bytes=True)
Matrix = np.ndarray[Any, np.dtype[np.bool_]]
Values = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Speed:
    """Speed of a way in one direction.

    Parameters
    ----------
    nbytes : int
        Bytes of array data that all ranks move together.
    stored : float or None
        Bytes in the files; None where only a part is read, whose chunks were not counted.
    phase : PhaseSummary
        Job time from creating until durable, or from opening to closing: libraries divide the same
        work differently between phases, so totals are compared.
    """

    nbytes: int
    stored: float | None
    phase: PhaseSummary

    @classmethod
    def of(cls, way: Candidate, direction: Direction) -> Speed | None:
        """Return the speed of a way; None if not measured."""
        case = way.case
        phase = case.phases.get(f"{direction}_total")
        nbytes = case.nbytes if direction == "write" else case.read_bytes
        if phase is None or not nbytes or min(phase.by_block.values()) <= 0:
            return None
        return cls(nbytes, way.stored_bytes if nbytes == case.nbytes else None, phase)

    def rate(self, *, stored: bool = False) -> Estimate | None:
        """Return bytes per second of all ranks together, of the arrays or as stored in the files.

        None where stored bytes are not known.
        """
        amount = self.stored if stored else self.nbytes
        return None if amount is None else self.phase.seconds.rate(amount)

    @property
    def unsure(self) -> bool:
        """Whether the overhead of the harness affects the time."""
        return self.phase.warned("below_resolution")


@dataclass(frozen=True, eq=False)
class DataKind:
    """The same data, compressed in several ways by one run.

    Parameters
    ----------
    name : str
        The source or the user's file, and further distinguishing parameters.
    work : Work
        The work common to all points.
    ranks : int
        Number of ranks.
    points : tuple of Candidate
        The ways whose stored bytes were counted, by descending ratio.
    """

    name: str
    work: Work
    ranks: int
    points: tuple[Candidate, ...]

    @property
    def title(self) -> str:
        """The name and the number of ranks."""
        return f"{self.name}, {counted(self.ranks, 'rank')}"

    def way(self, point: Candidate) -> str:
        """Return the distinguishing name of a way within its kind of data."""
        return plain(self.work.short(point))

    @property
    def without(self) -> list[str]:
        """The ways whose stored bytes were not counted."""
        return [self.way(way) for way in self.work.candidates if math.isnan(way.ratio)]

    @cached_property
    def answers(self) -> dict[Direction | Literal["balance"], Recommendation]:
        """The answers for writing, reading and the balance, whose pairs are one family."""
        questions = [(self.points, purpose) for purpose in (WRITING, READING, _BALANCE)]
        written, read, balance = judge(questions, self.work.design)
        return {"write": written, "read": read, "balance": balance}


def kinds_of(summary: Summary) -> list[DataKind]:
    """Return the kinds of data of a run that were compressed by more than one codec.

    No compression at all counts as a codec. Cases of one kind do the same work:
    equal data, cut alike, as durable, read from the same state of the cache.
    """
    found = []
    all_works = works(summary)
    told = differences({str(number): work.parameters for number, work in enumerate(all_works)})
    for number, work in enumerate(all_works):
        counted_ways = [way for way in work.candidates if not math.isnan(way.ratio)]
        if len({way.codec for way in counted_ways}) > 1:
            points = tuple(sorted(counted_ways, key=lambda way: (-way.ratio, work.short(way))))
            name = _name(work.parameters, told[str(number)])
            found.append(DataKind(name, work, summary.record.ranks, points))
    return found


#: The source of the data comes first; other parameters are named where runs have several.
_DATA = ("source", "file", "variable")


def _name(parameters: Mapping[str, Any], differs: Mapping[str, str]) -> str:
    source = str(parameters.get("source"))
    if source == "file":
        variable = parameters.get("variable")
        source = PurePath(str(parameters.get("file"))).name + (f" {variable}" if variable else "")
    more = (f"{k} {v}" for k, v in differs.items() if k not in _DATA)
    return plain(", ".join([source, *more]))


def choices(kind: DataKind) -> dict[str, Recommendation]:
    """Choose for the smallest files, the fastest writing, the fastest reading, and the balance."""
    written, read, balance = kind.answers.values()
    return {SMALLEST: _smallest(kind), WRITTEN: written, READ: read, BALANCED: balance}


def _smallest(kind: DataKind) -> Recommendation:
    """Rank the ways with the largest ratio, which is exact: the others are larger."""
    best = max(point.ratio for point in kind.points)
    first, *equal = (
        RankedWay(number, point, math.nan, None, WayStanding.EQUAL)
        for number, point in enumerate(kind.points)
        if point.ratio == best
    )
    return Recommendation(Purpose(SMALLEST, {}), (first, *equal), {})


def chosen(answer: Recommendation) -> Candidate | None:
    """Return the way that is shown to be best; None if none is, or nothing else was measured."""
    taken = answer.taken
    return None if taken is None or taken.standing is WayStanding.ONLY else taken.candidate


class FrontStanding(StrEnum):
    """Standing of a point relative to the front."""

    ON = "on the front"
    BY_MEDIAN = "on the front by its median"
    CLOSE = "not distinguishable from the front"
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
    for (one, other), decision in decisions.items():
        faster[int(one), int(other)] = decision.shorter
    return faster


def standings(kind: DataKind, directions: Sequence[Direction]) -> list[FrontPosition]:
    """Return the standing of each point relative to the front of ratio and rates.

    The front is that of the medians: points that no other one matches or exceeds in ratio, as it
    is shown with three digits, and in each rate. A point off it is *off the front* when one with
    no smaller ratio is shown to be faster in every direction; else it is *not distinguishable*. A
    point on it is there for sure when each one with no smaller ratio is shown to be slower in some
    direction; else it is there *by its median*.
    """
    points = kind.points
    ratios = np.array([point.ratio for point in points])
    rates = np.array([[_rate(point, d) for d in directions] for point in points])
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
        beaten = _first(beats[:, place], on_front)
        if not there[place]:
            found.append(FrontPosition(FrontStanding.NONE))
        elif on_front[place]:
            by = _first(leaves_open[:, place], on_front)
            found.append(
                FrontPosition(FrontStanding.ON if by is None else FrontStanding.BY_MEDIAN, by)
            )
        elif beaten is not None:
            found.append(FrontPosition(FrontStanding.OFF, beaten))
        else:
            by = _first(dominates[:, place], on_front)
            found.append(FrontPosition(FrontStanding.CLOSE, by))
    return found


def _rate(point: Candidate, direction: Direction) -> float:
    speed = Speed.of(point, direction)
    return math.nan if speed is None else speed.nbytes / speed.phase.seconds.median


def _first(those: Matrix, on_front: Matrix) -> int | None:
    """Return the index of the first of some points, preferably one of the front."""
    for found in (those & on_front, those):
        if found.any():
            return int(np.argmax(found))
    return None
