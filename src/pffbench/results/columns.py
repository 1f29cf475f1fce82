"""Tables of a summary: their columns, titles and footnotes.

A column is declared once, with its heading, its line in the legend and its cells; the terminal,
`summary.md` and the page show the same ones. A workload brings columns of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Literal

import msgspec

from pffbench.backends.inspection import codec_words
from pffbench.phases import MOVING, WAITING
from pffbench.record.run_json import RunRecord
from pffbench.results.cells import not_in_force, varying
from pffbench.results.names import words
from pffbench.results.phases import PhaseSummary, RankSpread
from pffbench.results.quantities import PHASE_QUANTITIES, Cell, Unit
from pffbench.results.summary import (
    AMPLIFICATIONS,
    CaseSummary,
    Summary,
    amplification,
    compression_ratio,
)
from pffbench.text import counted, value_text, without_digests
from pffbench.units import Size, significant
from pffbench.workloads.base import CountColumn, Workload
from pffbench.workloads.registry import is_workload, workload

_MIB = 2**20
#: Ratio of the slowest rank to the middle one from which on it is reported.
_APART = 1.2
#: In a collective call: fraction of time by which a rank is idler than the median rank, and
#: fraction of the repetitions in which it is the same one, from which on it is reported.
_IDLE, _USUALLY = 0.2, 0.6
#: Phases checked for a slow rank: those that move data, and those that wait for devices.
_WATCHED = (*MOVING, *WAITING)
Part = Literal["case", "write", "update", "read"]
_PARTS: tuple[Part, ...] = ("write", "update", "read")
#: Threshold above which times are written in seconds.
_LONG = 10.0
#: Keys of a title whether they set a group apart or not.
_NAMED = ("backend", "workload", "dtype", "source", "durability", "cache")


class Column(msgspec.Struct, frozen=True):
    """A column of the table of a comparison."""

    #: Heading of the column, with the unit.
    heading: str
    #: Subject of the column: a narrow terminal shows writing and reading one below the other.
    part: Part
    #: Returns the cell of a case.
    cell: Callable[[CaseSummary], Cell]
    #: Explanation below the tables; empty where the heading says it.
    legend: str = ""


def columns_of(cases: Sequence[CaseSummary]) -> list[Column]:
    """Return the columns that suit a comparison."""
    found = [*_columns_of_cases()]
    for part in _PARTS:
        found += _columns_of_counts(cases, part)
        found += _columns_of_workload(cases, part)
        if any(f"{part}_total" in case.phases for case in cases):
            found += _columns_of_total(cases, part)
            found += footprint_columns(cases, part)
    return found


def _columns_of_cases() -> Iterator[Column]:
    """Yield the columns that name the cases, and the number of repetitions."""
    yield Column("", "case", lambda case: Cell(case.label))
    legend = "n: rounds; times are medians of the slowest rank, low–high their 95 % interval"
    yield Column("n", "case", _repetitions, legend)


def _repetitions(case: CaseSummary) -> Cell:
    """Return the number of repetitions that count; of an invalid case none does."""
    return Cell("INVALID" if case.invalid else str(case.repetitions))


def _columns_of_counts(cases: Sequence[CaseSummary], part: Part) -> Iterator[Column]:
    """Yield the columns of what was counted in addition to times."""
    counts = [case.counts for case in cases]
    for movers, phase, counter in _MOVERS:
        # Of interest only where some ranks move nothing by calls of their own.
        some = (0 < case.counts.get((phase, counter), 0) < case.ranks for case in cases)
        if phase == part and any(some):
            yield Column(movers, part, partial(_counted, phase, counter, 1), _MOVERS_LEGEND)
    if part not in ("write", "read"):
        return
    if any(("write", "stretches") in found for found in counts):
        calls = partial(_counted, part, f"{part}_calls", 1)
        yield Column(f"{part} calls", part, calls, _CALLS_LEGEND)
    if part == "write" and any(map(compression_ratio, cases)):
        yield Column("ratio", part, lambda case: _number(compression_ratio(case), "{:.4g}"))
    for heading, counter in AMPLIFICATIONS.items():
        known = any(amplification(case, "touched_bytes", part) is not None for case in cases)
        if known and (part == "read" or heading == "×touched"):
            yield Column(heading, part, partial(_amplified, part, counter))
    if part == "read" and any(("read", "decodes_counted") in found for found in counts):
        yield Column("decodes", part, partial(_counted, part, "decodes_counted", 1))


#: The ranks that move data by calls of their own: heading, phase and counter.
_MOVERS = (("writers", "write", "writing_ranks"), ("readers", "read", "reading_ranks"))
_MOVERS_LEGEND = "writers, readers: ranks that move the data by calls of their own, counted"
_CALLS_LEGEND = (
    "write calls, read calls: system calls of all ranks in phases write and read, counted"
)


def workload_of(case: CaseSummary) -> Workload | None:
    """Return the workload of a case; None where the package that brings it is not installed."""
    name = str(case.parameters.get("workload", ""))
    return workload(name) if is_workload(name) else None


def _columns_of_workload(cases: Sequence[CaseSummary], part: Part) -> Iterator[Column]:
    """Yield the columns that the workload of a comparison brings, where they have a number."""
    found = workload_of(cases[0])
    for column in found.columns if found else ():
        if column.part != part:
            continue
        if isinstance(column, CountColumn):
            if any((column.phase, column.counter) in case.counts for case in cases):
                cell = partial(_counted, column.phase, column.counter, column.unit)
                yield Column(column.heading, part, cell, column.legend)
        elif any(column.phase in case.phases for case in cases):
            unit = column.unit(unit_of(cases, f"{part}_total").name)
            cell = partial(_of_phase, _TIMES[column.per](unit), column.phase)
            yield Column(f"{column.heading} {unit}", part, cell, column.legend)


#: How a column of a workload shows the time of a phase, in a unit.
_TIMES: dict[str, Callable[[str], Callable[[PhaseSummary], Cell]]] = {
    "case": lambda unit: Unit(unit).time,
    "array": lambda unit: Unit(unit).each_array,
    "call": lambda unit: Unit(unit).each_call,
}


def unit_of(cases: Sequence[CaseSummary], phase: str) -> Unit:
    """Return the most readable unit for the times of a phase."""
    medians = [case.phases[phase].seconds.median for case in cases if phase in case.phases]
    return Unit("s" if max(medians, default=0.0) >= _LONG else "ms")


def _columns_of_total(cases: Sequence[CaseSummary], part: Part) -> Iterator[Column]:
    """Yield the columns of writing, or of reading, as a whole."""
    total = f"{part}_total"
    unit = unit_of(cases, total)
    phases = [case.phases[total] for case in cases if total in case.phases]
    for table in (quantity.table for quantity in PHASE_QUANTITIES if quantity.table):
        if any(table.cell(unit, phase).text for phase in phases):
            cell = partial(_of_phase, partial(table.cell, unit), total)
            heading = table.heading.format(part=part, unit=unit.name)
            yield Column(heading, part, cell, table.legend)


def _mostly_threaded(cases: Sequence[CaseSummary]) -> bool:
    """Return whether most formats of a comparison have threads of their own, as those of Zarr.

    Then the files, memory and threads that a way takes tell as much of it as its time.
    """
    formats = [case for case in cases if not case.raw]
    return 2 * sum(1 for case in formats if ("write", "threads") in case.counts) > len(formats)


def footprint_columns(cases: Sequence[CaseSummary], part: Part) -> list[Column]:
    """Return the columns of what writing, or reading, takes in addition to time."""
    if part == "update" or not _mostly_threaded(cases):
        return []
    legend = (
        "threads: those of a rank that ran; +MiB: memory that the transfer added to a rank, at "
        "least; inodes: files and directories"
    )
    found = [
        Column("threads", part, partial(_of_a_rank, part, "threads", 1), legend),
        Column("+MiB", part, partial(_of_a_rank, part, "memory_added", _MIB), legend),
    ]
    if part == "write":
        found += [
            Column("files", part, partial(_on_disk, "files")),
            Column("inodes", part, partial(_on_disk, "inodes"), legend),
        ]
    return found


def _of_phase(tell: Callable[[PhaseSummary], Cell], phase: str, case: CaseSummary) -> Cell:
    """Return a number of a phase; none for an invalid case, which must not be compared."""
    if case.invalid:
        return Cell()
    found = case.phases.get(phase)
    return Cell() if found is None else tell(found)


def _number(value: float | None, form: str) -> Cell:
    return Cell() if value is None else Cell(form.format(value))


def _counted(phase: str, counter: str, unit: float, case: CaseSummary) -> Cell:
    """Return a counter of a phase, over all ranks together, in a unit."""
    amount = case.counts.get((phase, counter))
    return Cell() if amount is None else Cell(significant(amount / unit))


def _of_a_rank(phase: str, counter: str, unit: float, case: CaseSummary) -> Cell:
    """Return a counter of a phase, the mean over ranks, in a unit."""
    return _counted(phase, counter, unit * case.ranks, case)


def _on_disk(what: Literal["files", "inodes"], case: CaseSummary) -> Cell:
    return Cell() if case.disk is None else Cell(str(getattr(case.disk, what)))


def _amplified(part: Literal["read", "write"], counter: str, case: CaseSummary) -> Cell:
    return _number(amplification(case, counter, part), "{:.3g}")


def notes(cases: Sequence[CaseSummary]) -> Iterator[str]:
    """Yield the lines below the table of a group: storage, maps, and what is not in force."""
    yield from dict.fromkeys(filter(None, map(_stored, ordered(cases))))
    maps = dict.fromkeys(case.entry.transfer_facts.get("stretches") for case in ordered(cases))
    yield from (f"map {text}" for text in maps if text)
    for case in ordered(cases):
        if ignored := not_in_force(case.entry):
            yield f"not in force: {ignored} ({case.label})"
        if case.invalid:
            yield f"INVALID, takes part in nothing: {case.label}: {case.invalid}"


def _stored(case: CaseSummary) -> str:
    """Return the storage layout of the arrays of a format; empty for raw bytes."""
    stored, disk = case.entry.stored_as, case.disk
    if case.raw or case.invalid or stored is None or disk is None:
        return ""
    parts = [
        f"chunks {value_text(stored.chunks)}" if stored.chunks else "contiguous",
        f"codec {codec_words(stored.codec)}",
        f"fill {stored.fill}",
        *(f"{key} {value}" for key, value in stored.more.items()),
        f"{Size(disk.stored)} in {counted(disk.files, 'file')}",
        *case.entry.notes,
    ]
    return f"{case.label}: {', '.join(parts)}"


def title(cases: Sequence[CaseSummary], summary: Summary) -> str:
    """Return the subject of a group in one line: what sets it apart, and the amount of data."""
    first, p = cases[0], cases[0].parameters
    peers = [group[0].keys for group in summary.groups.values()]
    inside = varying([case.keys for case in cases])
    apart = [key for key in varying(peers) if key not in (*inside, *_NAMED)]
    named = [w for w in words(first.keys, apart) if w not in words(first.keys, ())]
    arrays = counted(first.entry.cost.arrays, "array")
    size = f"{Size(first.nbytes or first.read_bytes)} in {arrays}"
    until = f"written until {p['durability']}, cache {p['cache']}"
    data = f"{size} of {p['dtype']} ({p['source']})"
    return f"{p['workload']}: {', '.join([*named, data, counted(first.ranks, 'rank'), until])}"


def legends(summary: Summary) -> list[str]:
    """Return the explanations of the headings that occur."""
    columns = [column for group in summary.timed_groups.values() for column in columns_of(group)]
    return list(dict.fromkeys(column.legend for column in columns if column.legend))


def ordered(cases: Sequence[CaseSummary]) -> list[CaseSummary]:
    """Return formats first, by their names, raw bytes last."""
    return sorted(cases, key=lambda case: (case.raw, case.backend, case.label))


def details(summary: Summary) -> list[str]:
    """Return further information about a run, in addition to its answer."""
    record = summary.record
    count = sum(len(case.phases) for case in summary.cases)
    warned = [p for c in summary.cases for p in c.phases.values() if p.warnings]
    texts = [_floor(record), *_memory(record), *_imbalance(summary), *_waited_for(summary)]
    texts += [f"remark: {remark}" for remark in record.remarks]
    texts += [f"cases stopped early: {why}" for why in record.stops]
    texts += [f"left out: {one.label or one.case}: {one.reason}" for one in record.left_out]
    if warned:
        codes = sorted({w.code for p in warned for w in p.warnings})
        named = ", ".join(codes).replace("_", " ")
        texts.append(f"notes on {len(warned)} of {count} phases: {named}")
    texts += [f"INVALID: {reason}" for reason in record.reasons]
    return [without_digests(text) for text in texts]


def _floor(record: RunRecord) -> str:
    """Describe the overhead of the harness, and the speed of memory."""
    floor = record.floor
    rate = floor.memory_copy_bytes_per_second
    copy = f"; all ranks together copy {Size(rate)}/s in memory" if rate else ""
    clock = "the slowest rank" if record.clock == "own" else "all ranks together"
    return (
        f"floor: an empty phase takes {floor.own * 1e6:.3g} µs on a rank and "
        f"{floor.synced * 1e6:.3g} µs until all have ended; job times are those of {clock}{copy}"
    )


def _memory(record: RunRecord) -> Iterator[str]:
    """Compare the largest case's data on a node with the node's memory."""
    totals = [host.get("memory_bytes") for host in record.provenance.get("hosts", [])]
    known = [total for total in totals if isinstance(total, int)]
    if not known or not record.cases:
        return
    largest = max(case.cost.nbytes for case in record.cases.values())
    most = max(record.topology.ranks_per_node) / record.ranks
    data = Size(largest * most)
    yield (
        f"data: at most {data} on a node with {Size(min(known))} of memory "
        f"({data / min(known):.1%}): what is not synced or dropped stays in memory"
    )


def _watched(summary: Summary) -> Iterator[tuple[CaseSummary, str, RankSpread]]:
    """Yield the phases of all cases in which slow ranks are looked for, with their ranks."""
    for case in summary.cases:
        for phase in case.phases.values():
            is_long = not phase.warned("below_resolution")
            if phase.phase in _WATCHED and phase.ranks is not None and is_long:
                yield case, phase.phase, phase.ranks


def _imbalance(summary: Summary) -> Iterator[str]:
    """Describe the phase with the largest lag of the slowest rank."""
    lagging = [found for found in _watched(summary) if found[2].imbalance >= _APART]
    if lagging:
        case, phase, ranks = max(lagging, key=lambda f: f[2].imbalance)
        yield (
            f"largest rank imbalance: {phase} of {case.label}, "
            f"slowest/median {ranks.imbalance:.2g}; usually rank {ranks.slowest_rank} "
            f"({ranks.slowest_share:.0%} of repetitions), host {ranks.slowest_host} "
            f"({ranks.host_share:.0%})"
        )


def _waited_for(summary: Summary) -> Iterator[str]:
    """Describe the collective call in which the ranks most likely wait for one of them."""
    found = [
        (case, phase, ranks)
        for case, phase, ranks in _watched(summary)
        if case.parameters.get("transfer") == "collective"
        if ranks.idle >= _IDLE and ranks.idlest_share >= _USUALLY
    ]
    if found:
        case, phase, ranks = max(found, key=lambda f: f[2].idle)
        yield (
            f"collective {phase} of {case.label}: the ranks wait for rank "
            f"{ranks.idlest_rank}, which takes {ranks.idle:.0%} of the time less processor time "
            f"than the median rank ({ranks.idlest_share:.0%} of repetitions)"
        )
