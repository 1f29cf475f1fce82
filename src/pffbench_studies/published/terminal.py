"""Terminal output of a run and a study side by side; each row states whether its order holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pffbench.grouping import grouped
from pffbench.text import make_table
from pffbench_studies.published.counterparts import Match
from pffbench_studies.published.order import Order, OrderVerdict
from pffbench_studies.published.sidebyside import SideBySide
from pffbench_studies.published.values import given
from pffbench_studies.published.wording import order_here, verdict_lines

_WORDS = {
    OrderVerdict.SAME: ("held", "green"),
    OrderVerdict.PARTLY: ("held as far as decided", "green"),
    OrderVerdict.OTHER: ("broken", "red"),
    OrderVerdict.UNDECIDED: ("undecided", "yellow"),
}
_HOW_TO_READ = (
    "Fastest first; ~ not distinguishable from the one above; ± standard deviation. Here: median "
    "over the repetitions that count and, behind ×, what it is over the published number; † below "
    "resolution; + not in the study, beside the number of the nearest alternative. Held: the "
    "intervals here decide all pairs as published; broken: at least one is the other way round. "
    "Pairs that the study does not tell apart (error bars, words) are no order: –."
)


def print_side_by_side(found: SideBySide, console: Console) -> None:
    """Print published and measured numbers side by side, a table for each variant.

    Parameters
    ----------
    found : SideBySide
        Comparison of a run with a study.
    console : rich.console.Console
        Console to print on.
    """
    console.print(f"Published and here: {found.study.title}", style="bold", highlight=False)
    console.print(found.study.url, style="dim", highlight=False)
    if not found.matches:
        for line in verdict_lines(found):
            console.print(line, highlight=False, markup=False)
        return
    variants = grouped((match.variant, match) for match in found.matches)
    nearest = {match.variant for match in found.matches if match.nearest}
    for variant in sorted(variants, key=lambda variant: variant not in nearest):
        where = " (nearest to the study)" if variant in nearest else ""
        console.print(f"\n{variant}{where}", style="bold", highlight=False, markup=False)
        console.print(_table(variants[variant], found))
        console.print(_count(variants[variant], found), highlight=False)
    console.print(f"\n{_HOW_TO_READ}", style="dim", highlight=False)


def _table(matches: Sequence[Match], found: SideBySide) -> Table:
    table = make_table()
    for heading in ("case", "operation", "published", "here", "order"):
        table.add_column(heading)
    for subject, own in grouped((match.subject, match) for match in matches).items():
        rows = grouped((match.operation, match) for match in own).values()
        for number, row in enumerate(rows):
            order = found.order_of(row[0])
            word, style = _word(order)
            table.add_row(
                Text("" if number else subject),
                Text(", ".join(filter(None, (row[0].operation, row[0].published.unit)))),
                Text(_there(row)),
                Text(_here(row, order)),
                Text(word, style),
            )
    return table


def _there(row: Sequence[Match]) -> str:
    ranked = sorted(row, key=lambda match: match.published.value)
    there = {match.published_as: given(match.published) for match in ranked}
    return "\n".join(f"{name} {number}" for name, number in there.items())


def _here(row: Sequence[Match], order: Order | None) -> str:
    """List measured numbers, one per line, each led by its relation to the previous one.

    Alternatives that the study lacks come last, marked by a plus.
    """
    known = [match for match in row if not match.beyond]
    lines = [order_here(order, _measured, "\n")] if order else [_measured(m) for m in known]
    return "\n".join([*lines, *(f"+ {_measured(match)}" for match in row if match.beyond)])


def _measured(match: Match) -> str:
    mark = "†" if match.below_resolution else ""
    return f"{match.alternative} {match.here:.3g}{mark} (×{match.ratio:.2g})"


def _word(order: Order | None) -> tuple[str, str]:
    """Return the verdict on the order of a row, and its colour; a lone number has none."""
    if order is None:
        return "–", ""
    word, style = _WORDS[order.verdict]
    if order.verdict is OrderVerdict.OTHER:
        word += f": {order.disagreeing} of {len(order.pairs)} pairs"
    return word, style


def _count(matches: Sequence[Match], found: SideBySide) -> str:
    """Count the orders of a variant by verdict."""
    orders = [o for o in found.orders if any(o.matches[0] is match for match in matches)]
    if not orders:
        return "no order: of no case and operation has the study two times that differ"
    counted = Counter(_WORDS[order.verdict][0] for order in orders)
    told = [f"{counted[word]} {word}" for word, _ in _WORDS.values() if counted[word]]
    return f"of {len(orders)} order{'' if len(orders) == 1 else 's'}: {', '.join(told)}"
