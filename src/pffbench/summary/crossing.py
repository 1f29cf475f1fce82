"""Crossings: the size from which on another way of doing the same work is shown to be faster."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Generic, NamedTuple, TypeVar

from pffbench.summary.headline import Design
from pffbench.summary.inference import ComparisonTable, Decision, decide
from pffbench.summary.rank_test import Times, fastest_of
from pffbench.summary.summary import CaseSummary, Summary

Series = TypeVar("Series", bound=Hashable)


class WaysAtSize(NamedTuple, Generic[Series]):
    """Ways that do the same work at one size.

    Parameters
    ----------
    series : hashable
        What is the same at all sizes.
    kind : str
        Kind of the ways, such as their format, or nothing: see `ComparisonTable`.
    size : int
        The size, such as bytes or ranks.
    times : dict of str to dict
        For each way its seconds in each block of repetitions.
    """

    series: Series
    kind: str
    size: int
    times: Mapping[str, Times]


class WaysCompared(NamedTuple):
    """Ways that do the same work at one size, compared.

    Parameters
    ----------
    size : int
        The size.
    first : str
        The way with the smallest median.
    decisions : dict of (str, str) to Decision
        By two ways: the time of the one over that of the other, for each order.
    """

    size: int
    first: str
    decisions: Mapping[tuple[str, str], Decision]

    def faster(self, one: str, other: str) -> bool:
        """Whether one way is shown to be faster than another."""
        found = self.decisions.get((one, other))
        return found is not None and found.shorter


class WaysCross(NamedTuple):
    """Two ways of which one is shown to be faster at a size, and the other at a larger one.

    Parameters
    ----------
    before, after : str
        The way that is faster at the smaller size, and the one at the larger size.
    below, above : int
        The two sizes, both measured; between them neither is shown to be faster.
    near : float
        Where the times, straight lines on double logarithmic axes between them, cross.
    """

    before: str
    after: str
    below: int
    above: int
    near: float


def cases_alike(summary: Summary, but: frozenset[str]) -> Iterator[list[CaseSummary]]:
    """Yield the cases that differ in nothing but some keys: of each comparison, or of all.

    Parameters
    ----------
    summary : Summary
        The run; raw cases and those that take part in nothing are left out.
    but : frozenset of str
        Names of parameters of the workload, or of options of the backend; with ``layout`` the
        cases of all comparisons.
    """
    for cases in [summary.cases] if "layout" in but else summary.groups.values():
        found: dict[str, list[CaseSummary]] = defaultdict(list)
        for case in cases:
            if not case.raw and not case.invalid:
                found[work_of(case, but)].append(case)
        yield from found.values()


def work_of(case: CaseSummary, but: frozenset[str]) -> str:
    """Return the parameters and options of a case, but for some keys, as text."""
    told = (case.parameters, case.options)
    kept = [sorted((k, v) for k, v in one.items() if k not in but) for one in told]
    return repr((kept, case.sample.environment))


def compare_ways(
    fields: Sequence[WaysAtSize[Series]], design: Design
) -> dict[Series, list[WaysCompared]]:
    """Compare the ways at each size, all as one family; return each series by growing size."""
    tables = [
        ComparisonTable(
            field.times,
            tuple(combinations(field.times, 2)),
            design.paired,
            dict.fromkeys(field.times, field.kind) if field.kind else {},
        )
        for field in fields
    ]
    decisions = decide(tables, design.looks, margin=design.margin)
    found: dict[Series, list[WaysCompared]] = defaultdict(list)
    for place, field in enumerate(fields):
        own: dict[tuple[str, str], Decision] = {}
        for one, other in combinations(field.times, 2):
            if known := decisions.get((place, one, other)):
                own[one, other], own[other, one] = known, known.inverse
        first = fastest_of(field.times, paired=design.paired)
        found[field.series].append(WaysCompared(field.size, first, own))
    return {series: sorted(at, key=lambda one: one.size) for series, at in found.items()}


def crossings(comparisons: Sequence[WaysCompared]) -> Iterator[WaysCross]:
    """Yield where a way, shown to be faster at a size, is shown to be slower at a larger one.

    Of the ways that are first at some size.
    """
    for one, other in combinations(dict.fromkeys(c.first for c in comparisons), 2):
        shown = [c for c in comparisons if c.faster(one, other) or c.faster(other, one)]
        for smaller, larger in pairwise(shown):
            before, after = (one, other) if smaller.faster(one, other) else (other, one)
            if larger.faster(after, before):
                ratios = [c.decisions[before, after].ratio.value for c in (smaller, larger)]
                near = _where_equal((smaller.size, larger.size), (ratios[0], ratios[1]))
                yield WaysCross(before, after, smaller.size, larger.size, near)


def _where_equal(sizes: tuple[float, float], ratios: tuple[float, float]) -> float:
    """Return the size at which two ways take equally long, by their ratio at two sizes."""
    (size, then), (before, after) = sizes, (math.log(ratio) for ratio in ratios)
    return size * math.exp(math.log(then / size) * before / (before - after))
