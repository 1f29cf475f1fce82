"""Sentences and table cells of the comparison of a run with a study."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from operator import attrgetter

from pffbench_studies.published.counterparts import Match
from pffbench_studies.published.order import Order, OrderVerdict
from pffbench_studies.published.sidebyside import SideBySide
from pffbench_studies.published.values import given

HEADINGS = (
    "case", "files, settings", "operation", "what", "published", "here (95 % interval)", "unit",
    "× published",
)  # fmt: skip
ORDER_HEADINGS = (
    "case", "files, settings", "operation", "published, fastest first", "here", "pairs: same",
    "other", "undecided", "verdict",
)  # fmt: skip


def verdict_lines(found: SideBySide) -> list[str]:
    """Return the main verdict: whether the run agrees, and whether that is decided."""
    study = found.study
    if not found.matches:
        return [
            f"Nothing in this run has the parameters of any of the {len(found.values)} published "
            f"numbers of {study.name}: no comparison is made."
        ]
    return [
        *_orders(found),
        *(
            f"Rank correlation of all {c.n} numbers of {c.variant}: Kendall's τ {c.tau:.2f} "
            "(1: all in the published order; intervals not regarded)"
            for c in found.correlations
        ),
    ]


def _orders(found: SideBySide) -> Iterator[str]:
    """Describe the orders of the nearest variant; of all where there is none."""
    nearest = [order for order in found.orders if order.matches[0].nearest]
    shown = nearest or found.orders
    variants = list(dict.fromkeys(order.matches[0].variant for order in shown))
    if nearest:
        yield f"Nearest to the study: {variants[0]}."
    else:
        yield "No case is done as the study did it; these are others of the same size."
    for order in shown:
        first = order.matches[0]
        where = f"{first.subject}, " if len({o.matches[0].subject for o in shown}) > 1 else ""
        where += f"{first.variant}, " if len(variants) > 1 else ""
        yield f"{where}{first.operation}: {order_text(order)}"


def order_text(order: Order) -> str:
    """Describe an order: the verdict, and the pairs that it consists of."""
    n = len(order.pairs)
    text = f"{order.verdict}, published {published_order(order)}"
    if order.verdict is OrderVerdict.SAME:
        return f"{text}; all {n} pairs"
    counts = [
        f"{count} {word}"
        for count, word in (
            (order.agreeing, "the same"),
            (order.disagreeing, "the other way round"),
            (order.undecided, "not decided by the intervals here"),
        )
        if count
    ]
    return f"{text}; of {n} pairs {', '.join(counts)}"


def published_order(order: Order) -> str:
    """List the study's alternatives, fastest first; ``~`` joins those not distinguished."""
    there = {match.published_as: match.published for match in order.matches}
    told = next(iter(there))
    for (_, a), (name, b) in pairwise(there.items()):
        told += f" {'<' if a.differs_from(b) else '~'} {name}"
    return told


def order_here(
    order: Order, text: Callable[[Match], str] = attrgetter("alternative"), between: str = " "
) -> str:
    """List the alternatives by measured median; ``~`` joins those not distinguished."""
    ranked = sorted(order.matches, key=lambda match: match.here)
    decided = {
        frozenset((id(pair.faster), id(pair.slower)))
        for pair in order.all_pairs
        if pair.agrees is not None
    }
    told = text(ranked[0])
    for a, b in pairwise(ranked):
        sign = "<" if frozenset((id(a), id(b))) in decided else "~"
        told += f"{between}{sign} {text(b)}"
    return told


def cells(match: Match) -> tuple[str, ...]:
    """Return the row of a number, under `HEADINGS`."""
    return (
        match.subject,
        match.variant,
        match.operation,
        match.alternative,
        given(match.published),
        f"{match.estimate}{' †' if match.below_resolution else ''}",
        match.published.unit,
        f"{match.ratio:.2g}",
    )


def order_cells(order: Order) -> tuple[str, ...]:
    """Return the row of an order, under `ORDER_HEADINGS`."""
    first = order.matches[0]
    return (
        first.subject,
        first.variant,
        first.operation,
        published_order(order),
        order_here(order),
        str(order.agreeing),
        str(order.disagreeing),
        str(order.undecided),
        str(order.verdict),
    )
