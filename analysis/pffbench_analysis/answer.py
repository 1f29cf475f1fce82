"""The figure of the answer of a run: the ratio of each contender to the fastest one.

Where settings were swept, its panels are those of one key: small multiples of the settings. These
are drawn by their times, which can be compared whatever the format: what a setting is compared with
by tests is the fastest one of its own format.
"""

from __future__ import annotations

import math
import statistics
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pffbench.summary.answer import answer_columns, disturbance, why_none
from pffbench.summary.conclusions import (
    TOO_SHORT,
    absent,
    comparison_names,
    contender_labels,
    interval,
    number,
)
from pffbench.summary.headline import Answer
from pffbench.summary.labels import format_title, parameters_apart
from pffbench.summary.rank_test import Ratio
from pffbench.summary.summary import CaseSummary, Summary
from pffbench.summary.sweep import FormatSettings, SettingResult, Sweep

from pffbench.units import percent, seconds_text
from pffbench_analysis.charts import label, reach
from pffbench_analysis.picture import LegendEntry, Picture, PicturePanel, Words
from pffbench_analysis.specs import (
    LINE_END,
    ROW,
    Spec,
    equality,
    log_scale,
    marks,
    number_axis,
    panel,
    point,
)
from pffbench_analysis.style import colour

#: Standings of the contender with the smallest median, and of the others.
Standing = Literal["fastest", "ahead", "slower", "equal", "undecided"]
#: The first of all formats, and that of its own format among settings, have marks of their own.
_SHAPES = {"slower": "circle", "equal": "square", "undecided": "circle"}
_FIRST, _FIRST_OF_ITS_FORMAT = "diamond", "triangle-up"
#: How marks look, and what they stand for; of settings, within a format.
_MARKS = {
    "fastest": "◆ fastest", "ahead": "◇ smallest median, open (?)", "slower": "● slower",
    "equal": "■ same", "undecided": "○ open (?)",
}  # fmt: skip
_MARKS_OF_SETTINGS = {
    "fastest": "▲ fastest of its format", "ahead": "△ smallest median of its format, open (?)",
    "slower": "● slower than that", "equal": "■ same as that", "undecided": "○ open (?)",
}  # fmt: skip
_STANDINGS = {
    "fastest": "fastest", "ahead": "smallest median, not decided", "slower": "slower",
    "equal": "equally fast", "undecided": "not decided",
}  # fmt: skip


@dataclass(frozen=True)
class AnswerRow:
    """A contender of a comparison, represented by its fastest case; or a setting of a format.

    Parameters
    ----------
    comparison : str
        Distinguishing parameters of the comparison, or the setting; empty where it is the only one.
    name : str
        The contender: a format, or a case where one format is compared with itself.
    case : str
        Its fastest case, in words.
    backend : str
        Backend of that case.
    seconds : float
        Median of that case.
    standing : {"fastest", "ahead", "slower", "equal", "undecided"}
        Standing against the one with the smallest median, which is ``fastest`` if decided and
        ``ahead`` otherwise.
    ratio : Ratio
        Its time over that of the one with the smallest median, for which the ratio is 1.
    needed : int
        If undecided: repetitions that would probably decide it.
    reach : tuple of float, optional
        Of a setting the interval of its median in seconds, or the range of few repetitions.
    """

    comparison: str
    name: str
    case: str
    backend: str
    seconds: float
    standing: Standing
    ratio: Ratio
    needed: int = 0
    reach: tuple[float, float] | None = None

    @property
    def is_first(self) -> bool:
        """Whether the others are compared with it."""
        return self.standing in ("fastest", "ahead")

    @property
    def drawn(self) -> tuple[float, float, float]:
        """What is drawn, and its bounds: the ratio; of a setting seconds."""
        if self.reach:
            return (self.seconds, *self.reach)
        return (self.ratio.value, self.ratio.low, self.ratio.high)

    @property
    def text(self) -> str:
        """Its ratio and interval; of the first, and of a setting, its time."""
        if self.is_first or self.reach:
            word = "fastest, " if self.standing == "fastest" else ""
            return f"{word}{seconds_text(self.seconds)}"
        return self.ratio_text

    @property
    def ratio_text(self) -> str:
        """Its ratio and interval."""
        if not math.isfinite(self.ratio.value):
            return "–"
        bounded = interval(self.ratio) if self.ratio.is_bounded else "(no interval)"
        return f"{number(self.ratio.value)} {bounded}"

    @property
    def brief(self) -> str:
        """Its name and ratio; of the first, and of a setting, its time."""
        is_time = self.is_first or self.reach
        return f"{self.name} {seconds_text(self.seconds) if is_time else number(self.ratio.value)}"

    def facts(self, heading: str) -> dict[str, str]:
        """Return what is known of it, in words."""
        facts = {"format": self.name, "fastest case": self.case, "in": heading}
        if self.comparison:
            facts["comparison"] = self.comparison
        facts |= {"standing": _STANDINGS[self.standing], "median": seconds_text(self.seconds)}
        if not self.is_first:
            facts |= {"times as long": self.ratio_text, "repetitions": f"{self.ratio.n}"}
        if self.needed:
            facts["would decide it"] = f"about {self.needed} repetitions"
        return facts


