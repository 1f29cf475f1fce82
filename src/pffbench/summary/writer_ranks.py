"""How many writer ranks are best, and from which size of the data on another number is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import msgspec

from pffbench.record.run_json import RunRecord
from pffbench.summary.conclusions import interval, number
from pffbench.summary.headline import Design
from pffbench.summary.inference import ComparisonTable, Decision, Decisions, decide
from pffbench.summary.rank_test import fastest_of
from pffbench.summary.statistics import crossing_of
from pffbench.summary.summary import CaseSummary, Summary, resolution_of
from pffbench.units import Size

#: The totals that are compared, and their words.
_TOTALS = {"write_total": "writing", "read_total": "reading"}
#: What cases with different numbers of writers differ in; and cases of different sizes.
_WAYS = frozenset({"writers", "rearrange"})
_SIZES = frozenset({"shape", "shape_per_rank", "steps"})


class _Series(NamedTuple):
    """The common settings of the cases of a sentence: the total, and all but writers and sizes."""

    total: str
    label: str
    work: str


class WriterComparison(msgspec.Struct, frozen=True):
    """Cases that move the same data through different numbers of writers.

    Parameters
    ----------
    size : int
        Bytes of array data.
    ways : dict of str to str
        The cases, by the way in which each writes, such as ``1 writer per node``.
    first : str
        The way with the smallest median.
    decisions : dict of (str, str) to Decision
        By two ways: the time of the one over that of the other, for each order.
    """

    size: int
    ways: Mapping[str, str]
    first: str
    decisions: Mapping[tuple[str, str], Decision]

    def faster(self, one: str, other: str) -> bool:
        """Whether one way is shown to be faster than another."""
        found = self.decisions.get((one, other))
        return found is not None and found.shorter


def writer_lines(summary: Summary) -> Iterator[str]:
    """Yield which number of writer ranks is best, and the sizes between which the best changes.

    A sentence for each total of cases that differ in ``writers`` and ``rearrange`` alone. Where an
    experiment sweeps sizes as well, it holds all of them, and the crossings.
    """
    for series, fields in _fields(summary).items():
        ordered = sorted(fields, key=lambda field: field.size)
        told = [_best(field, named=len(ordered) > 1) for field in ordered]
        told += _crossings(ordered)
        yield f"Writer ranks, {series.label}, {_TOTALS[series.total]}: {'; '.join(told)}"


def _fields(summary: Summary) -> dict[_Series, list[WriterComparison]]:
    """Compare the numbers of writers of each field, all fields as one family of comparisons."""
    design = Design.of_experiment(summary.record.experiment)
    found = list(_candidates(summary))
    tables = [
        ComparisonTable(
            {case.sample.case: case.phases[series.total].by_block for case in ways.values()},
            tuple(combinations([case.sample.case for case in ways.values()], 2)),
        )
        for series, ways in found
    ]
    decisions = decide(tables, design.looks, margin=design.margin)
    fields: dict[_Series, list[WriterComparison]] = defaultdict(list)
    for place, (series, ways) in enumerate(found):
        fields[series].append(_field(series, ways, place, decisions))
    return fields


def _field(
    series: _Series, ways: Mapping[str, CaseSummary], place: int, decisions: Decisions
) -> WriterComparison:
    names = {way: case.sample.case for way, case in ways.items()}
    own: dict[tuple[str, str], Decision] = {}
    for one, other in combinations(names, 2):
        known = decisions.get((place, names[one], names[other]))
        if known is not None:
            own[one, other], own[other, one] = known, known.inverse
    first = fastest_of({way: case.phases[series.total].by_block for way, case in ways.items()})
    return WriterComparison(next(iter(ways.values())).nbytes, names, first, own)


def _candidates(summary: Summary) -> Iterator[tuple[_Series, dict[str, CaseSummary]]]:
    """Yield the cases that differ in their writers alone, by way, where there are several ways."""
    shortest = resolution_of(summary.record)
    for cases in summary.groups.values():
        alike: dict[tuple[str, str], list[CaseSummary]] = defaultdict(list)
        for case in cases:
            if not case.invalid:
                alike[_work(summary.record, case, _WAYS), case.sample.environment].append(case)
        for members in alike.values():
            ways = {_way(summary.entry(case)["parameters"]): case for case in members}
            if len(ways) < 2:
                continue
            for total in _TOTALS:
                if all(_known(case, total, shortest) for case in members):
                    label = _label(members[0])
                    work = _work(summary.record, members[0], _WAYS | _SIZES)
                    yield _Series(total, label, work), ways


def _known(case: CaseSummary, total: str, shortest: float) -> bool:
    return total in case.phases and case.phases[total].seconds.median >= shortest


def _label(case: CaseSummary) -> str:
    sample = case.sample
    return " ".join(filter(None, [sample.backend, sample.transfer, sample.settings]))


def _work(record: RunRecord, case: CaseSummary, without: frozenset[str]) -> str:
    """Return the parameters and options of a case, less some, as text."""
    entry = record.cases[case.sample.case]
    kept = {k: v for k, v in entry["parameters"].items() if k not in without}
    return repr((sorted(kept.items()), sorted(entry["options"].items())))


def _way(parameters: Mapping[str, Any]) -> str:
    """Say who writes, by the parameters of a case."""
    how, writers = parameters.get("rearrange", "none"), parameters.get("writers", "all")
    if how == "none":
        return "each rank for itself"
    if not isinstance(writers, dict):
        return f"all ranks ({how})"
    told = {key: count for key, count in writers.items() if count is not None}
    (kind, count), *_ = told.items()
    noun = "writer" if count == 1 else "writers"
    return f"{count} {noun}{' per node' if kind == 'per_node' else ''} ({how})"


def _best(field: WriterComparison, *, named: bool) -> str:
    """Name the best way of a size, with the ratio of the next one and its interval."""
    others = [way for way in field.ways if way != field.first]
    by_ratio = sorted(others, key=lambda way: _ratio(field, way))
    open_ = [way for way in by_ratio if not field.faster(field.first, way)]
    equal = [way for way in open_ if field.decisions[way, field.first].equivalent]
    where = f"with {Size(field.size)} " if named else ""
    if open_ and len(equal) < len(open_):
        unsure = ", ".join(way for way in open_ if way not in equal)
        return f"{where}{field.first} is fastest, not shown against {unsure}"
    if equal:
        return f"{where}{', '.join([field.first, *equal])} are equally fast"
    ratio = field.decisions[by_ratio[0], field.first].ratio
    told = f"{by_ratio[0]} takes {number(ratio.value)} times as long ({interval(ratio)})"
    return f"{where}{field.first} is best, {told}"


def _ratio(field: WriterComparison, way: str) -> float:
    return field.decisions[way, field.first].ratio.value


def _crossings(fields: Sequence[WriterComparison]) -> Iterator[str]:
    """Yield where a way, shown to be faster at a size, is shown to be slower at a larger one.

    Of the ways that are the fastest at some size.
    """
    leading = dict.fromkeys(field.first for field in fields)
    for one, other in combinations(leading, 2):
        shown = [f for f in fields if f.faster(one, other) or f.faster(other, one)]
        for field, then in pairwise(shown):
            if field.faster(one, other) == then.faster(one, other):
                continue
            before, after = (one, other) if field.faster(one, other) else (other, one)
            at, later = (f.decisions[before, after].ratio.value for f in (field, then))
            near = crossing_of((field.size, then.size), (at, later))
            yield (
                f"{before} and {after} cross between {Size(field.size)} and "
                f"{Size(then.size)}, near {Size(round(near))}"
            )
