"""`pffbench recommend`: answers about some runs, as lines to print."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pffbench.errors import UserError
from pffbench_analysis.recommend.advice import Advice, advise
from pffbench_analysis.recommend.purposes import Weights
from pffbench_analysis.recommend.words import agreement, lines_of


def recommend(runs: Sequence[str | Path], weights: Weights | None = None) -> list[str]:
    """Return what some runs recommend, in words and in code.

    Parameters
    ----------
    runs : sequence of str or Path
        Results directories. Each is answered by itself: times of several jobs belong to no
        common block.
    weights : Weights, optional
        How often data are written and read; once each when not given.

    Raises
    ------
    UserError
        No run can be used; the message says why for each.
    """
    found: list[Advice] = []
    refused: list[str] = []
    for run in runs:
        try:
            found.append(advise(run, weights))
        except UserError as error:
            refused.append(str(error))
    if not found:
        raise UserError("; ".join(refused))
    lines = [f"Left out: {text}." for text in refused]
    for advice in found:
        lines += ([""] if lines else []) + list(lines_of(advice))
    return [*lines, *agreement(found)]
