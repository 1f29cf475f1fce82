"""Pairs of ways of which one is shown to be faster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from pffbench.summary.headline import Design
from pffbench.summary.inference import ComparisonTable, decide

Matrix = np.ndarray[Any, np.dtype[np.bool_]]
Times = Sequence[Mapping[int, float] | None]


def shown_faster(questions: Sequence[Times], design: Design) -> list[Matrix]:
    """Compare all pairs of ways in some directions at once, by the rule of the headline.

    Parameters
    ----------
    questions : sequence of sequence of dict or None
        For each direction the seconds by block of each way; None for a way without usable times.
    design : Design
        Plan of the repetitions.

    Returns
    -------
    list of array of bool, shape (n, n)
        For each direction: True at [i, j] where i is shown to be faster than j.
    """
    tables = []
    for times in questions:
        named = {f"{i:06d}": way for i, way in enumerate(times) if way}
        tables.append(ComparisonTable(named, tuple(combinations(named, 2))))
    found = [np.zeros((len(times), len(times)), dtype=np.bool_) for times in questions]
    decisions = decide(tables, design.looks, margin=design.margin)
    for (place, a, b), decision in decisions.items():
        if decision.different:
            slower, faster = (a, b) if decision.longer else (b, a)
            found[place][int(faster), int(slower)] = True
    return found
