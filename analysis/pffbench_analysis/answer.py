"""Data of the answer's figure: the ratio of each contender to the fastest one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pffbench.phases import TOTALS
from pffbench.summary.conclusions import absent, comparison_names, contender_labels, subject
from pffbench.summary.headline import Answer, Design
from pffbench.summary.rank_test import Ratio
from pffbench.summary.summary import CaseSummary, Summary
from pffbench_analysis.charts import label
from pffbench_analysis.style import plain

#: Standings of the contender with the smallest median, and of the others.
Standing = Literal["fastest", "ahead", "slower", "equal", "undecided"]


@dataclass(frozen=True)
class AnswerRow:
    """A contender of a comparison, represented by its fastest case.

    Parameters
    ----------
    key : (int, str)
        Index of the comparison in the headline, and the contender: the same in all totals.
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

    key: tuple[int, str]
    comparison: str
    name: str
    case: str
    backend: str
    seconds: float
    standing: Standing
    ratio: Ratio
    needed: int = 0

    @property
    def is_first(self) -> bool:
        """Whether the others are compared with it."""
        return self.standing in ("fastest", "ahead")


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
        rows = tuple(row for answer in found for row in _rows(answer, summary))
        if rows:
            panels.append(AnswerPanel(total, plain(subject(summary, total)), rows))
    return panels


def margin_of(summary: Summary) -> float:
    """Return the relative difference under which two ways count as equally fast."""
    return Design.of_experiment(summary.record.experiment).margin


def answer_notes(summary: Summary) -> list[str]:
    """Return the reading notes of the figure."""
    margin = f"{100 * margin_of(summary):g} %"
    notes = [
        "Points: median time over the smallest median (diamond, at 1), of formats by their fastest "
        "case. Lines: 95 % interval of the ratio, for all looks at the results together; an arrow: "
        "it goes on.",
        f"Filled: decided. Circles: shown to be slower. Squares: equally fast, within {margin}, "
        "which is the band. Hollow: not decided; the line then allows for all comparisons too.",
    ]
    if short := sum(answer.too_short for answer in summary.answers):
        verb = "is" if short == 1 else "are"
        notes.append(
            f"{short} of {len(summary.answers)} comparisons {verb} too short to be told apart "
            "from the harness and not drawn."
        )
    if missing := absent(summary):
        notes.append(plain(f"{'; '.join(missing)}."))
    return notes


def _rows(answer: Answer, summary: Summary) -> Iterator[AnswerRow]:
    comparisons = comparison_names(summary)
    number = list(comparisons).index(answer.key)
    names = contender_labels(summary)
    cases = {case.sample.case: case for case in summary.cases}

    def row(
        name: str, case: CaseSummary, standing: Standing, ratio: Ratio, n: int = 0
    ) -> AnswerRow:
        seconds = case.phases[answer.total].seconds.median
        return AnswerRow(
            (number, name),
            plain(comparisons[answer.key]),
            plain(names[name]),
            plain(label(case)),
            case.sample.backend,
            seconds,
            standing,
            ratio,
            n,
        )

    fastest = cases[answer.case]
    itself = Ratio(fastest.repetitions, 1.0, 1.0, 1.0, 1.0)
    found = [row(answer.name, fastest, "fastest" if answer.decided else "ahead", itself)]
    found += [
        row(other.name, cases[other.case], other.standing, other.ratio, other.needed)
        for other in answer.others
    ]
    yield from sorted(found, key=lambda one: one.key)
