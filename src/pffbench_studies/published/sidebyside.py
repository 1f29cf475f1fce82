"""Comparison of a run with the study that its experiment names."""

from __future__ import annotations

from dataclasses import dataclass

from pffbench.results.summary import Summary
from pffbench_studies.published.counterparts import Match
from pffbench_studies.published.curves import Curves
from pffbench_studies.published.matchers import matcher_of
from pffbench_studies.published.order import Correlation, Order, correlations, orders
from pffbench_studies.published.reasons import Reason, reasons_of
from pffbench_studies.published.values import (
    STUDIES,
    PublishedValue,
    Study,
    claims_of,
    published_values,
)


@dataclass(frozen=True, eq=False)
class SideBySide:
    """Comparison of a run with a study."""

    #: The study.
    study: Study
    #: All of its numbers.
    values: tuple[PublishedValue, ...]
    #: Published numbers with a counterpart in the run; may be empty.
    matches: tuple[Match, ...]
    #: Published orders of alternatives by speed, with the verdict of the run.
    orders: tuple[Order, ...]
    #: One per variant.
    correlations: tuple[Correlation, ...]
    #: Reasons why numbers may differ.
    reasons: tuple[Reason, ...]
    #: Statements of the study's text, with what its numbers say of them.
    claims: tuple[str, ...]

    def order_of(self, match: Match) -> Order | None:
        """Return the order that a match is part of; a lone number has none."""
        return next((o for o in self.orders if any(m is match for m in o.matches)), None)

    @property
    def curves(self) -> list[Curves]:
        """Data of figures over a parameter; none where the study varied no parameter."""
        return matcher_of(self.study.name).curves(self.matches, self.values)


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
    values, matcher = published_values(study.name), matcher_of(study.name)
    matches = matcher.matches(summary, values)
    reasons = (
        reasons_of(study.name, summary, matches, matcher.facts(summary, matches), matcher.libraries)
        if matches else ()
    )  # fmt: skip
    return SideBySide(
        study,
        values,
        tuple(matches),
        tuple(orders(matches, restarted=bool(summary.record.environments))),
        tuple(correlations(matches)),
        tuple(reasons),
        tuple(claims_of(study.name)),
    )
