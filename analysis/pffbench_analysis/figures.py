"""The figures of a run: its answer, and for each group of cases times, rounds, sizes and ranks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from pffbench.phases import MOVING, TOTALS
from pffbench.results import words
from pffbench.results.columns import ordered, title
from pffbench.results.compare import Comparison
from pffbench.results.comparisons import Compared
from pffbench.results.grid import cell_of, compared_name, way_name
from pffbench.results.judge import MARGIN, Ratio, Seconds, Word
from pffbench.results.load import busy
from pffbench.results.names import format_name, labels
from pffbench.results.purposes import Purpose, purposes_of
from pffbench.results.spread import FEWEST_FOR_INTERVAL, spread
from pffbench.results.summary import CaseSummary, Summary
from pffbench_analysis.axes import Axis, axis_of
from pffbench_analysis.captions import alarms, footnote
from pffbench_analysis.charts import Line, Mark, Panel, Point, dots, lines, scatter
from pffbench_analysis.picture import Entry, Figure
from pffbench_analysis.ranks import Ranks
from pffbench_analysis.style import colour
from pffbench_analysis.svg import Shape

#: Mark of each word; what is not decided is hollow.
_SHAPES: Mapping[Word, Shape] = {
    "slower": "circle",
    "faster": "circle",
    "same": "square",
    "open": "circle",
}
#: How far an interval may go beyond all ratios before an axis ends.
_FARTHEST = 4.0
#: Dashes of the lines of one colour, in their order.
_DASHES = ("", "6 3", "2 3", "9 3 2 3")
#: Lines of a panel that a legend names.
_MOST_LINES = 12
#: Values drawn as single dots; of more, evenly spaced ones.
_MOST_DOTS = 200
#: Ratio of sizes on disk from which on they are drawn.
_SIZES_DIFFER = 1.05
#: Ranks from which on each is drawn.
_FEWEST_RANKS = 3
#: Ranks from which on the extremes of each are left out.
_MANY_RANKS = 32


def answer_figure(summary: Summary) -> Figure | None:
    """Return the figure of the answer; None where the times show nothing.

    A run that compares nothing, or has too few rounds to, has its times.
    """
    record = summary.record
    disturbed = any(busy(summary.load)) and not record.accept_busy
    if record.valid is not True or record.traced or disturbed:
        return None
    found = summary.compared
    panels, notes = _compared(found) if found else _times(summary)
    if not panels:
        return None
    about = record.question or record.name
    heading = "Time relative to the recommended way" if found else "Median times"
    return Figure(heading, panels, about, (), notes, alarms(record), footnote(summary))


# The answer: other ways over the one to use


def _compared(found: Compared) -> tuple[list[Panel], list[str]]:
    """Return a panel for each purpose, with a row for each other way."""
    every = [*found.formats, *found.changes]
    names = {_key(one): compared_name(found, one) for one in every}
    used = way_name(found.decided.decision)
    x = _ratios([one.verdict.ratio for one in every])
    panels = []
    for purpose in found.decided.purposes:
        there = [one for one in every if one.cells[0][0].keys["column"] == purpose.heading]
        marks = [_used(used, purpose, found), *(_other(one, names, found) for one in there)]
        panels.append(dots(purpose.heading, [used, *names.values()], marks, x, margin=MARGIN))
    return panels, list(_marks_in_words({one.verdict.word for one in every}))


def _key(one: Comparison) -> str:
    return f"{one.by} {one.value}"


def _ratios(ratios: Sequence[Ratio]) -> Axis:
    """Return the axis of some ratios, which ends where only intervals go on."""
    values = [ratio.value for ratio in ratios if math.isfinite(ratio.value)] or [1.0]
    least, most = min(1.0, *values) / _FARTHEST, _FARTHEST * max(1.0, *values)
    ends = [min(max(end, least), most) for ratio in ratios for end in (ratio.low, ratio.high)]
    margin = [1 / (1 + 1.5 * MARGIN), 1 + 1.5 * MARGIN]
    return axis_of([*values, *ends, *margin], "times as long", "{:g}×".format)


def _used(name: str, purpose: Purpose, found: Compared) -> Mark:
    """Return the mark of the way to use, at 1."""
    cell = cell_of(purpose, found)
    time = words.seconds(cell.median) if cell else ""
    tint = colour(found.decided.backend)
    return Mark(name, 1.0, colour=tint, text=time, shape="diamond", about=f"{name}: {time}")


def _other(one: Comparison, names: Mapping[str, str], found: Compared) -> Mark:
    name, verdict = names[_key(one)], one.verdict
    backend = one.value if one.by == "backend" else found.decided.backend
    return Mark(
        name,
        verdict.ratio.value,
        verdict.ratio.low,
        verdict.ratio.high,
        colour(backend),
        words.brief(verdict),
        _SHAPES[verdict.word],
        verdict.word != "open",
        about=f"{name}: {words.verdict(verdict)}, {verdict.rounds} rounds",
    )


def _marks_in_words(there: set[Word]) -> Iterator[str]:
    """Explain the marks that occur."""
    texts = ["Diamond: the way to use, at 1", "lines: 95 % intervals", "grey band: within 10 %"]
    if "same" in there:
        texts.append("squares: same within 10 %")
    if "open" in there:
        texts.append("hollow marks (~): not decided")
    yield f"{'; '.join(texts)}."


# Times: medians with their intervals


def _times(summary: Summary) -> tuple[list[Panel], list[str]]:
    """Return a panel for each purpose, with the median of each case."""
    cells = [cell for cell in summary.cells if cell.seconds]
    names = labels({cell.case: cell.keys for cell in cells})
    purposes = purposes_of(cells)
    found = {
        purpose.heading: {names[c.case]: (c.keys["backend"], c.seconds) for c in purpose.cells}
        for purpose in purposes
    }
    rows = list(dict.fromkeys(names.values()))
    return _medians(found, rows, summary.run.resolution)


def _medians(
    found: Mapping[str, Mapping[str, tuple[str, Seconds]]], rows: Sequence[str], resolution: float
) -> tuple[list[Panel], list[str]]:
    """Return a panel for each heading, with the backend and the seconds of each row."""
    marks = {
        heading: [_median(name, *own, resolution) for name, own in there.items()]
        for heading, there in found.items()
    }
    every = [mark for some in marks.values() for mark in some]
    notes = ["Medians with 95 % intervals; small dots: the rounds, the first uppermost."]
    if not all(one.filled for one in every):
        notes.append(f"Hollow: fewer than {FEWEST_FOR_INTERVAL} rounds, with their range.")
    if any(one.text.endswith("†") for one in every):
        notes.append("†: under 100 times what the harness itself takes; not to be relied on.")
    return [dots(heading, rows, some, _axis(some)) for heading, some in marks.items()], notes


def _axis(marks: Iterable[Mark]) -> Axis:
    return _seconds([v for one in marks for v in (one.value, one.low, one.high, *one.rounds)])


def _seconds(values: Iterable[float], title: str = "") -> Axis:
    return axis_of(values, title, words.seconds)


def _median(name: str, backend: str, by_round: Seconds, resolution: float) -> Mark:
    """Return the mark of a median, with its interval, or the range of few rounds."""
    seconds = list(by_round.values())
    one = spread(seconds)
    few = one.n < FEWEST_FOR_INTERVAL
    low, high = (one.minimum, one.maximum) if few else (one.low, one.high)
    text = words.seconds(one.median) + "†" * (one.median < resolution)
    return Mark(
        name,
        one.median,
        low if one.n > 1 else math.nan,
        high,
        colour(backend),
        text,
        filled=not few,
        rounds=[seconds[n] for n in kept(seconds, _MOST_DOTS)] if one.n > 1 else (),
        about=f"{name}: {text}, {words.seconds(low)} to {words.seconds(high)}, {one.n} rounds",
    )


def kept(values: Sequence[float], most: int) -> list[int]:
    """Return the places of at most `most` values, evenly spaced, with both extremes among them."""
    if len(values) <= most:
        return list(range(len(values)))
    spaced = np.linspace(0, len(values) - 1, most - 2).round().astype(int).tolist()
    return sorted({*spaced, int(np.argmin(values)), int(np.argmax(values))})


# Groups of cases


def group_figures(
    cases: Sequence[CaseSummary], summary: Summary, ranks: Ranks
) -> dict[str, Figure]:
    """Return the figures of a group by their names.

    INVALID cases are in none, since readers compare any visible marks.
    """
    shown = [case for case in ordered(cases) if not case.invalid]
    resolution = summary.run.resolution
    phases = dict.fromkeys(name for case in shown for name in case.phases if name not in TOTALS)
    found = {
        "times": _times_of("Time to write and to read", TOTALS, shown, resolution),
        "rounds": _rounds(shown),
        "sizes": _sizes(shown),
        "ranks": _ranks(shown, ranks),
        "phases": _times_of("Time of each phase", phases, shown, resolution),
    }
    about, foot = f"{summary.record.name}: {title(cases, summary)}", footnote(summary)
    alarm = alarms(summary.record)
    return {
        name: one._replace(about=about, alarms=alarm, foot=foot)
        for name, one in found.items()
        if one.panels
    }


def _times_of(
    heading: str, phases: Iterable[str], cases: Sequence[CaseSummary], resolution: float
) -> Figure:
    """Return the medians of some phases, or totals."""
    found = {
        phase_name(phase): {
            case.label: (case.backend, case.phases[phase].by_round)
            for case in cases
            if phase in case.phases
        }
        for phase in phases
    }
    found = {name: there for name, there in found.items() if there}
    panels, notes = _medians(found, [case.label for case in cases], resolution)
    return Figure(heading, panels, notes=notes)


def phase_name(phase: str) -> str:
    """Return a phase, or a total, in words."""
    return phase.replace("_total", ", all phases").replace("_", " ")


def _drawn_lines(
    name: str,
    across: str,
    panels: Mapping[str, Sequence[Line]],
    cases: Sequence[CaseSummary],
    note: str,
) -> Figure:
    """Return a figure of lines over whole numbers, one line for each case."""
    every = [one for some in panels.values() for one in some]
    x = axis_of([v for one in every for v in one.x], across, "{:.0f}".format, log=False)
    y = _seconds([v for one in every for v in (*one.y, *one.low, *one.high)])
    styles = _styles(cases)
    few = len(cases) <= _MOST_LINES
    legend = [Entry(case.label, *styles[case.name]) for case in cases] if few else _formats(cases)
    drawn = [lines(heading, some, x, y) for heading, some in panels.items() if some]
    return Figure(name, drawn, legend=legend, notes=[note], columns=2)


def _styles(cases: Sequence[CaseSummary]) -> dict[str, tuple[str, str]]:
    """Return colour and dashes of the line of each case."""
    found: dict[str, tuple[str, str]] = {}
    for case in cases:
        tint = colour(case.backend)
        number = sum(other == tint for other, _ in found.values())
        found[case.name] = tint, _DASHES[number % len(_DASHES)]
    return found


def _formats(cases: Sequence[CaseSummary]) -> list[Entry]:
    backends = dict.fromkeys(case.backend for case in cases)
    return [Entry(format_name(backend), colour(backend)) for backend in backends]


def _rounds(cases: Sequence[CaseSummary]) -> Figure:
    """Return the time of each round: drift, outliers and slow starts show here."""
    styles = _styles(cases)
    panels: dict[str, list[Line]] = {}
    for total in TOTALS:
        panels[phase_name(total)] = some = []
        for case in cases:
            by_round = case.phases[total].by_round if total in case.phases else {}
            if len(by_round) > 1:
                tint, dash = styles[case.name]
                some.append(
                    Line(case.label, [*by_round], [*by_round.values()], (), (), tint, dash, False)
                )
    note = "A slope is drift, a spike a disturbance; lines that move together share it."
    return _drawn_lines("Time of each round", "round", panels, cases, note)


def _ranks(cases: Sequence[CaseSummary], ranks: Ranks) -> Figure:
    """Return the time of each rank, or group of neighbours."""
    styles = _styles(cases)
    panels: dict[str, list[Line]] = {}
    for case in cases:
        for phase, times in ranks.cases.get(case.name, {}).items():
            if phase in MOVING and len(times.first) >= _FEWEST_RANKS:
                low, high = ((), ()) if len(times.first) > _MANY_RANKS else (times.low, times.high)
                line = Line(
                    case.label, times.first, times.median, low, high, *styles[case.name], False
                )
                panels.setdefault(phase_name(phase), []).append(line)
    note = (
        "Medians over the rounds, with the least and the most; of many ranks groups of neighbours."
    )
    return _drawn_lines("Time of each rank", "rank", panels, cases, note)


def _sizes(cases: Sequence[CaseSummary]) -> Figure:
    """Return time over size on disk, where sizes differ, as those of codecs do."""
    formats = [case for case in cases if not case.raw and case.disk and case.disk.stored]
    stored = {case.name: case.disk.stored / 2**20 for case in formats if case.disk}
    nothing = Figure("Time and size on disk", ())
    if not stored or max(stored.values()) < _SIZES_DIFFER * min(stored.values()):
        return nothing
    x = axis_of(stored.values(), "on disk", "{:.3g} MiB".format)
    panels = []
    for total in TOTALS:
        points = []
        for case in formats:
            if total in case.phases:
                s = case.phases[total].seconds
                size, tint = stored[case.name], colour(case.backend)
                points.append(Point(case.label, size, s.median, s.low, s.high, tint))
        if points:
            y = _seconds([v for p in points for v in (p.y, p.low, p.high)])
            panels.append(scatter(phase_name(total), points, x, y))
    note = "Less of both is better. Medians with 95 % intervals."
    return nothing._replace(panels=panels, legend=_formats(formats), notes=[note], columns=2)
