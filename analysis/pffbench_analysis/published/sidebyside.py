"""Comparison of a run with the study that its experiment names."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pffbench.summary.rank_test import Ratio, ratio_of_times
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
        orders=tuple(orders(matches)),
        correlations=tuple(_correlations(matches)),
        reasons=tuple(matcher.reasons(summary)) if matches else (),
        claims=tuple(matcher.claims(values)),
    )


def orders(matches: Sequence[Match]) -> Iterator[Order]:
    """Yield the order of the alternatives of each subject, variant and operation.

    Alternatives that the study lacks, or does not distinguish, are in no order.
    """
    groups: dict[tuple[str, str, str], list[Match]] = {}
    for match in _times(matches):
        if match.beyond:
            continue
        groups.setdefault((match.subject, match.variant, match.operation), []).append(match)
    for group in groups.values():
        ranked = sorted(group, key=lambda match: match.published.value)
        both: dict[bool, list[OrderedPair]] = {True: [], False: []}
        for a, b in combinations(ranked, 2):
            both[a.published.differs_from(b.published)].append(OrderedPair(a, b, _ratio(a, b)))
        if both[True]:
            yield Order(tuple(ranked), tuple(both[True]), tuple(both[False]))


def _times(matches: Sequence[Match]) -> list[Match]:
    """Return the numbers that are times, for which less is better."""
    return [match for match in matches if match.measured is None]


def _ratio(faster: Match, slower: Match) -> Ratio | None:
    """Return the ratio of times, where both are reliable.

    It covers the common blocks; for cases of two runs, all repetitions.
    """
    if faster.below_resolution or slower.below_resolution:
        return None
    times, others = (
        {block: match.factor * seconds for block, seconds in match.phase.by_block.items()}
        for match in (slower, faster)
    )
    if faster.case.run == slower.case.run and not times.keys() & others.keys():
        return None
    return ratio_of_times(times, others)


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
