"""How many writer ranks, and how many files, are best; from which size on another number is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
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
#: What cases of different sizes differ in.
_SIZES = frozenset({"shape", "shape_per_rank", "steps"})


class _Question(NamedTuple):
    """A number that is asked for.

    Parameters
    ----------
    title : str
        What is counted.
    keys : frozenset of str
        What cases with different numbers differ in.
    way : callable
        Says the number, by the parameters of a case.
    layout : str
        The layout that one of the cases has at least; empty where it does not matter.
    """

    title: str
    keys: frozenset[str]
    way: Callable[[Mapping[str, Any]], str]
    layout: str = ""


class _Series(NamedTuple):
    """The common settings of the cases of a sentence: the total, and all but number and size."""

    total: str
    label: str
    work: str


def best_number_lines(summary: Summary) -> Iterator[str]:
    """Yield which number is best, and the sizes between which the best changes.

    A sentence for each total of cases that differ in their writer ranks alone, or in their files:
    those of groups of ranks, other layouts, and writers. Where an experiment sweeps sizes as well,
    it holds all of them, and the crossings.
    """
    for question in _QUESTIONS:
        yield from _lines(summary, question)


def _lines(summary: Summary, question: _Question) -> Iterator[str]:
    design = Design.of_experiment(summary.record.experiment)
    for series, fields in compare_ways(list(_candidates(summary, question)), design).items():
        told = [_best(field, named=len(fields) > 1) for field in fields]
        told += [
            f"{c.before} and {c.after} cross between {Size(c.below)} and {Size(c.above)}, near "
            f"{Size(round(c.near))}"
            for c in crossings(fields)
        ]
        yield f"{question.title}, {series.label}, {_TOTALS[series.total]}: {'; '.join(told)}"


def _candidates(summary: Summary, question: _Question) -> Iterator[WaysAtSize[_Series]]:
    """Yield the cases that differ in their number alone, by way, where there are several ways."""
    shortest = resolution_of(summary.record)
    for members in cases_alike(summary, question.keys):
        ways = {question.way(case.parameters): case for case in members}
        asked = not question.layout or question.layout in {c.sample.layout for c in members}
        for total in _TOTALS if len(ways) > 1 and asked else ():
            if all(_known(case, total, shortest) for case in members):
                work = work_of(members[0], question.keys | _SIZES)
                times = {way: case.phases[total].by_block for way, case in ways.items()}
                series = _Series(total, _label(members[0], question.keys), work)
                yield WaysAtSize(series, members[0].sample.backend, members[0].nbytes, times)


def _known(case: CaseSummary, total: str, shortest: float) -> bool:
    return total in case.phases and case.phases[total].seconds.median >= shortest


def _label(case: CaseSummary, asked: frozenset[str]) -> str:
    """Name what cases of a sentence have in common and others have not, such as their codec."""
    sample = case.sample
    told = [sample.backend, sample.transfer, sample.settings, sample.environment]
    for word in re.split(r" (?=\w+=)", case.variant):
        key, _, value = word.partition("=")
        if key not in asked | _SIZES | {"environment"} and value != "None":
            told.append(word)
    return " ".join(filter(None, told))


def files_of(parameters: Mapping[str, Any]) -> str:
    """Say in how many files the data of a case are, and how, by its parameters."""
    layout, group = parameters["layout"], parameters.get("group")
    if layout == "file_per_process":
        return "a file per rank"
    if group is None:
        writers = (
            writers_of(parameters) if parameters.get("rearrange", "none") != "none" else layout
        )
        return f"1 file ({writers})"
    return f"{_counted(group, 'file')} ({parameters.get('within') or 'shared'})"


def _counted(number: Mapping[str, Any], noun: str) -> str:
    """Say a number per node, or in all, such as ``2 files per node``."""
    told = {key: count for key, count in number.items() if count is not None}
    (kind, count), *_ = told.items()
    return f"{count} {noun}{'' if count == 1 else 's'}{' per node' if kind == 'per_node' else ''}"


def writers_of(parameters: Mapping[str, Any]) -> str:
    """Say who writes, by the parameters of a case."""
    how, writers = parameters.get("rearrange", "none"), parameters.get("writers", "all")
    if how == "none":
        return "each rank for itself"
    if not isinstance(writers, dict):
        return f"all ranks ({how})"
    return f"{_counted(writers, 'writer')} ({how})"


_OF_WRITERS = frozenset({"writers", "rearrange"})
_QUESTIONS = (
    _Question("Writer ranks", _OF_WRITERS, writers_of),
    _Question(
        "Files", _OF_WRITERS | {"layout", "group", "within"}, files_of, layout="file_per_group"
    ),
)


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
    told = f"{by_ratio[0]} takes {number(ratio.value)} times as long {interval(ratio)}"
    return f"{where}{field.first} is best, {told}"


def _ratio(field: WaysCompared, way: str) -> float:
    return field.decisions[way, field.first].ratio.value
