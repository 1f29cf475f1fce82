"""Cost of shards: each case with shards beside the same one with a file for each chunk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from pffbench.summary.crossing import WaysAtSize, cases_alike, compare_ways
from pffbench.summary.headline import Design
from pffbench.summary.inference import Decision
from pffbench.summary.summary import CaseSummary, Summary
from pffbench.text import value_text

#: The two ways of each comparison, for `compare_ways`.
_WAYS = ("sharded", "chunked")
#: The totals that are compared, and their words.
_TOTALS = {"write_total": "writing", "read_total": "reading"}


class ShardCost(msgspec.Struct, frozen=True):
    """A case with shards beside the one that differs in nothing else.

    Parameters
    ----------
    sharded, chunked : CaseSummary
        The two cases.
    shards : str
        Shape of a shard.
    decisions : dict of str to Decision
        By total: the time with shards over that without.
    """

    sharded: CaseSummary
    chunked: CaseSummary
    shards: str
    decisions: Mapping[str, Decision]

    @property
    def saved_files(self) -> str:
        """How many files shards save, in words; empty if they were not counted."""
        less, more = self.sharded.disk_files, self.chunked.disk_files
        return "" if less is None or more is None else f"; they save {more - less} of {more} files"


def shard_costs(summary: Summary) -> list[ShardCost]:
    """Compare all cases with shards with the same ones without, as one family of comparisons."""
    pairs = list(_pairs(summary))
    fields = [
        WaysAtSize(
            (number, total),
            sharded.sample.backend,
            sharded.nbytes,
            {way: case.phases[total].by_block for way, case in zip(_WAYS, pair, strict=True)},
        )
        for number, pair in enumerate(pairs)
        for total in _TOTALS
        if all(total in case.phases for case in pair)
        for sharded in pair[:1]
    ]
    compared = compare_ways(fields, Design.of_experiment(summary.record.experiment))
    return [
        ShardCost(
            sharded,
            chunked,
            value_text(sharded.options["shards"]),
            {
                total: field.decisions[_WAYS]
                for (of, total), (field,) in compared.items()
                if of == number and _WAYS in field.decisions
            },
        )
        for number, (sharded, chunked) in enumerate(pairs)
    ]


def _pairs(summary: Summary) -> Iterator[tuple[CaseSummary, CaseSummary]]:
    """Yield each case with shards and the one that differs in these alone."""
    for cases in cases_alike(summary, frozenset({"shards"})):
        without = [case for case in cases if not case.options.get("shards")]
        yield from ((case, without[0]) for case in cases if without and case not in without)


def shard_lines(costs: Sequence[ShardCost], group: str) -> list[str]:
    """Say what shards cost in each pair of a comparison."""
    return [_sentence(cost) for cost in costs if cost.sharded.sample.group == group]


def _sentence(cost: ShardCost) -> str:
    sample, words = cost.sharded.sample, cost.sharded.variant.split()
    asked = [w for w in words if not (w.startswith("shards=") or w.endswith("=None"))]
    label = " ".join([sample.backend, sample.settings, *asked])
    parts = [_cost(_TOTALS[total], decision) for total, decision in cost.decisions.items()]
    return f"shards of {cost.shards} in {label}: {', '.join(parts)}{cost.saved_files}"


def _cost(what: str, decision: Decision) -> str:
    """Return the cost or saving in percent with its interval, if a difference is shown."""
    ratio = decision.ratio
    if decision.longer:
        interval = f"{_percent(ratio.low)} to {_percent(ratio.high)}"
        return f"{what} takes {_percent(ratio.value)} % more time ({interval} %)"
    if decision.shorter:
        interval = f"{_percent(2 - ratio.high)} to {_percent(2 - ratio.low)}"
        return f"{what} takes {_percent(2 - ratio.value)} % less time ({interval} %)"
    if not ratio.is_bounded:
        return f"no difference was shown in {what} (too few repetitions for an interval)"
    interval = f"{_signed(ratio.low)} to {_signed(ratio.high)} %"
    if decision.equivalent:
        return f"{what} takes equally long ({interval})"
    return f"no difference was shown in {what} ({interval})"


def _percent(ratio: float) -> str:
    """Format how far a ratio is above 1, in percent."""
    above = 100 * (ratio - 1)
    return f"{above:.0f}" if abs(above) >= 10 else f"{above:.1f}"


def _signed(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.0f}"
