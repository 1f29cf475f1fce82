"""The engine of every question: cells that differ in a key, compared with everything else equal.

Formats, files and arrays, settings, writers, hints, sizes, environments, runs and ranks are keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

from pffbench.results.cells import Cell, grouped
from pffbench.results.judge import BETWEEN_RATIOS, Pair, Seconds, Verdict, decide


class Question(NamedTuple):
    """Which cells are compared."""

    #: The key in whose values they differ.
    by: str
    #: Keys in which they are equal.
    within: Sequence[str] = ()
    #: Keys over whose values the comparison is averaged, such as the sizes and the files of a
    #: comparison of formats. Values that one side lacks are left out on both.
    over: Sequence[str] = ()
    #: The value of the key that all others are compared with; by default each pair is compared.
    base: str | None = None
    #: Its part of the probability of a false difference in the document, beside the other
    #: questions.
    share: float = 1.0


class Comparison(NamedTuple):
    """A value of a key, compared with another one."""

    #: The key, and its values.
    by: str
    value: str
    base: str
    #: For each comparison that is averaged the cell with the value, and the one with the base.
    cells: Sequence[tuple[Cell, Cell]]
    #: What is shown.
    verdict: Verdict

    @property
    def turned(self) -> Comparison:
        """The base, compared with the value."""
        turned = [(base, cell) for cell, base in self.cells]
        return Comparison(self.by, self.base, self.value, turned, self.verdict.turned)


def compare(
    questions: Sequence[tuple[Sequence[Cell], Question]],
    *,
    alpha: float = 0.05,
    between: float = BETWEEN_RATIOS,
) -> list[list[Comparison]]:
    """Answer all questions of a document, as one family.

    Any difference in it is false with a probability of at most `alpha`.

    Parameters
    ----------
    questions : sequence of (sequence of Cell, Question)
        All that the document prints, each with the cells that it is asked of.
    alpha, between : float
        As in `pffbench.results.judge.decide`.

    Returns
    -------
    list of list of Comparison
        For each question its comparisons.
    """
    whole = sum(question.share for _, question in questions)
    return [_answer(cells, q, alpha * q.share / whole, between) for cells, q in questions]


def _answer(
    cells: Sequence[Cell], question: Question, alpha: float, between: float
) -> list[Comparison]:
    by, base = question.by, question.base
    found: dict[tuple[str, int], tuple[str, str, list[tuple[Cell, Cell]]]] = {}
    alike = grouped(cells, lambda c: tuple(c.keys.get(k) for k in question.within))
    for place, group in enumerate(alike.values()):
        sides: dict[str, dict[tuple[str | None, ...], Cell]] = {}
        for cell in group:
            if by in cell.keys:
                where = tuple(cell.keys.get(k) for k in question.over)
                sides.setdefault(cell.keys[by], {})[where] = cell
        for value, other in _pairs(list(sides), base):
            common = [w for w in sides[value] if w in sides[other]]
            if common:
                both = [(sides[value][w], sides[other][w]) for w in common]
                found[f"{value} {other}", place] = value, other, both
    pairs = {
        key: Pair(
            [(a.seconds, b.seconds) for a, b in both], (value, other, _kind(both)), _control(both)
        )
        for key, (value, other, both) in found.items()
    }
    verdicts = decide(pairs, alpha=alpha, between=between)
    return [
        Comparison(by, value, other, both, verdicts[key])
        for key, (value, other, both) in found.items()
    ]


def _pairs(values: Sequence[str], base: str | None) -> Iterable[tuple[str, str]]:
    if base is None:
        return [(b, a) for a, b in combinations(values, 2)]
    return [(value, base) for value in values if value != base and base in values]


def _control(both: Sequence[tuple[Cell, Cell]]) -> Sequence[tuple[Seconds, Seconds]]:
    """Return the times of raw I/O beside all cells; nothing if one has none."""
    times = [(a.control, b.control) for a, b in both if a.control and b.control]
    return times if len(times) == len(both) else ()


def _kind(both: Sequence[tuple[Cell, Cell]]) -> str:
    """Return what pairs have in common that are as dependent on the round before."""
    return both[0][0].keys.get("total", "")
