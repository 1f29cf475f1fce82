"""What a reader of the answer must know in addition to the numbers, each with a remedy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median

from pffbench.record.run import MeasuredRun
from pffbench.record.run_json import RunRecord
from pffbench.results.cells import NOT_IN_FORCE, Cell, grouped
from pffbench.results.cold_reads import device_note
from pffbench.results.compare import Comparison
from pffbench.results.judge import FEWEST
from pffbench.results.load import LoadSummary, busy, unsettled
from pffbench.results.names import format_name, gathered, labels, names_apart
from pffbench.results.phases import MUCH_FAULTED
from pffbench.results.rerun import budget_for, larger
from pffbench.results.words import listed, number
from pffbench.text import abridged, counted

#: Times that add up to so many times what their medians say are reported.
_APART = 1.10
#: A round so many times above the median is named with them.
_SLOW = 1.5


def cautions(
    run: MeasuredRun, cells: Sequence[Cell], formats: Sequence[Comparison], load: LoadSummary
) -> Iterator[str]:
    """Yield the sentences.

    Parameters
    ----------
    run : MeasuredRun
        The run.
    cells : sequence of Cell
        Its cells.
    formats : sequence of Comparison
        The formats of the answer, compared with the one to use.
    load : LoadSummary
        The use of the machine by others.
    """
    yield from missing(run, cells)
    yield from _too_short(run, cells)
    yield from _without_effect(cells)
    for some in grouped(formats, lambda one: one.cells[0][0].keys["column"]).values():
        yield from _sums(some)
    yield from _reads(run)
    yield from filter(None, [device_note(run)])
    yield from (f"{text}." for text in unsettled(load))
    if run.record.accept_busy:
        found = (text.partition(";")[0] for text in busy(load))
        yield from (f"Accepted, as asked: {text}." for text in found)


def missing(run: MeasuredRun, cells: Sequence[Cell]) -> Iterator[str]:
    """Yield what a run did not measure: cases left out, limits, formats that failed."""
    yield from _not_measured(run, cells)
    yield from (f"Limited: {text}." for text in run.record.limits)
    yield from _absent(run)


def _not_measured(run: MeasuredRun, cells: Sequence[Cell]) -> Iterator[str]:
    """Name the cases that were left out, and those with too few rounds to be compared."""
    record = run.record
    limited = [one for one in record.left_out if one.limit]
    known = tuple(record.limits)
    others = [
        one
        for one in record.left_out
        if not one.limit and not any(text.endswith(f": {one.reason}") for text in known)
    ]
    if others:
        backends = dict.fromkeys(format_name(one.case.partition(".")[0]) for one in others)
        reasons = list(dict.fromkeys(one.reason for one in others))
        yield (
            f"Not measured: {counted(len(others), 'case')} of {listed(list(backends))}, because "
            f"{abridged(reasons, 1)}."
        )
    rounds = {cell.case: len(cell.seconds) for cell in cells}
    few = [case for case, n in rounds.items() if n < FEWEST <= max(rounds.values())]
    texts = []
    if limited:
        texts.append(f"Not measured: {gathered(one.label or one.case for one in limited)}")
    if few:
        names = names_apart(record.cases, few).values()
        texts.append(f"In fewer than {FEWEST} rounds: {gathered(names)}")
    if texts:
        yield f"{'. '.join(texts)}{_too_little_time(record)}."


def _too_little_time(record: RunRecord) -> str:
    """Return that the time was too short, and the budget that holds all cases."""
    budget = record.experiment.get("time_budget")
    if not budget or not record.time_needed:
        return ""
    enough = budget_for(record.time_needed)
    job = any(record.provenance.get(name) for name in ("slurm", "flux"))
    also = ", or a longer time limit of the job" if job else ""
    return (
        f", because the time budget of {budget:g} s is too short. --set time_budget={enough} holds "
        f"all{also}"
    )


def _absent(run: MeasuredRun) -> Iterator[str]:
    """Report the formats that take no part in some comparison, since their case failed."""
    entries = run.record.cases.values()
    for backend in dict.fromkeys(entry.backend for entry in entries):
        own = [entry for entry in entries if entry.backend == backend]
        out = [entry for entry in own if entry.excluded and not entry.unsafe]
        if out:
            often = "" if len(out) == len(own) else f" in {len(out)} of {len(own)} cases"
            yield f"{format_name(backend)} is missing{often}: {out[0].excluded}."


def _too_short(run: MeasuredRun, cells: Sequence[Cell]) -> Iterator[str]:
    """Report the cases that take no part, since the clock does not resolve their times."""
    formats = [cell for cell in cells if not cell.raw]
    short = [cell for cell in formats if cell.median < run.resolution]
    if short and len(short) < len(formats):
        words, _ = larger(run.record, [cell.case for cell in short], 1)
        yield f"{len(short)} of {len(formats)} times are too short to be measured: {words}."


def _without_effect(cells: Sequence[Cell]) -> Iterator[str]:
    """Report the ways whose hints or stripes are not in force, which takes them out."""
    found = {cell.case: cell.keys for cell in cells if not cell.raw}
    names = labels(found)
    for case, keys in found.items():
        if NOT_IN_FORCE in keys:
            yield f"{names[case]} takes no part: not in force: {keys[NOT_IN_FORCE]}."


def _sums(formats: Sequence[Comparison]) -> Iterator[str]:
    """Report a format that is chosen by usual rounds, but whose times in a column add up to more.

    The choice by usual rounds is safe. A bound on sums would not be: a few slow rounds decide them.
    """
    apart = [(one, by_sum) for one in formats if (by_sum := _by_sum(one)) >= _APART]
    apart = [both for both in apart if both[1] >= _APART * both[0].verdict.ratio.inverse.value]
    if not apart:
        return
    first = apart[0][0]
    others = [f"{number(by_sum)} times as slow as {format_name(c.value)}" for c, by_sum in apart]
    slow = [text for one, _ in apart for _, base in one.cells if (text := slow_rounds(base))]
    yield (
        f"By the sum of the times {format_name(first.base)} is {listed(others)} "
        f"({first.cells[0][0].keys['column']}){f': {slow[0]}' if slow else ''}."
    )


def _by_sum(found: Comparison) -> float:
    """Return the summed time of the base over the one of the value, averaged over all cells."""
    ratios = [math.log(_total(base, cell) / _total(cell, base)) for cell, base in found.cells]
    return math.exp(sum(ratios) / len(ratios)) if ratios else 1.0


def _total(cell: Cell, other: Cell) -> float:
    common = cell.seconds.keys() & other.seconds.keys()
    return sum(cell.seconds[r] for r in common) or 1.0


def slow_rounds(cell: Cell) -> str:
    """Describe the rounds far above the median, such as those of a second mode."""
    middle = median(cell.seconds.values())
    slow = sorted(value / middle for value in cell.seconds.values() if value > _SLOW * middle)
    if not slow:
        return ""
    ends = "–".join(dict.fromkeys(f"{value:.2g}" for value in (slow[0], slow[-1])))
    return f"{len(slow)} of {len(cell.seconds)} rounds took {ends} times the median"


def _reads(run: MeasuredRun) -> Iterator[str]:
    """Report reads whose time is not the library's, or whose source is not proved."""
    unproved: dict[str, None] = {}
    faulted: dict[str, None] = {}
    for case, repetitions in run.by_case.items():
        reads = [one for one in repetitions if one.read and not one.warmup]
        entry = run.record.cases[case]
        if not reads or entry.raw or entry.excluded:
            continue
        name = format_name(entry.backend)
        if any(one.read and one.read.cache == "unproved" for one in reads):
            unproved[name] = None
        new = [(one.read.new_memory or 0) for one in reads if one.read]
        moved = run.bytes_moved(case, "read")
        if moved and median(new) >= MUCH_FAULTED * moved:
            faulted[name] = None
    if faulted:
        yield (
            f"Half or more of the bytes went through memory that {listed(list(faulted))} took "
            "again for each read: the allocator is part of the time. Use smaller arrays or chunks."
        )
    if unproved:
        yield (
            f"The state of the page cache was not proved for {listed(list(unproved))}. Use cache: "
            "dropped, or read in another job (cache: separate)."
        )