@dataclass(frozen=True)
class AnswerPanel:
    """All contenders in one column of the answer, or the settings of one value of a key.

    Parameters
    ----------
    total : str
        ``write_total``, ``update_total`` or ``read_total``.
    heading : str
        The column, and the value of the key.
    rows : tuple of AnswerRow
        The contenders of each comparison.
    """

    total: str
    heading: str
    rows: tuple[AnswerRow, ...]

    @property
    def names(self) -> dict[str, str]:
        """The contenders, with the colours of their backends."""
        return {row.name: colour(row.backend) for row in sorted(self.rows, key=_by_name)}

    def places(self, *, shared: bool) -> dict[AnswerRow, str]:
        """Return the row of each contender, the fastest first where they share none."""
        rows = list(self.rows)
        if not shared:
            order = list(dict.fromkeys(row.comparison for row in rows))
            rows.sort(key=lambda row: (order.index(row.comparison), _finite(row)))
        texts = {
            row: row.comparison if shared else f"{row.comparison} {row.name}".strip()
            for row in rows
        }
        known = list(dict.fromkeys(texts.values()))
        lines = {text: LINE_END.join(textwrap.wrap(text, _LINE)) for text in known}
        return {row: f"{known.index(text)} {lines[text]}" for row, text in texts.items()}


def share_rows(panels: Sequence[AnswerPanel]) -> bool:
    """Whether the contenders of a comparison share a row, since colours tell them apart."""
    several = any(len({row.comparison for row in panel.rows}) > 1 for panel in panels)
    return several and all(len(set(p.names.values())) == len(p.names) for p in panels)


def _by_name(row: AnswerRow) -> str:
    return row.name.lower()


#: Characters of a line of a row's name.
_LINE = 20


def _finite(row: AnswerRow) -> float:
    return row.drawn[0] if math.isfinite(row.drawn[0]) else math.inf


def answer_panels(summary: Summary) -> list[AnswerPanel]:
    """Return the panels; none where nothing is compared, or the times are not those of the ways."""
    if disturbance(summary):
        return []
    if _has_settings(summary):
        return [panel for sweep in summary.sweeps for panel in _sweep_panels(sweep, summary)]
    return [
        AnswerPanel(
            column.answers[0].total,
            column.heading,
            tuple(row for answer in column.answers for row in _rows(answer, summary)),
        )
        for column in answer_columns(summary)
    ]


#: Of fewer settings of a format the fastest one is drawn alone.
_FEWEST_SETTINGS = 4


def _has_settings(summary: Summary) -> bool:
    """Whether settings are drawn, and not formats by their fastest case."""
    each = (len(one.results) for sweep in summary.sweeps for one in sweep.formats)
    return max(each, default=0) >= _FEWEST_SETTINGS


def _rows(answer: Answer, summary: Summary) -> Iterator[AnswerRow]:
    comparison = comparison_names(summary).get(answer.key)
    if comparison is None:  # a cold read, whose column says so
        comparison = f"layout {summary.record.cases[answer.case]['parameters']['layout']}"
    names = contender_labels(summary)
    cases = summary.by_name

    def row(name: str, case: CaseSummary, *standing: Any) -> AnswerRow:
        seconds = case.phases[answer.total].seconds.median
        of_case = (label(case), case.sample.backend, seconds)
        return AnswerRow(comparison, names[name], *of_case, *standing)

    fastest = cases[answer.case]
    itself = Ratio(fastest.repetitions, 1.0, 1.0, 1.0, 1.0)
    found = {answer.name: row(answer.name, fastest, _first(decided=answer.decided), itself)}
    for other in answer.others:
        standing = (other.standing, other.ratio, other.needed)
        found[other.name] = row(other.name, cases[other.case], *standing)
    yield from (found[name] for name in sorted(found))


def _first(*, decided: bool) -> Standing:
    return "fastest" if decided else "ahead"


