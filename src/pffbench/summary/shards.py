"""Cost of shards: each case with shards beside the same one with a file for each chunk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from pffbench.record.run_json import RunRecord
from pffbench.summary.headline import Design
from pffbench.summary.inference import ComparisonTable, Decision, decide
from pffbench.summary.summary import CaseSummary, Summary
from pffbench.text import value_text

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
    design = Design.of_experiment(summary.record.experiment)
    tables: list[ComparisonTable] = []
    places: dict[tuple[str, str], int] = {}
    for sharded, chunked in pairs:
        for total in _TOTALS:
            times = {
                case.sample.case: case.phases[total].by_block
                for case in (sharded, chunked)
                if total in case.phases
            }
            if len(times) == 2:
                places[sharded.sample.case, total] = len(tables)
                names = (sharded.sample.case, chunked.sample.case)
                tables.append(ComparisonTable(times, (names,), design.paired))
    decisions = decide(tables, design.looks, margin=design.margin)
    found = []
    for sharded, chunked in pairs:
        a, b = sharded.sample.case, chunked.sample.case
        own = {
            total: decisions[place, a, b]
            for total in _TOTALS
            if (place := places.get((a, total))) is not None and (place, a, b) in decisions
        }
        shards = value_text(summary.entry(sharded)["options"]["shards"])
        found.append(ShardCost(sharded, chunked, shards, own))
    return found


def _pairs(summary: Summary) -> Iterator[tuple[CaseSummary, CaseSummary]]:
    """Yield each case with shards and the one that differs in these alone."""
    for cases in summary.groups.values():
        taking_part = [case for case in cases if not case.raw and not case.invalid]
        without = {
            _work(summary.record, case): case
            for case in taking_part
            if not summary.entry(case)["options"].get("shards")
        }
        for case in taking_part:
            if summary.entry(case)["options"].get("shards"):
                other = without.get(_work(summary.record, case))
                if other is not None:
                    yield case, other


def _work(record: RunRecord, case: CaseSummary) -> str:
    """Return all parameters and options of a case but the shards, as text."""
    entry = record.cases[case.sample.case]
    options = {key: value for key, value in entry["options"].items() if key != "shards"}
    return repr((sorted(entry["parameters"].items()), sorted(options.items())))


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
    if not (ratio.low > 0 and ratio.high < float("inf")):
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
