"""Comparison of a run with the study that its experiment names."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pffbench.summary.headline import Design
from pffbench.summary.inference import ComparisonTable, decide
from pffbench.summary.summary import Summary
from pffbench_analysis.published.counterparts import Match, PublishedValue, Study
from pffbench_analysis.published.matchers import matcher_of
from pffbench_analysis.published.order import Correlation, Order, OrderedPair
from pffbench_analysis.published.reasons import Reason
from pffbench_analysis.published.values import STUDIES, published_values


@dataclass(frozen=True, eq=False)
class SideBySide:
    """Comparison of a run with a study.

    Parameters
    ----------
    study : Study
        The study.
    values : tuple of PublishedValue
        All of its numbers.
    matches : tuple of Match
        Published numbers with a counterpart in the run; may be empty.
    orders : tuple of Order
        Published orders of alternatives by speed, with the verdict of the run.
    correlations : tuple of Correlation
        One per variant.
    reasons : tuple of Reason
        Reasons why numbers may differ.
    claims : tuple of str
        Statements of the study's text, checked against its numbers.
    """

    study: Study
    values: tuple[PublishedValue, ...]
    matches: tuple[Match, ...] = ()
    orders: tuple[Order, ...] = ()
    correlations: tuple[Correlation, ...] = ()
    reasons: tuple[Reason, ...] = ()
    claims: tuple[str, ...] = ()


def side_by_side(summary: Summary) -> SideBySide | None:
    """Compare a run with the study that its experiment names with the key ``study``.

    Parameters
    ----------
    summary : Summary
        The run.

    Returns
    -------
    SideBySide or None
        None where the experiment names no study, or one that this version does not know. It has
        no matches where nothing in the run has the parameters of a published number.
    """
    study = STUDIES.get(str(summary.record.experiment.get("study")))
    if study is None:
        return None
    values = published_values(study.name)
    matcher = matcher_of(study.name)
    matches = matcher.matches(summary, values)
    return SideBySide(
        study,
        values,
        matches=tuple(matches),
        orders=tuple(orders(matches, Design.of_experiment(summary.record.experiment))),
        correlations=tuple(_correlations(matches)),
        reasons=tuple(matcher.reasons(summary)) if matches else (),
        claims=tuple(matcher.claims(values)),
    )


def orders(matches: Sequence[Match], design: Design) -> Iterator[Order]:
    """Yield the order of the alternatives of each subject, variant and operation.

    Alternatives that the study lacks, or does not distinguish, are in no order. The pairs of all
    orders are one family of comparisons.
    """
    groups: dict[tuple[str, str, str], list[Match]] = {}
    for match in _times(matches):
        if not match.beyond:
            groups.setdefault((match.subject, match.variant, match.operation), []).append(match)
    ordered = [sorted(group, key=lambda m: m.published.value) for group in groups.values()]
    ordered = [ranked for ranked in ordered if any(_distinct(ranked))]
    tables = [_table(ranked, paired=design.paired) for ranked in ordered]
    decisions = decide(tables, design.looks, margin=design.margin)
    for place, ranked in enumerate(ordered):
        both: dict[bool, list[OrderedPair]] = {True: [], False: []}
        for (i, a), (j, b) in combinations(enumerate(ranked), 2):
            decision = decisions.get((place, str(j), str(i)))
            both[a.published.differs_from(b.published)].append(OrderedPair(a, b, decision))
        yield Order(tuple(ranked), tuple(both[True]), tuple(both[False]))


def _distinct(ranked: Sequence[Match]) -> Iterator[bool]:
    """Yield for each pair whether the study distinguishes it."""
    return (a.published.differs_from(b.published) for a, b in combinations(ranked, 2))


def _table(ranked: Sequence[Match], *, paired: bool) -> ComparisonTable:
    """Return the pairs of an order that have a common block, the one published as slower first."""
    times = {
        str(number): {block: match.factor * s for block, s in match.phase.by_block.items()}
        for number, match in enumerate(ranked)
        if not match.below_resolution
    }
    pairs = ((b, a) for a, b in combinations(times, 2) if times[a].keys() & times[b].keys())
    return ComparisonTable(times, tuple(pairs), paired)


def _times(matches: Sequence[Match]) -> list[Match]:
    """Return the numbers that are times, for which less is better."""
    return [match for match in matches if match.measured is None]


def kendall(one: Sequence[float], other: Sequence[float]) -> float:
    """Return Kendall's rank correlation tau-b; NaN where all values of one of the two are equal."""
    order, others = (np.sign(np.subtract.outer(values, values)) for values in (one, other))
    pairs = float((order**2).sum() * (others**2).sum())
    return float((order * others).sum()) / math.sqrt(pairs) if pairs else math.nan


def _correlations(matches: Sequence[Match]) -> Iterator[Correlation]:
    """Yield the rank correlation of each variant (Kendall's tau-b)."""
    times = _times(matches)
    for variant in dict.fromkeys(match.variant for match in times):
        own = [match for match in times if match.variant == variant]
        if len(own) > 1:
            published = [match.published.value for match in own]
            tau = kendall(published, [match.here for match in own])
            yield Correlation(variant, tau, len(own), own[0].nearest)