def _sweep_panels(sweep: Sweep, summary: Summary) -> Iterator[AnswerPanel]:
    """Yield a panel for each value of the key that has fewest, with the settings by their times."""
    found = [(one, result) for one in sweep.formats if one.keys for result in one.results]
    values: dict[str, set[str]] = defaultdict(set)
    for _, result in found:
        for key, value in result.values.items():
            values[key].add(value)
    facet = min(values, key=lambda key: len(values[key])) if len(values) > 1 else ""
    down = [key for key in values if key != facet]
    apart = parameters_apart(summary.record)
    groups = {one.group: summary.groups[one.group][0].sample.layout for one, _ in found}
    panels: dict[str, list[AnswerRow]] = defaultdict(list)
    for one, result in found:
        at = f"{facet} {result.values[facet]}" if facet in result.values else ""
        layout = f"layout {groups[one.group]} {apart[one.group]}" if len(groups) > 1 else ""
        where = (sweep.heading, layout.strip(), at)
        setting = ", ".join(
            result.values[key] if len(down) == 1 else f"{key} {result.values[key]}"
            for key in down
            if key in result.values
        )
        panels[", ".join(filter(None, where))].append(
            _setting(setting, one, result, sweep, summary)
        )
    each: dict[str, list[float]] = defaultdict(list)
    for row in (row for rows in panels.values() for row in rows):
        each[row.comparison].append(row.seconds)
    for heading, rows in panels.items():
        rows.sort(key=lambda row: statistics.fmean(each[row.comparison]))
        yield AnswerPanel(sweep.total, heading, tuple(rows))


def _setting(
    setting: str, one: FormatSettings, result: SettingResult, sweep: Sweep, summary: Summary
) -> AnswerRow:
    case = summary.by_name[result.case]
    seconds = case.phases[sweep.total].seconds
    standing: Standing = result.standing
    if standing == "fastest":
        standing = _first(decided=len(one.rivals) == 1)
    of_case = (label(case), case.sample.backend, seconds.median)
    compared = (standing, result.ratio, result.needed)
    return AnswerRow(setting, format_title(one.name), *of_case, *compared, reach(seconds))


def answer_heading(summary: Summary) -> str:
    """Return the heading of the figure."""
    if _has_settings(summary):
        return "Median time of each setting"
    return f"How many times as long as the {'smallest median' if why_none(summary) else 'fastest'}"


def answer_marks(panels: Sequence[AnswerPanel], margin: float) -> list[str]:
    """Say what the marks of the figure stand for, of those that occur."""
    rows = [row for panel in panels for row in panel.rows]
    known = {row.standing for row in rows}
    told, of_band, of = _MARKS, [f"grey band: same, within {percent(margin)}"], ""
    if _are_times(panels):
        told, of_band, of = _MARKS_OF_SETTINGS, [], " of the median"
    pale = " (pale: open)" if known & {"ahead", "undecided"} else ""
    words = [text for standing, text in told.items() if standing in known]
    return [*words, *of_band, f"line: 95 % interval{of}{pale}"]


def _are_times(panels: Sequence[AnswerPanel]) -> bool:
    """Whether settings are drawn, by their times."""
    return any(row.reach for panel in panels for row in panel.rows)


def answer_notes(panels: Sequence[AnswerPanel], summary: Summary) -> list[str]:
    """Return the reading notes of the figure."""
    how = (
        "Marks: median time over the smallest median, at 1, of formats their fastest case. Lines: "
        "for all looks at the results together, and if open for all comparisons too; an arrow: it "
        "goes on."
    )
    if _are_times(panels):
        how = (
            "Times of all formats can be compared. Whether a setting is slower, same or open is "
            "tested against the fastest settings of its own format. Lines: of fewer than five "
            "repetitions their range."
        )
    notes = [f"{'; '.join(answer_marks(panels, summary.margin))}.", how]
    if short := sum(answer.too_short for answer in summary.answers):
        verb = "is" if short == 1 else "are"
        notes.append(
            f"{short} of {len(summary.answers)} comparisons {verb} {TOO_SHORT} and not drawn."
        )
    if missing := absent(summary):
        notes.append(f"{'; '.join(missing)}.")
    return notes


def draw_answer(
    panels: Sequence[AnswerPanel], margin: float, heading: str, words: Words
) -> Picture:
    """Return the figure of the answer.

    Parameters
    ----------
    panels : sequence of AnswerPanel
        One or more.
    margin : float
        Half-width, as a part, of the band in which contenders count as equally fast.
    heading : str
        The first line.
    words : Words
        The rest of the text.
    """
    legend = tuple(LegendEntry(name, fill) for name, fill in answer_legend(panels))
    drawn = tuple(answer_specs(panels, margin))
    return Picture(heading, words, drawn, 3, legend)


