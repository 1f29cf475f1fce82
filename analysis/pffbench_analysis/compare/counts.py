"""Counts of two runs, compared exactly: calls, bytes, chunks; no statistics and no idle machine."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from rich.console import Console

from pffbench.case import itemsize
from pffbench.errors import UserError
from pffbench.grouping import grouped
from pffbench.observe.process_counters import COUNTERS
from pffbench.phases import LAST_PHASE
from pffbench.record.run import MeasuredRun
from pffbench.record.run_json import CaseEntry
from pffbench.results.cells import keys_of, varying
from pffbench.results.counts import RACED, raced_calls
from pffbench.results.names import UNSAID, labels, value_name
from pffbench.results.summary import load
from pffbench.run.output import make_console, print_json
from pffbench.text import counted, one_line
from pffbench_analysis.compare.sides import Side, match

T = TypeVar("T")

#: Counts of a case: by phase and counter, all values of the repetitions that count.
_Counts = Mapping[tuple[str, str], Sequence[float]]
#: A run with the counts of its cases, by name.
_Counted = tuple[MeasuredRun, Mapping[str, _Counts]]
#: Beginning of the names of counters of system calls, which both runs have or none.
_CALLS = "call_"
_JSON_VERSION = 1
#: Counters that the state of the machine changes; all others are the same in every repetition of a
#: case. Those of a process have what MPI reads and writes, and others follow from them. Libraries
#: with threads close files after a call has returned, within its phase or not.
_VARIABLE = frozenset(
    {
        *COUNTERS, "threads", "memory_added", "writing_ranks", "reading_ranks", "decodes_counted",
        "call_close",
    }
)  # fmt: skip


class CountDifference(msgspec.Struct, frozen=True):
    """A counter of a case whose values differ between two runs."""

    #: Label of the case.
    case: str
    #: What was counted, over all ranks.
    phase: str
    counter: str
    #: Smallest and largest value of a repetition.
    base: tuple[float, float]
    new: tuple[float, float]
    #: Number of chunks, or of arrays, that the phase moves or defines; 1 where it is not known.
    units: int = 1
    #: ``chunk`` or ``array``.
    unit: str = ""

    @property
    def amount(self) -> float:
        """How far the ranges of both runs are apart."""
        return max(self.new[0] - self.base[1], self.base[0] - self.new[1])

    @property
    def verdict(self) -> str:
        """``more`` or ``fewer``: how the new run differs from the base."""
        return "more" if self.new[1] > self.base[1] else "fewer"

    def __str__(self) -> str:
        each = ""
        if self.units > 1:
            few, many = (f"{values[0] / self.units:.4g}" for values in (self.base, self.new))
            each = f" ({few} → {many} for each {self.unit})"
        change = f"{_range(self.base)} → {_range(self.new)}{each}"
        return f"{self.verdict}: {self.case}: {self.phase}: {_words(self.counter)} {change}"


class CountComparison(msgspec.Struct, frozen=True):
    """The counts of two runs."""

    #: The runs.
    base: str
    new: str
    #: Number of cases that both have, and of counts compared.
    cases: int
    counts: int
    #: Those that differ, the largest factor first.
    differences: tuple[CountDifference, ...]
    #: Cases that only one run has, each with the reason.
    alone: tuple[str, ...]
    #: Most calls of a repetition that are not compared, because their number depends on timing:
    #: ranks or threads made a directory at the same time.
    raced: int = 0


def compare_counts(
    base: MeasuredRun, new: MeasuredRun, across: Sequence[str] = ()
) -> CountComparison:
    """Compare the counts of the cases that two runs share.

    A count that varies between the repetitions of a run differs where the two ranges are disjoint.

    Raises
    ------
    UserError
        A run has no counts, or only one has those of system calls, or the ranks differ in number.
    """
    if base.record.ranks != new.record.ranks:
        raise UserError(
            f"{base.directory} has {counted(base.record.ranks, 'rank')}, {new.directory} has "
            f"{new.record.ranks}; counts of equal numbers of ranks are compared"
        )
    mine, others = counts_of(base), counts_of(new)
    traced = [any(n.startswith(_CALLS) for c in of.values() for _, n in c) for of in (mine, others)]
    if traced[0] != traced[1]:
        lacking = (new if traced[0] else base).directory
        raise UserError(f"{lacking} has no counts of system calls: run it with counters: calls")
    matched, lone = match(Side("old", (base,)), Side("new", (new,)), across)
    pairs = [(case.label, case.old, case.new) for case in matched]
    where = {"old": base.directory, "new": new.directory}
    alone = [f"{one.label}: only in {where[one.which]}: {one.reason}" for one in lone]
    names = str(base.directory), str(new.directory)
    failed = _excluded(base) | _excluded(new)
    return _compared(names, (base, mine), (new, others), pairs, failed, alone)


def compare_environments(run: MeasuredRun) -> list[CountComparison]:
    """Compare the counts of each other environment of a run with those of the first one.

    Raises
    ------
    UserError
        It is a run of one environment, or has no counts.
    """
    first, *others = [*run.record.environments] or [""]
    if not others:
        raise UserError(f"{run.directory} is not a run of several environments; name two runs")
    counts, failed = counts_of(run), _excluded(run)
    own = {name: keys_of(run.record.cases[name]) for name in counts if name.endswith(f"@{first}")}
    named = labels(own)
    return [
        _compared(
            (first, other),
            (run, counts),
            (run, counts),
            [(named[name], name, f"{name.removesuffix(first)}{other}") for name in own],
            failed,
            [],
        )
        for other in others
    ]


def compare_by(run: MeasuredRun, key: str) -> list[CountComparison]:
    """Compare the counts of cases of one run that differ only in a key.

    The first value of the key is the base of all others. Raw transfers are left out.

    Raises
    ------
    UserError
        The run has no counts, or no two cases differ only in the key.
    """
    counts, failed = counts_of(run), _excluded(run)
    alike: dict[str, dict[str, str]] = {}
    values: dict[str, None] = {}
    for name in counts:
        entry = run.record.cases[name]
        if not entry.raw:
            value = keys_of(entry).get(key, "none")
            values[value] = None
            alike.setdefault(_rest(entry, key), {})[value] = name
    named = _names(run, [name for some in alike.values() for name in some.values()], key)
    first, *others = values
    found = []
    for other in others:
        pairs = [(named[some[first]], some[first], some[other])
                 for some in alike.values() if first in some and other in some]  # fmt: skip
        if pairs:
            names = (f"{key} {first}", f"{key} {other}")
            own = run, counts
            found.append(_compared(names, own, own, pairs, failed, []))
    if not found:
        differing = varying([keys_of(run.record.cases[name]) for name in counts], {"workload"})
        keys = f"; cases differ in {', '.join(differing)}" if differing else ""
        raise UserError(f"--by {key}: no two cases of {run.directory} differ only in it{keys}")
    return found


def _names(run: MeasuredRun, cases: Sequence[str], key: str) -> dict[str, str]:
    """Return for each case the words that set it apart, but for one key."""
    keys = {name: keys_of(run.record.cases[name]) for name in cases}
    differing = [k for k in varying(list(keys.values()), {*UNSAID, key}) if "." not in k]
    return {
        name: ", ".join(value_name(k, own[k]) for k in differing if k in own) or run.record.name
        for name, own in keys.items()
    }


def _rest(entry: CaseEntry, key: str) -> str:
    """Return what must be equal in cases that are compared by a key."""
    options = {} if key == "backend" else entry.options
    backend, _, option = key.rpartition(".")
    own = option if backend == entry.backend else ""
    parameters = _without(entry.parameters, key)
    if key == "files":  # its values name the arrays too
        parameters = _without(parameters, "arrays")
    rest = [parameters, _without(options, own)]
    return json.dumps(rest, sort_keys=True, default=str)


def _without(mapping: Mapping[str, T], key: str) -> dict[str, T]:
    return {name: value for name, value in mapping.items() if name != key}


def _compared(
    names: tuple[str, str],
    base: _Counted,
    new: _Counted,
    pairs: Sequence[tuple[str, str, str]],
    failed: Collection[str],
    alone: Sequence[str],
) -> CountComparison:
    """Compare pairs of cases: a label, and the name of the case in each run."""
    (run, mine), (other, theirs) = base, new
    differences: list[CountDifference] = []
    compared = cases = raced = 0
    left = list(alone)
    for label, one, two in pairs:
        if failed and {one, two} & set(failed):
            left.append(f"{label}: it failed")
            continue
        here, there = mine.get(one, {}), theirs.get(two, {})
        cases += 1
        compared += len(here.keys() | there.keys())
        differences += _different(run, one, label, here, there)
        raced = max(raced, raced_calls(run.by_case[one]), raced_calls(other.by_case[two]))
    order = sorted(differences, key=lambda d: -abs(math.log(_factor(d))))
    return CountComparison(*names, cases, compared, tuple(order), tuple(left), raced)


def counts_of(run: MeasuredRun) -> dict[str, _Counts]:
    """Return the exact counts of a run.

    Returns
    -------
    dict of str to mapping
        By case, then by phase and counter: the values of its repetitions. The removal of the files
        is left out, because pffbench does it and not the library.

    Raises
    ------
    UserError
        It has none.
    """
    found = {
        case: grouped(
            ((count.phase, count.name), count.total)
            for one in repetitions
            if not one.warmup
            for count in one.counts
            if count.name not in _VARIABLE
            and not count.name.startswith(RACED)
            and count.phase != LAST_PHASE
        )
        for case, repetitions in run.by_case.items()
    }
    if not any(found.values()):
        raise UserError(f"{run.directory} has no counts: run it with --set counters=calls")
    return {case: counts for case, counts in found.items() if counts}


def _excluded(run: MeasuredRun) -> frozenset[str]:
    """Return the cases that failed, or read something wrong."""
    return frozenset(name for name, entry in run.record.cases.items() if entry.excluded)


def _different(
    run: MeasuredRun, case: str, label: str, base: _Counts, new: _Counts
) -> Iterator[CountDifference]:
    for phase, counter in sorted(base.keys() | new.keys()):
        a, b = (of.get((phase, counter), [0.0]) for of in (base, new))
        low, high = (min(a), max(a)), (min(b), max(b))
        if low[1] < high[0] or high[1] < low[0]:
            units, unit = _units(run, case, phase)
            yield CountDifference(label, phase, counter, low, high, units, unit)


def _units(run: MeasuredRun, case: str, phase: str) -> tuple[int, str]:
    """Return the number of chunks that a phase moves, or else of the arrays that it defines."""
    entry, moved = run.record.cases[case], run.by_case[case][-1].by_phase.get(phase)
    if moved is None:
        return 1, ""
    shape = entry.stored_as.chunks if entry.stored_as else None
    chunk = math.prod(shape or [0]) * itemsize(entry.parameters.get("dtype") or "float32")
    if chunk and moved.bytes and moved.bytes % chunk == 0:
        return moved.bytes // chunk, "chunk"
    return entry.cost.arrays, "array"


def _factor(difference: CountDifference) -> float:
    return (1 + difference.new[1]) / (1 + difference.base[1])


def _words(counter: str) -> str:
    kind, _, name = counter.partition("_")
    return {"call": f"calls of {name}", "bytes": f"bytes of {name}"}.get(kind, counter)


def _range(values: tuple[float, float]) -> str:
    low, high = (f"{value:,.0f}" for value in values)
    return low if low == high else f"{low}–{high}"


def report_counts(
    runs: Sequence[str | Path],
    *,
    across: Sequence[str] = (),
    by: str | None = None,
    fail_if_more: bool = False,
    as_json: bool = False,
    console: Console | None = None,
) -> int:
    """Compare the counts of new runs with those of the first one, and print the differences.

    Parameters
    ----------
    runs : sequence of str or Path
        Results directories, the base first; or one, of several environments or with `by`.
    across : sequence of str
        Parameters or options in which cases may differ.
    by : str, optional
        The key in whose values cases of one run are compared.
    fail_if_more : bool
        Whether more of anything, or a case of the base that is missing, makes the status 1.
    as_json : bool
        Whether to print JSON in place of text.
    console : Console, optional
        Console to print on.

    Returns
    -------
    int
        Exit status.
    """
    base, *new = (load(run).run for run in runs)
    if by is not None:
        if new:
            raise UserError("--by compares cases of one run: name one results directory")
        found = compare_by(base, by)
    else:
        found = [compare_counts(base, run, across) for run in new] or compare_environments(base)
    worse = any(d.verdict == "more" for c in found for d in c.differences)
    status = int(fail_if_more and (worse or any(c.alone for c in found)))
    if as_json:
        comparisons = [
            {**msgspec.to_builtins(c), "differences": [_as_data(d) for d in c.differences]}
            for c in found
        ]
        data = {"status": status, "comparisons": comparisons}
        print_json({"format": "pffbench compare --counts", "version": _JSON_VERSION, **data})
        return status
    terminal = console or make_console()
    if fail_if_more:
        terminal.print(
            "FAILED: a count is larger, or a case is not compared"
            if status
            else "PASSED: no count is larger"
        )
    for line in (line for comparison in found for line in _lines(comparison)):
        terminal.print(one_line(line), markup=False, highlight=False, soft_wrap=True)
    return status


def _as_data(difference: CountDifference) -> dict[str, object]:
    return {**msgspec.to_builtins(difference), "verdict": difference.verdict}


def _lines(comparison: CountComparison) -> Iterator[str]:
    yield f"{comparison.base} → {comparison.new}"
    many = len(comparison.differences)
    differ = f"{many} of them {'differ' if many > 1 else 'differs'}" if many else "none differs"
    yield (
        f"{counted(comparison.counts, 'count')} of {counted(comparison.cases, 'case')} were "
        f"compared; {differ}"
    )
    yield from map(str, comparison.differences)
    yield from (f"not compared: {text}" for text in comparison.alone)
    if comparison.raced:
        yield (
            f"up to {counted(comparison.raced, 'more call')} of a repetition, which depend on "
            "timing, were not compared: ranks or threads made a directory at the same time"
        )
