"""The section on compression against speed: its text and the data of its figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
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
from pffbench_analysis.pareto.figure import ParetoMark, pareto_spec
from pffbench_analysis.pareto.front import FrontPosition, FrontStanding, standings
from pffbench_analysis.pareto.points import (
    DIRECTIONS,
    CompressionPoint,
    DataKind,
    Direction,
    Speed,
    kinds_of,
)
from pffbench_analysis.style import colour, plain
from pffbench_analysis.style import short as digits

Plain = dict[str, Any]
_MIB = 2**20
#: What rates are of.
_AMOUNTS = {"bytes": "bytes of the arrays", "stored": "bytes in the files"}
#: What the words of a standing say of the way that it is due to.
_RELATIONS = {
    FrontStanding.BY_MEDIAN: "not told from",
    FrontStanding.CLOSE: "median below",
    FrontStanding.OFF: "beaten by",
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


def compression_of(summary: Summary) -> tuple[Section | None, Plain | None]:
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
                [plain(text) for text in limits(kind, summary)],
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
    placed = {d: standings(kind, (d,)) for d in DIRECTIONS}
    both = standings(kind, DIRECTIONS)
    choices = {d: (d,) for d in DIRECTIONS} | {"both": DIRECTIONS}
    views = {}
    for choice, directions in choices.items():
        for amount in _AMOUNTS:
            for share in ("all", "rank") if kind.ranks > 1 else ("all",):
                found = [
                    _marks(kind, d, both if choice == "both" else placed[d], amount, share)
                    for d in directions
                ]
                view = _view(kind, choice, amount, share, [marks for marks in found if marks])
                views[f"{choice} {amount} {share}"] = view
    return {"name": f"{kind.name}, {ranks_of(kind)}", "ranks": kind.ranks, "views": views}


#: A way, what is known of it in the view, and its numbers.
Mark = tuple[ParetoMark, Plain]


def _view(
    kind: DataKind, choice: str, amount: str, share: str, panels: Sequence[Sequence[Mark]]
) -> Plain:
    """Return a figure: a panel for each direction."""
    has_line = choice != "both" and amount == "bytes"
    marks = [mark for found in panels for mark, _ in found]
    verb = {"write": "writing", "read": "reading", "both": "writing and reading"}[choice]
    notes = [
        has_line and "Line: the front of the medians; above and right of it there is nothing.",
        "Filled: on the front by the medians. Hollow: not told apart from it. Pale: shown to be "
        "off it.",
        choice == "both"
        and "The front is that of ratio, writing and reading together, which has no line.",
        amount == "stored"
        and "Who is on the front is judged by bytes of the arrays; in bytes of the files what "
        "compresses well writes little.",
        any(not math.isnan(mark.low) for mark in marks)
        and "Lines: 95 % interval of the median, where there are five repetitions or more.",
        "Backends stand a little beside each other at the same ratio.",
        any(mark.unsure for mark in marks)
        and "†: under 100 times what the harness itself takes; not to be relied on.",
    ]
    title = f"{_unit(share)}, logarithmic"
    return {
        "what": f"{kind.name}: compression ratio and rate of {verb}, more of both is better.",
        "notes": [note for note in notes if note],
        "panels": [
            {
                "heading": numbers[0]["direction"],
                "spec": pareto_spec(kind, found, title, has_line=has_line),
            }
            for found, numbers in (zip(*panel, strict=True) for panel in panels)
        ],
        "values": [mark.told for mark in marks],
        "numbers": [numbers for panel in panels for _, numbers in panel],
    }


def _unit(share: str) -> str:
    return "MiB/s of each rank" if share == "rank" else "MiB/s"


def _marks(
    kind: DataKind,
    direction: Direction,
    placed: Sequence[FrontPosition],
    amount: str,
    share: str,
) -> list[Mark]:
    return [
        mark
        for point, own in zip(kind.points, placed, strict=True)
        if (speed := point.speed(direction)) is not None
        if (mark := _mark(kind, point, own, speed, (direction, amount, share))) is not None
    ]


def _mark(
    kind: DataKind,
    point: CompressionPoint,
    own: FrontPosition,
    speed: Speed,
    view: tuple[str, str, str],
) -> Mark | None:
    direction, amount, share = view
    rate = speed.rate(stored=amount == "stored")
    if rate is None:
        return None
    scale = _MIB * (kind.ranks if share == "rank" else 1)
    value, low, high = (v / scale for v in rate)
    by = None if own.by is None else kind.points[own.by].name
    sure = not math.isnan(low)
    told = {
        "way": point.name,
        "direction": direction,
        "ratio": digits(point.shown_ratio),
        "in the files": f"{digits(point.stored / _MIB)} MiB",
        "rate": f"{digits(value)}{'†' * speed.below_resolution} {_unit(share)}",
        "95 % interval": f"{digits(low)} to {digits(high)} {_unit(share)}"
        if sure
        else "none of fewer than five repetitions",
        "repetitions": f"{speed.seconds.n}",
        "standing": own.standing.value,
    }
    if by is not None and own.standing in _RELATIONS:
        told[_RELATIONS[own.standing]] = by
    numbers = {
        "data": kind.name,
        "case": plain(point.candidate.case.sample.case),
        "label": point.name,
        "backend": plain(point.backend),
        "codec": plain(point.codec),
        "ratio": point.shown_ratio,
        "stored_bytes": round(point.stored),
        "direction": direction,
        "median_s": short(speed.seconds.median),
        "repetitions": speed.seconds.n,
        "unit": _unit(share),
        "of": _AMOUNTS[amount],
        "rate": short(value),
        "low": short(low),
        "high": short(high),
        "standing": own.standing.value,
        "due_to": by or "",
    }
    return ParetoMark(point, own.standing, value, low, high, speed.below_resolution, told), numbers
