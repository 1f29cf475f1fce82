"""The matrix of a page: ratios of all formats over layouts and transfers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from pffbench.phases import TOTALS
from pffbench.summary.conclusions import number
from pffbench.summary.summary import CaseSummary, Summary
from pffbench_analysis.charts import label
from pffbench_analysis.page.numbers import comparison_name
from pffbench_analysis.style import plain

#: Ratios at which the colour of a cell changes.
_STEPS = (1.1, 1.5, 3.0)
#: A larger sweep has its tables.
_MOST_ROWS, _MOST_COLUMNS = 16, 24


@dataclass(frozen=True)
class MatrixCell:
    """A ratio, and the step of its colour: 0 is next to the fastest."""

    text: str = ""
    step: int = 0


@dataclass(frozen=True)
class Matrix:
    """Ratios by format and by comparison.

    Parameters
    ----------
    heads : list of (str, int)
        Headings over the columns, each with the number of columns below it.
    columns : list of str
        The total of each column.
    rows : list of (str, list of MatrixCell)
        The cells of each format and transfer.
    """

    heads: list[tuple[str, int]]
    columns: list[str]
    rows: list[tuple[str, list[MatrixCell]]]


def matrix_of(summary: Summary, differs: Mapping[str, Mapping[str, str]]) -> Matrix | None:
    """Return the matrix of a run; None where it has one comparison, or more than can be read.

    Parameters
    ----------
    summary : Summary
        The run.
    differs : dict of str to dict
        For each comparison, the parameters in which it differs from another.
    """
    found = {
        comparison_name(cases[0].sample, differs.get(group, {})): [
            case for case in cases if not case.raw and not case.invalid
        ]
        for group, cases in summary.groups.items()
    }
    totals = {
        name: [total for total in TOTALS if any(_ratio(case, total) for case in cases)]
        for name, cases in found.items()
    }
    heads = [(name, len(of)) for name, of in totals.items() if of]
    labels = list(dict.fromkeys(label(case) for cases in found.values() for case in cases))
    columns = [(name, total) for name, _ in heads for total in totals[name]]
    if len(heads) < 2 or len(labels) > _MOST_ROWS or len(columns) > _MOST_COLUMNS:
        return None
    cells = {
        (label(case), name, total): _cell(ratio)
        for name, total in columns
        for case in found[name]
        if (ratio := _ratio(case, total)) is not None
    }
    labels = [row for row in labels if any(cells.get((row, *column)) for column in columns)]
    if len({name.partition(", ")[0] for name, _ in heads}) == 1:  # one workload
        heads = [(name.partition(", ")[2], width) for name, width in heads]
    return Matrix(
        [(plain(name), width) for name, width in heads],
        [total.removesuffix("_total") for _, total in columns],
        [(plain(row), [cells.get((row, *column), MatrixCell()) for column in columns])
         for row in labels],
    )  # fmt: skip


def _ratio(case: CaseSummary, total: str) -> float | None:
    phase = case.phases.get(total)
    return None if phase is None or phase.ratio is None else phase.ratio.value


def _cell(ratio: float) -> MatrixCell:
    if not math.isfinite(ratio):
        return MatrixCell()
    return MatrixCell(number(ratio), sum(ratio > step for step in _STEPS))
