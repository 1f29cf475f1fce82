"""The section on compression against speed: its text and the data of its figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pffbench.summary.summary import Summary
from pffbench_analysis.page.numbers import short
from pffbench_analysis.pareto.advice import (
    CHOICE_HEADINGS,
    HOW_TO_READ,
    choice_rows,
    front_line,
    limits,
    ranks_of,
)
from pffbench_analysis.pareto.choices import barred
from pffbench_analysis.pareto.front import FrontPosition, FrontStanding, standings
from pffbench_analysis.pareto.points import (
    DIRECTIONS,
    CompressionPoint,
    DataKind,
    Direction,
    Speed,
    family,
    kinds_of,
    mark_of,
)
from pffbench_analysis.style import colour, plain

Plain = dict[str, Any]
#: Number of marks in `compression.js`.
_MARKS = 10
#: Names of the standings in scripts.
_CODES = {
    FrontStanding.ON: "on",
    FrontStanding.BY_MEDIAN: "median",
    FrontStanding.CLOSE: "close",
    FrontStanding.OFF: "off",
}


@dataclass(frozen=True)
class Advised:
    """Recommendation for a kind of data.

    Parameters
    ----------
    title : str
        Kind of data and number of ranks.
    rows : list of list of str
        One row per purpose; empty where nothing is recommended.
    front : str
        Members of the fronts.
    limits : list of str
        Reasons for doubt, and ways that were not tested.
    """

    title: str
    rows: list[list[str]]
    front: str
    limits: list[str]


@dataclass(frozen=True)
class Section:
    """The section of the page.

    Parameters
    ----------
    kinds : list of Advised
        One per kind of data.
    headings : tuple of str
        Headings of the rows.
    barred : str
        Reason why nothing is recommended; empty otherwise.
    backends : list of (str, str)
        Names and colours.
    how_to_read : tuple of str
        Meaning of words and marks.
    """

    kinds: list[Advised]
    headings: tuple[str, ...]
    barred: str
    backends: list[tuple[str, str]]
    how_to_read: tuple[str, ...]


def compression_of(summary: Summary, directory: Path) -> tuple[Section | None, Plain | None]:
    """Return the section and the data of its figure; None where no codecs were compared."""
    kinds = kinds_of(summary)
    if not kinds:
        return None, None
    why = barred(summary.record)
    backends = dict.fromkeys(point.backend for kind in kinds for point in kind.points)
    section = Section(
        [
            Advised(
                f"{kind.name}, {ranks_of(kind)}",
                [] if why else [[plain(cell) for cell in row] for row in choice_rows(kind)],
                plain(front_line(kind)),
                [plain(text) for text in limits(kind, summary, directory)],
            )
            for kind in kinds
        ],
        CHOICE_HEADINGS,
        plain(why),
        [(plain(name), colour(name)) for name in backends],
        HOW_TO_READ,
    )
    return section, {"kinds": [_kind(kind) for kind in kinds]}


def _kind(kind: DataKind) -> Plain:
    placed = {d: standings(kind.points, (d,), kind.work.design) for d in DIRECTIONS}
    both = standings(kind.points, DIRECTIONS, kind.work.design)
    codecs = dict.fromkeys(family(point.codec) for point in kind.points)
    return {
        "name": f"{kind.name}, {ranks_of(kind)}",
        "ranks": kind.ranks,
        "backends": list(dict.fromkeys(plain(point.backend) for point in kind.points)),
        "codecs": [[plain(name), mark_of(name, _MARKS)] for name in codecs],
        "points": [
            {
                "case": plain(point.candidate.case.sample.case),
                "label": point.name,
                "backend": plain(point.backend),
                "colour": colour(point.backend),
                "codec": plain(point.codec),
                "family": plain(family(point.codec)),
                "ratio": point.shown_ratio,
                "stored": round(point.stored),
                **{d: _direction(point, d, placed[d][i], kind.points) for d in DIRECTIONS},
                "both": _standing(both[i], kind.points),
            }
            for i, point in enumerate(kind.points)
        ],
    }


def _direction(
    point: CompressionPoint,
    direction: Direction,
    placed: FrontPosition,
    points: Sequence[CompressionPoint],
) -> Plain | None:
    speed = point.speed(direction)
    if speed is None:
        return None
    return {
        "bytes": _rate(speed, stored=False),
        "stored": _rate(speed, stored=True),
        "seconds": short(speed.seconds.median),
        "n": speed.seconds.n,
        "unsure": speed.below_resolution,
        **_standing(placed, points),
    }


def _rate(speed: Speed, *, stored: bool) -> list[float | None] | None:
    rate = speed.rate(stored=stored)
    return None if rate is None else [short(value) for value in rate]


def _standing(placed: FrontPosition, points: Sequence[CompressionPoint]) -> Plain:
    return {
        "standing": _CODES.get(placed.standing),
        "words": placed.standing.value,
        "by": None if placed.by is None else points[placed.by].name,
    }
