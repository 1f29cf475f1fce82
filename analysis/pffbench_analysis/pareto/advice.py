"""Text on compression against speed: the choices, their confidence and their limits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from pffbench.summary.summary import Summary
from pffbench.text import escape_markdown, markdown_table
from pffbench_analysis.pareto.choices import (
    BALANCED,
    READ,
    RULE,
    SMALLEST,
    WRITTEN,
    Choice,
    barred,
    choices,
)
from pffbench_analysis.pareto.front import FrontPosition, standings
from pffbench_analysis.pareto.points import DIRECTIONS, CompressionPoint, DataKind, Direction, Speed
from pffbench_analysis.recommend.bounds import doubts, untested

_MIB = 2**20
#: Number of ways that are named individually.
_MOST = 3

#: Meaning of marks and words, below tables and figures.
HOW_TO_READ = (
    "ratio: bytes of the arrays over those of their chunks in the files. It is exact, and compared "
    "with the three digits shown. Rates: bytes of the arrays over the median time of the job, from "
    "creating until durable and from opening to closing, with its 95 % interval (of fewer than "
    "five repetitions none)",
    "front: no other way has at least the same ratio and at least the same rate by their medians, "
    "and is better in one of them",
    "off the front: a way with no smaller ratio is shown to be faster, by the test of the headline "
    "in view of all pairs. Not told apart from the front: none is shown to be. On the front by its "
    "median: a way with no smaller ratio is not shown to be slower",
    RULE,
)


def headline(kind: DataKind, summary: Summary) -> str:
    """Return the recommendation in one line, for a pull request."""
    if why := barred(summary.record):
        return f"**{kind.name}**: {why}"
    *others, balance = choices(kind)
    texts = [_text(balance, "take "), *(_text(choice, f"{choice.purpose} ") for choice in others)]
    return f"**{kind.name}**, {ranks_of(kind)}: {'; '.join(texts)}"


def _text(choice: Choice, words: str) -> str:
    """Return a choice for the headline, after some words, or that there is none."""
    if choice.point is None:
        return f"no {choice.purpose} ({sureness(choice)})"
    good = f", as good: {_named(choice.ties)}" if choice.ties else ""
    return f"{words}{choice.point.name} ({_number_for(choice)}{good})"


def ranks_of(kind: DataKind) -> str:
    """Return the number of ranks as text."""
    return f"{kind.ranks} rank{'' if kind.ranks == 1 else 's'}"


CHOICE_HEADINGS = ("for", "take", "ratio", "write MiB/s", "read MiB/s", "how sure")


def choice_rows(kind: DataKind) -> list[list[str]]:
    """Return the recommendation as a table."""
    rows = []
    for choice in choices(kind):
        point = choice.point
        cells = ["–"] * 4 if point is None else [point.name, *_cells(point)]
        rows.append([choice.purpose, *cells, sureness(choice)])
    return rows


def sureness(choice: Choice) -> str:
    """Return the confidence in a choice as text."""
    if choice.point is None:
        open_ = f"not decided between {_named(choice.ties)}; " if choice.ties else ""
        return f"{open_}{choice.why_not}"
    exact = choice.purpose == SMALLEST
    if choice.ties:
        return f"{'exact; as small' if exact else 'equally good'}: {_named(choice.ties)}"
    return "exact" if exact else "shown to be better than every other way"


def front_line(kind: DataKind) -> str:
    """Name the members of the fronts by their medians, the fastest first, the smallest last."""
    parts = []
    for direction in DIRECTIONS:
        what = {"write": "writing", "read": "reading"}[direction]
        front = [p for p, placed in front_of(kind, direction) if placed.standing.on_front]
        front.sort(key=lambda p: (p.shown_ratio, p.name))
        if front:
            parts.append(f"{what}: {', '.join(f'{p.name} ({p.shown_ratio:g})' for p in front)}")
    return (
        f"On the front by the medians, from the fastest to the smallest, of {'; of '.join(parts)}."
    )


def _named(points: Sequence[CompressionPoint]) -> str:
    more = len(points) - _MOST
    told = "; ".join(point.name for point in points[:_MOST])
    return told + (f"; and {more} more" if more > 0 else "")


def _number_for(choice: Choice) -> str:
    assert choice.point is not None
    ratio, written, read = _cells(choice.point)
    told = {
        SMALLEST: f"ratio {ratio}",
        WRITTEN: f"{written} MiB/s",
        READ: f"{read} MiB/s",
        BALANCED: f"ratio {ratio}, write {written}, read {read} MiB/s",
    }
    return told[choice.purpose]


def _cells(point: CompressionPoint) -> list[str]:
    return [f"{point.shown_ratio:g}", *(rate_text(point.speed(d)) for d in DIRECTIONS)]


def rate_text(speed: Speed | None, *, stored: bool = False, per: int = 1) -> str:
    """Return a rate in MiB/s with its interval.

    Parameters
    ----------
    speed : Speed or None
        Measured speed.
    stored : bool
        Count bytes as stored in the files.
    per : int
        Number of ranks to divide by.
    """
    rate = None if speed is None else speed.rate(stored=stored)
    if speed is None or rate is None:
        return "–"
    middle, low, high = (number(value / _MIB / per) for value in rate)
    mark = "†" if speed.below_resolution else ""
    return f"{middle}{mark}" if math.isnan(rate[1]) else f"{middle}{mark} ({low}–{high})"


def number(value: float) -> str:
    """Format with three digits, without an exponent if possible."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def front_of(kind: DataKind, direction: Direction) -> list[tuple[CompressionPoint, FrontPosition]]:
    """Return each point with its standing relative to the front of one direction."""
    placed = standings(kind, (direction,))
    return list(zip(kind.points, placed, strict=True))


