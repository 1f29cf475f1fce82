"""The section on compression against speed: its text and the data of its figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pffbench.summary.summary import Summary
from pffbench_analysis.recommend.frontier import (
    DIRECTIONS,
    DataKind,
    Direction,
    kinds_of,
)
from pffbench_analysis.recommend.frontier_figure import marks_of, pareto_spec
from pffbench_analysis.recommend.frontier_files import rows_of
from pffbench_analysis.recommend.frontier_text import (
    CHOICE_HEADINGS,
    HOW_TO_READ,
    barred,
    choice_rows,
    front_line,
    limits,
)
from pffbench_analysis.style import colour

Plain = dict[str, Any]


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
    barred : str
        Reason why nothing is recommended; empty otherwise.
    backends : list of (str, str)
        Names and colours.
    headings : tuple of str
        Headings of the rows.
    how_to_read : tuple of str
        Meaning of words and marks.
    """

    kinds: list[Advised]
    barred: str
    backends: list[tuple[str, str]]
    headings: tuple[str, ...] = CHOICE_HEADINGS
    how_to_read: tuple[str, ...] = HOW_TO_READ


def compression_of(summary: Summary) -> tuple[Section | None, Plain | None]:
    """Return the section and the data of its figure; None where no codecs were compared."""
    kinds = kinds_of(summary)
    if not kinds:
        return None, None
    why = barred(summary)
    backends = dict.fromkeys(point.backend for kind in kinds for point in kind.points)
    advised = [
        Advised(
            kind.title,
            [] if why else choice_rows(kind),
            front_line(kind),
            limits(kind, summary),
        )
        for kind in kinds
    ]
    section = Section(advised, why, [(name, colour(name)) for name in backends])
    return section, {"kinds": [_kind(kind) for kind in kinds]}


def _kind(kind: DataKind) -> Plain:
    fronts: list[Sequence[Direction]] = [("write",), ("read",), DIRECTIONS]
    rows = {(row["case"], row["direction"]): row for row in rows_of(kind)}
    views = {
        f"{'both' if len(front) > 1 else front[0]} {amount}": _figure(kind, front, amount, rows)
        for front in fronts
        for amount in ("bytes", "stored")
    }
    return {"name": kind.title, "views": views}


def _figure(
    kind: DataKind, front: Sequence[Direction], amount: str, rows: Mapping[Any, Plain]
) -> Plain:
    """Return a figure: a panel for each direction of a front."""
    has_line = len(front) == 1 and amount == "bytes"
    panels = marks_of(kind, front, stored=amount == "stored")
    marks = [mark for found in panels.values() for mark in found]
    verb = " and ".join({"write": "writing", "read": "reading"}[d] for d in front)
    notes = [
        has_line and "Line: the front of the medians; above and right of it there is nothing.",
        "Filled: on the front by the medians. Hollow: not distinguishable from it. Pale: shown "
        "to be off it.",
        len(front) > 1
        and "The front is that of ratio, writing and reading together, which has no line.",
        amount == "stored"
        and "Who is on the front is judged by bytes of the arrays; in bytes of the files what "
        "compresses well writes little.",
        any(mark.rate.has_interval for mark in marks)
        and "Lines: 95 % interval of the median, where there are five repetitions or more.",
        "Backends stand a little beside each other at the same ratio.",
        any(mark.speed.unsure for mark in marks)
        and "†: under 100 times what the harness itself takes; not to be relied on.",
    ]
    return {
        "what": f"{kind.name}: compression ratio and rate of {verb}, more of both is better.",
        "notes": [note for note in notes if note],
        "panels": [
            {"heading": direction, "spec": pareto_spec(kind, found, has_line=has_line)}
            for direction, found in panels.items()
        ],
        "values": [mark.told(kind) for mark in marks],
        "numbers": [rows[mark.way.case.sample.case, mark.direction] for mark in marks],
    }
