"""Text on compression against speed: the choices, their confidence and their limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pffbench.summary.summary import Summary
from pffbench.text import abridged, escape_markdown, markdown_table
from pffbench_analysis.recommend.bounds import doubts, objection, untested
from pffbench_analysis.recommend.candidates import Candidate
from pffbench_analysis.recommend.frontier import (
    BALANCED,
    DIRECTIONS,
    READ,
    SMALLEST,
    WRITTEN,
    DataKind,
    Speed,
    choices,
    chosen,
    standings,
)
from pffbench_analysis.recommend.judge import RankedWay, Recommendation, WayStanding

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
    "in view of all pairs. Not distinguishable from the front: none is shown to be. On the front "
    "by its median: a way with no smaller ratio is not shown to be slower",
    "balance: the least product of stored bytes and of the time for writing and reading once, so "
    "that half the bytes are worth twice the time",
)
CHOICE_HEADINGS = ("for", "take", "ratio", "write MiB/s", "read MiB/s", "how sure")
_POINT_HEADINGS = (
    "way", "ratio", "write MiB/s", "front of writing", "read MiB/s", "front of reading",
    "front of both",
)  # fmt: skip


def barred(summary: Summary) -> str:
    """Return the reason why a run allows no recommendation; empty if it does."""
    why = objection(summary.record)
    return f"nothing is recommended: {why}" if why else ""


def headline(kind: DataKind, summary: Summary) -> str:
    """Return the recommendation in one line, for a pull request."""
    if why := barred(summary):
        return f"**{kind.name}**: {why}"
    found = choices(kind)
    texts = [_choice(kind, purpose, found[purpose]) for purpose in (BALANCED, *_OTHERS)]
    return f"**{kind.name}**{kind.title.removeprefix(kind.name)}: {'; '.join(texts)}"


_OTHERS = (SMALLEST, WRITTEN, READ)


def _choice(kind: DataKind, purpose: str, answer: Recommendation) -> str:
    """Return a choice for the headline, or that there is none."""
    point = chosen(answer)
    if point is None:
        return f"no {purpose} ({sureness(kind, answer)})"
    ratio, written, read = _cells(point)
    number = {
        SMALLEST: f"ratio {ratio}",
        WRITTEN: f"{written} MiB/s",
        READ: f"{read} MiB/s",
        BALANCED: f"ratio {ratio}, write {written}, read {read} MiB/s",
    }[purpose]
    others = answer.best[1:]
    good = f", as good: {_named(kind, others)}" if others else ""
    word = "take" if purpose == BALANCED else purpose
    return f"{word} {kind.way(point)} ({number}{good})"


def choice_rows(kind: DataKind) -> list[list[str]]:
    """Return the recommendation as a table."""
    rows = []
    for purpose, answer in choices(kind).items():
        point = chosen(answer)
        cells = ["–"] * 4 if point is None else [kind.way(point), *_cells(point)]
        rows.append([purpose, *cells, sureness(kind, answer)])
    return rows


def sureness(kind: DataKind, answer: Recommendation) -> str:
    """Return the confidence in a choice as text."""
    if not answer.placed:
        return answer.why_not
    first, *others = answer.best
    if first.standing is WayStanding.ONLY:
        return f"only {kind.way(first.candidate)} was measured"
    if answer.taken is None:
        return f"not decided between {_named(kind, answer.best)}; {answer.remedy} would decide it"
    exact = answer.purpose.name == SMALLEST
    if others:
        return f"{'exact; as small' if exact else 'equally good'}: {_named(kind, others)}"
    return "exact" if exact else "shown to be better than every other way"


def _named(kind: DataKind, ways: Sequence[RankedWay]) -> str:
    return abridged([kind.way(way.candidate) for way in ways], _MOST)


def front_line(kind: DataKind) -> str:
    """Name the members of the fronts by their medians, the fastest first, the smallest last."""
    parts = []
    for direction, what in zip(DIRECTIONS, ("writing", "reading"), strict=True):
        placed = zip(kind.points, standings(kind, (direction,)), strict=True)
        front = [(p.ratio, kind.way(p)) for p, own in placed if own.standing.on_front]
        if front:
            named = "; ".join(f"{way} ({ratio:g})" for ratio, way in sorted(front))
            parts.append(f"{what}: {named}")
    return (
        f"On the front by the medians, from the fastest to the smallest, of {'; of '.join(parts)}."
    )


def _cells(point: Candidate) -> list[str]:
    return [f"{point.ratio:g}", *(_rate(Speed.of(point, d)) for d in DIRECTIONS)]


def _rate(speed: Speed | None) -> str:
    """Return a rate in MiB/s of the bytes of the arrays, with its interval."""
    if speed is None:
        return "–"
    rate = speed.phase.seconds.rate(speed.nbytes / _MIB)
    return f"{rate}{'†' * speed.unsure}"


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
    why = barred(summary)
    for kind in kinds:
        yield from ("", f"## {escape_markdown(kind.title)}", "")
        if not why:
            yield from markdown_table(CHOICE_HEADINGS, choice_rows(kind))
            yield ""
        yield from (escape_markdown(front_line(kind)), "")
        yield from markdown_table(_POINT_HEADINGS, _point_rows(kind))
        yield ""
        yield from (f"- {escape_markdown(text)}" for text in limits(kind, summary))
    yield from ("", "## How to read it", "")
    yield from (f"- {text}" for text in HOW_TO_READ)


def _point_rows(kind: DataKind) -> Iterator[list[str]]:
    """Yield all points with their standing."""
    placed = [standings(kind, d) for d in (("write",), ("read",), DIRECTIONS)]
    for point, *own in zip(kind.points, *placed, strict=True):
        ratio, written, read = _cells(point)
        write_front, read_front, both = (position.standing.value for position in own)
        yield [kind.way(point), ratio, written, write_front, read, read_front, both]