def answer_legend(panels: Sequence[AnswerPanel]) -> list[tuple[str, str]]:
    """Return the contenders and their colours where they share rows."""
    names = dict(item for panel in panels for item in panel.names.items())
    return list(names.items()) if len(names) > 1 and share_rows(panels) else []


def answer_specs(panels: Sequence[AnswerPanel], margin: float) -> list[PicturePanel]:
    """Return the panels of the answer, for files and for the page."""
    drawn = [value for panel in panels for row in panel.rows for value in row.drawn]
    if _are_times(panels):
        unit, each = ("seconds", 1.0) if max(drawn) >= 1 else ("ms", 1e3)
        x = number_axis(f"{unit}, logarithmic", log_scale([each * value for value in drawn], 0.06))
        behind = []
    else:
        each = 1.0
        scale = log_scale([*drawn, 1 / (1 + margin), 1 + margin], 0.06)
        x = number_axis("times as long, logarithmic", scale)
        behind = equality(margin, x)
    form: dict[str, Any] = {
        "each": each, "brief": len(panels) > _FEW, "shared": share_rows(panels),
        "extent": _extent(panels),
    }  # fmt: skip
    return [PicturePanel(one.heading, _panel(one, x, behind, **form)) for one in panels]


def _extent(panels: Sequence[AnswerPanel]) -> float:
    """Return the width of the names of rows, in pixels."""
    shared = share_rows(panels)
    places = [place for panel in panels for place in panel.places(shared=shared).values()]
    lines = (line for place in places for line in place.partition(" ")[2].split(LINE_END))
    return _CHARACTER * max(map(len, lines))


def answer_least_width(panels: Sequence[AnswerPanel]) -> int:
    """Return the least width of a panel of a trellis, in pixels; 0 of few panels."""
    return math.ceil(_extent(panels)) + _LEAST_PLOT if len(panels) > _FEW else 0


#: Least width of the part of a panel that holds marks, in pixels.
_LEAST_PLOT = 60
#: Width of a character in the name of a row, in pixels.
_CHARACTER = 6.6
#: Of more panels than these only marks are drawn.
_FEW = 4
#: Heights in pixels: of a contender that shares its row, with its text and without, and of a line
#: of a name.
_SLOT, _SLOT_OF_MARKS, _LINE_HEIGHT = 20, 9, 13


def _panel(
    found: AnswerPanel,
    x: Spec,
    behind: Sequence[Spec],
    *,
    each: float,
    brief: bool,
    shared: bool,
    extent: float,
) -> Spec:
    """Return a panel, in which `each` is what one of what is drawn is on the axis."""
    places = found.places(shared=shared)
    names = len(found.names) if shared else 1
    slots = {name: (i + 0.5) / names for i, name in enumerate(found.names)}
    values = [
        _values(row, each, found.heading, x["scale"]["domain"])
        | {"row": place}
        | ({"text": row.brief, "order": slots[row.name]} if names > 1 else {})
        for row, place in places.items()
    ]
    rows = list(dict.fromkeys(places.values()))
    layers = [*behind, *marks(rows, values, x, shared=names > 1, extent=extent)]
    if brief:
        layers = [layer for layer in layers if layer["name"] != "written"]
    lines = max(row.count(LINE_END) + 1 for row in rows)
    row_height = max(ROW, lines * _LINE_HEIGHT, names * (_SLOT_OF_MARKS if brief else _SLOT))
    told = ", ".join(f"{row.comparison} {row.name} {row.text}".strip() for row in found.rows)
    return panel(layers, row_height * len(rows), f"{found.heading}: {told}")


def _values(row: AnswerRow, each: float, heading: str, bounds: Sequence[float]) -> dict[str, Any]:
    value, low, high = (each * end for end in row.drawn)
    filled = row.standing not in ("ahead", "undecided")
    alone = row.is_first and row.reach is None  # the ratio of the first has no interval
    return {
        "standing": row.standing,
        "value": value if math.isfinite(value) else None,
        "low": None if alone else max(low, bounds[0]),
        "high": None if alone else min(high, bounds[1]),
        "sure": not alone,
        "faint": not filled,
        "low_open": low <= bounds[0],
        "high_open": high >= bounds[1],
        "text": row.text,
        "told": row.facts(heading),
        **point(colour(row.backend), filled=filled, shape=_shape(row)),
    }


def _shape(row: AnswerRow) -> str:
    first = _FIRST_OF_ITS_FORMAT if row.reach else _FIRST
    return first if row.is_first else _SHAPES[row.standing]
