"""Text on compression against speed: the choices, their confidence and their limits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from pffbench.summary.summary import Summary
from pffbench.text import escape_markdown, markdown_table
from pffbench_analysis.pareto.choices import BALANCED, RULE, Choice, barred, choices
from pffbench_analysis.pareto.front import FrontPosition, standings
from pffbench_analysis.pareto.points import DIRECTIONS, CompressionPoint, DataKind, Direction, Speed
from pffbench_analysis.recommend.advice import Advice, WorkAdvice
from pffbench_analysis.recommend.bounds import doubts, untested
from pffbench_analysis.recommend.candidates import READING, WRITING
from pffbench_analysis.recommend.judge import judge

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
    told = choices(kind)
    balance = next(choice for choice in told if choice.purpose == BALANCED)
    if balance.point is None:
        first = f"no balance ({balance.why_not})"
    else:
        first = f"take {balance.point.name} ({_numbers(balance.point)}{_how_sure(balance)})"
    others = [
        f"{choice.purpose} {choice.point.name} ({_number_for(choice)}{_how_sure(choice)})"
        for choice in told
        if choice.point is not None and choice.purpose != BALANCED
    ]
    return f"**{kind.name}**, {ranks_of(kind)}: " + "; ".join([first, *others])


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
        return f"no answer: {choice.why_not}"
    if choice.why_not:
        return f"by its median; {choice.why_not}"
    exact = choice.purpose.startswith("smallest")
    if not choice.ties:
        return "exact" if exact else "shown to be better than every other way"
    if exact:
        return f"exact; as small, but written more slowly by the median: {_named(choice.ties)}"
    return f"not told from it: {_named(choice.ties)}"


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


def _how_sure(choice: Choice) -> str:
    if choice.sure or choice.purpose.startswith("smallest"):
        return ""
    if not choice.ties:
        return ", by its median"
    return f", {len(choice.ties)} other{'s' * (len(choice.ties) > 1)} not told from it"


def _numbers(point: CompressionPoint) -> str:
    written, read = _cells(point)[1:]
    return f"ratio {point.shown_ratio:g}, write {written}, read {read} MiB/s"


def _number_for(choice: Choice) -> str:
    assert choice.point is not None
    ratio, written, read = _cells(choice.point)
    told = {"fastest writing": f"{written} MiB/s", "fastest reading": f"{read} MiB/s"}
    return told.get(choice.purpose, f"ratio {ratio}")


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
    placed = standings(kind.points, (direction,), kind.work.design)
    return list(zip(kind.points, placed, strict=True))


def limits(kind: DataKind, summary: Summary, directory: str | Path) -> list[str]:
    """List the reasons for doubt in a kind of data, and the ways not tested."""
    candidates = kind.work.candidates
    answers = tuple(judge([(candidates, p) for p in (WRITING, READING)], kind.work.design))
    one = WorkAdvice(kind.work, answers)
    advice = Advice(Path(directory), summary, (one,))
    texts = [f"{text[0].upper()}{text[1:]}." for text in doubts(advice, one)]
    if kind.without:
        texts.append(f"Stored bytes were not counted of: {'; '.join(kind.without)}.")
    texts.append(f"Not tested: {'; '.join(untested(advice, one))}.")
    return texts


def markdown(kinds: Sequence[DataKind], summary: Summary, directory: str | Path) -> Iterator[str]:
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
        yield from (f"- {escape_markdown(text)}" for text in limits(kind, summary, directory))
    yield from ("", "## How to read it", "")
    yield from (f"- {text}" for text in HOW_TO_READ)


def all_points(kind: DataKind) -> tuple[tuple[str, ...], list[list[str]]]:
    """Return headings and rows of a table of all points with their standing."""
    headings = (
        "way", "ratio", "write MiB/s", "front of writing", "read MiB/s", "front of reading",
        "front of both",
    )  # fmt: skip
    own = [standings(kind.points, (direction,), kind.work.design) for direction in DIRECTIONS]
    both = standings(kind.points, DIRECTIONS, kind.work.design)
    rows = []
    for point, written, read, joint in zip(kind.points, *own, both, strict=True):
        ratio, write_rate, read_rate = _cells(point)
        marks = [placed.standing.value for placed in (written, read, joint)]
        rows.append([point.name, ratio, write_rate, marks[0], read_rate, marks[1], marks[2]])
    return headings, rows
