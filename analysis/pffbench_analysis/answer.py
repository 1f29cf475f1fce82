"""The figure of the answer of a run: the ratio of each contender to the fastest one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pffbench.phases import TOTALS
from pffbench.summary.conclusions import (
    TOO_SHORT,
    absent,
    comparison_names,
    contender_labels,
    interval,
    number,
    subject,
)
from pffbench.summary.headline import Answer
from pffbench.summary.rank_test import Ratio
from pffbench.summary.summary import CaseSummary, Summary
from pffbench.units import percent, seconds_text
from pffbench_analysis.charts import label
from pffbench_analysis.picture import Picture, PicturePanel, Words
from pffbench_analysis.specs import ROW, Spec, log_scale, number_axis, panel, point, ratios
from pffbench_analysis.style import colour

#: Standings of the contender with the smallest median, and of the others.
Standing = Literal["fastest", "ahead", "slower", "equal", "undecided"]
_SHAPES = {
    "fastest": "diamond", "ahead": "diamond", "slower": "circle", "equal": "square",
    "undecided": "circle",
}  # fmt: skip
_STANDINGS = {
    "fastest": "fastest", "ahead": "smallest median, not decided", "slower": "slower",
    "equal": "equally fast", "undecided": "not decided",
}  # fmt: skip


@dataclass(frozen=True)
class AnswerRow:
    """A contender of a comparison, represented by its fastest case.

    Parameters
    ----------
    number : int
        Index of the comparison in the headline: the same in all totals.
    comparison : str
        Distinguishing parameters of the comparison; empty where it is the only one.
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
    """

    number: int
    comparison: str
    name: str
    case: str
    backend: str
    seconds: float
    standing: Standing
    ratio: Ratio
    needed: int = 0

    @property
    def place(self) -> str:
        """The name of its row, the same in all totals."""
        return f"{self.number} {self.name}"

    @property
    def is_first(self) -> bool:
        """Whether the others are compared with it."""
        return self.standing in ("fastest", "ahead")

    @property
    def text(self) -> str:
        """Its ratio and interval; of the first its time."""
        if self.is_first:
            return f"{self.standing}, {seconds_text(self.seconds)}"
        ratio = self.ratio
        return f"{number(ratio.value)} ({interval(ratio)})" if math.isfinite(ratio.value) else "–"

    def facts(self, heading: str) -> dict[str, str]:
        """Return what is known of it, in words."""
        facts = {"format": self.name, "fastest case": self.case, "in": heading}
        if self.comparison:
            facts["comparison"] = self.comparison
        facts |= {"standing": _STANDINGS[self.standing], "median": seconds_text(self.seconds)}
        if not self.is_first:
            facts |= {"times as long": self.text, "repetitions": f"{self.ratio.n}"}
        if self.needed:
            facts["would decide it"] = f"about {self.needed} repetitions"
        return facts


@dataclass(frozen=True)
class AnswerPanel:
    """All contenders in one total.

    Parameters
    ----------
    total : str
        ``write_total``, ``update_total`` or ``read_total``.
    heading : str
        The total in words.
    rows : tuple of AnswerRow
        The contenders of each comparison, in an order that does not depend on their times.
    """

    total: str
    heading: str
    rows: tuple[AnswerRow, ...]


def answer_panels(summary: Summary) -> list[AnswerPanel]:
    """Return the panels; none where nothing is compared, or all times are too short."""
    panels = []
    for total in TOTALS:
        found = [a for a in summary.answers if a.total == total and not a.too_short]
        if rows := tuple(row for answer in found for row in _rows(answer, summary)):
            panels.append(AnswerPanel(total, subject(summary, total), rows))
    return panels


def _rows(answer: Answer, summary: Summary) -> Iterator[AnswerRow]:
    comparisons = comparison_names(summary)
    place = list(comparisons).index(answer.key)
    names = contender_labels(summary)
    cases = summary.by_name

    def row(name: str, case: CaseSummary, *standing: Any) -> AnswerRow:
        return AnswerRow(
            place,
            comparisons[answer.key],
            names[name],
            label(case),
            case.sample.backend,
            case.phases[answer.total].seconds.median,
            *standing,
        )

    fastest = cases[answer.case]
    itself = Ratio(fastest.repetitions, 1.0, 1.0, 1.0, 1.0)
    found = {answer.name: row(answer.name, fastest, _first(answer), itself)}
    for other in answer.others:
        standing = (other.standing, other.ratio, other.needed)
        found[other.name] = row(other.name, cases[other.case], *standing)
    yield from (found[name] for name in sorted(found))


def _first(answer: Answer) -> Standing:
    return "fastest" if answer.decided else "ahead"


def answer_notes(summary: Summary) -> list[str]:
    """Return the reading notes of the figure."""
    notes = [
        "Points: median time over the smallest median (diamond, at 1), of formats by their fastest "
        "case. Lines: 95 % interval of the ratio, for all looks at the results together; an arrow: "
        "it goes on.",
        "Filled: decided. Circles: shown to be slower. Squares: equally fast, within "
        f"{percent(summary.margin)}, which is the band. Hollow: not decided; the line then "
        "allows for all comparisons too.",
    ]
    if short := sum(answer.too_short for answer in summary.answers):
        verb = "is" if short == 1 else "are"
        notes.append(
            f"{short} of {len(summary.answers)} comparisons {verb} {TOO_SHORT} and not drawn."
        )
    if missing := absent(summary):
        notes.append(f"{'; '.join(missing)}.")
    return notes


def draw_answer(panels: Sequence[AnswerPanel], margin: float, words: Words) -> Picture:
    """Return the figure of the answer.

    Parameters
    ----------
    panels : sequence of AnswerPanel
        One or more.
    margin : float
        Half-width, as a part, of the band in which contenders count as equally fast.
    words : Words
        Text around the panels.
    """
    drawn = tuple(answer_specs(panels, margin))
    return Picture("How many times as long as the fastest", words, drawn)


def answer_specs(panels: Sequence[AnswerPanel], margin: float) -> list[PicturePanel]:
    """Return the panels of the answer, for files and for the page."""
    drawn = [row.ratio for panel in panels for row in panel.rows]
    ends = [v for ratio in drawn for v in (ratio.low, ratio.value, ratio.high)]
    scale = log_scale([*ends, 1 / (1 + margin), 1 + margin], 0.06)
    return [PicturePanel(panel.heading, _panel(panel, margin, scale)) for panel in panels]


def _panel(found: AnswerPanel, margin: float, scale: Spec) -> Spec:
    rows: list[str] = []
    titles: list[dict[str, Any]] = []
    for row in found.rows:
        title = f"{row.number} "
        if row.comparison and title not in rows:
            rows.append(title)
            titles.append({"row": title, "text": row.comparison})
        rows.append(row.place)
    values = [_values(row, found.heading, scale["domain"]) for row in found.rows]
    x = number_axis("time over the smallest median, logarithmic", scale)
    layers = ratios(rows, values, margin, x, titles)
    told = ", ".join(f"{row.comparison} {row.name} {row.text}".strip() for row in found.rows)
    return panel(layers, ROW * len(rows), f"{found.heading}: {told}")


def _values(row: AnswerRow, heading: str, bounds: Sequence[float]) -> dict[str, Any]:
    ratio = row.ratio
    filled = row.standing not in ("ahead", "undecided")
    return {
        "row": row.place,
        "standing": row.standing,
        "ratio": ratio.value if math.isfinite(ratio.value) else None,
        "low": None if row.is_first else max(ratio.low, bounds[0]),
        "high": None if row.is_first else min(ratio.high, bounds[1]),
        "sure": not row.is_first,
        "low_open": ratio.low <= bounds[0],
        "high_open": ratio.high >= bounds[1],
        "text": row.text,
        "told": row.facts(heading),
        **point(colour(row.backend), filled=filled, shape=_SHAPES[row.standing]),
    }