def limits(kind: DataKind, summary: Summary) -> list[str]:
    """List the reasons for doubt in a kind of data, and the ways not tested."""
    texts = [f"{text[0].upper()}{text[1:]}." for text in doubts(summary, kind.work)]
    if kind.without:
        texts.append(f"Stored bytes were not counted of: {'; '.join(kind.without)}.")
    texts.append(f"Not tested: {'; '.join(untested(summary, kind.work))}.")
    return texts


def markdown(kinds: Sequence[DataKind], summary: Summary) -> Iterator[str]:
    """Yield the lines of `pareto.md`: the recommendation, then all points."""
    yield f"# {summary.record.name}: compression against speed"
    yield ""
    for kind in kinds:
        rest = headline(kind, summary).removeprefix(f"**{kind.name}**")
        yield f"- **{escape_markdown(kind.name)}**{escape_markdown(rest)}"
    why = barred(summary.record)
    for kind in kinds:
        yield from ("", f"## {escape_markdown(kind.name)}, {ranks_of(kind)}", "")
        if not why:
            yield from markdown_table(CHOICE_HEADINGS, choice_rows(kind))
            yield ""
        yield from (escape_markdown(front_line(kind)), "")
        yield from markdown_table(*all_points(kind))
        yield ""
        yield from (f"- {escape_markdown(text)}" for text in limits(kind, summary))
    yield from ("", "## How to read it", "")
    yield from (f"- {text}" for text in HOW_TO_READ)


def all_points(kind: DataKind) -> tuple[tuple[str, ...], list[list[str]]]:
    """Return headings and rows of a table of all points with their standing."""
    headings = (
        "way", "ratio", "write MiB/s", "front of writing", "read MiB/s", "front of reading",
        "front of both",
    )  # fmt: skip
    own = [standings(kind, (direction,)) for direction in DIRECTIONS]
    both = standings(kind, DIRECTIONS)
    rows = []
    for point, written, read, joint in zip(kind.points, *own, both, strict=True):
        ratio, write_rate, read_rate = _cells(point)
        marks = [placed.standing.value for placed in (written, read, joint)]
        rows.append([point.name, ratio, write_rate, marks[0], read_rate, marks[1], marks[2]])
    return headings, rows
