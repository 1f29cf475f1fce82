"""How many writer ranks are best, and from which size of the data on another number is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pffbench.summary.conclusions import interval, number
from pffbench.summary.crossing import (
    WaysAtSize,
    WaysCompared,
    cases_alike,
    compare_ways,
    crossings,
    work_of,
)
from pffbench.summary.headline import Design
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


def writer_lines(summary: Summary) -> Iterator[str]:
    """Yield which number of writer ranks is best, and the sizes between which the best changes.

    A sentence for each total of cases that differ in ``writers`` and ``rearrange`` alone. Where an
    experiment sweeps sizes as well, it holds all of them, and the crossings.
    """
    design = Design.of_experiment(summary.record.experiment)
    for series, fields in compare_ways(list(_candidates(summary)), design).items():
        told = [_best(field, named=len(fields) > 1) for field in fields]
        told += [
            f"{c.before} and {c.after} cross between {Size(c.below)} and {Size(c.above)}, near "
            f"{Size(round(c.near))}"
            for c in crossings(fields)
        ]
        yield f"Writer ranks, {series.label}, {_TOTALS[series.total]}: {'; '.join(told)}"


def _candidates(summary: Summary) -> Iterator[WaysAtSize[_Series]]:
    """Yield the cases that differ in their writers alone, by way, where there are several ways."""
    shortest = resolution_of(summary.record)
    for members in cases_alike(summary, _WAYS):
        ways = {_way(summary.entry(case)["parameters"]): case for case in members}
        for total in _TOTALS if len(ways) > 1 else ():
            if all(_known(case, total, shortest) for case in members):
                work = work_of(summary, members[0], _WAYS | _SIZES)
                times = {way: case.phases[total].by_block for way, case in ways.items()}
                series, nbytes = _Series(total, _label(members[0]), work), members[0].nbytes
                yield WaysAtSize(series, members[0].sample.backend, nbytes, times)


def _known(case: CaseSummary, total: str, shortest: float) -> bool:
    return total in case.phases and case.phases[total].seconds.median >= shortest


def _label(case: CaseSummary) -> str:
    """Name what cases of a sentence have in common and others have not, such as their codec."""
    sample = case.sample
    told = [sample.backend, sample.transfer, sample.settings, sample.environment]
    for word in re.split(r" (?=\w+=)", case.variant):
        key, _, value = word.partition("=")
        if key not in _WAYS | _SIZES | {"environment"} and value != "None":
            told.append(word)
    return " ".join(filter(None, told))


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


def _best(field: WaysCompared, *, named: bool) -> str:
    """Name the best way of a size, with the ratio of the next one and its interval."""
    others = [way for way, first in field.decisions if first == field.first]
    by_ratio = sorted(others, key=lambda way: _ratio(field, way))
    open_ = [way for way in by_ratio if not field.faster(field.first, way)]
    equal = [way for way in open_ if field.decisions[way, field.first].equivalent]
    where = f"with {Size(field.size)} " if named else ""
    if open_ and len(equal) < len(open_):
        unsure = ", ".join(way for way in open_ if way not in equal)
        return f"{where}{field.first} has the smallest median, not decided against {unsure}"
    if equal:
        return f"{where}{', '.join([field.first, *equal])} are equally fast"
    ratio = field.decisions[by_ratio[0], field.first].ratio
    told = f"{by_ratio[0]} takes {number(ratio.value)} times as long ({interval(ratio)})"
    return f"{where}{field.first} is best, {told}"


def _ratio(field: WaysCompared, way: str) -> float:
    return field.decisions[way, field.first].ratio.value
