"""Tables of a summary: their columns, titles and footnotes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Literal

import msgspec

from pffbench.phases import MOVING, WAITING
from pffbench.record.run_json import RunRecord
from pffbench.summary.labels import chunks_apart, comparisons_apart, ignored_of
from pffbench.summary.summary import (
    AMPLIFICATIONS,
    CaseSummary,
    PhaseSummary,
    Summary,
    amplification,
    compression_ratio,
)
from pffbench.text import without_digests
from pffbench.units import Size

_MIB = 2**20
#: Ratio of the slowest rank to the middle one from which on it is reported.
_APART = 1.2
#: In a collective call: fraction of time by which a rank is idler than the median rank, and
#: fraction of the repetitions in which it is the same one, from which on it is reported.
_IDLE, _USUALLY = 0.2, 0.6
#: Phases checked for a slow rank: those that move data, and those that wait for devices.
_WATCHED = (*MOVING, *WAITING)
Part = Literal["case", "write", "update", "read"]
#: Fraction of the raw speed beyond which raw transfers are no limit; less may be noise.
_NO_LIMIT = 1.1


class Column(msgspec.Struct, frozen=True):
    """A column of the table of a comparison.

    Parameters
    ----------
    heading : str
        Heading of the column.
    part : {"case", "write", "update", "read"}
        Subject of the column: a narrow terminal shows writing and reading one below the other.
    cell : callable
        Returns the text for a case.
    """

    heading: str
    part: Part
    cell: Callable[[CaseSummary], str]

    @property
    def is_text(self) -> bool:
        """Whether the column holds words, not numbers."""
        return self.part == "case"


def columns_of(cases: Sequence[CaseSummary]) -> list[Column]:
    """Return the columns that suit a comparison."""
    found = [
        Column("backend", "case", lambda case: case.sample.backend),
        Column("settings", "case", lambda case: "raw" if case.raw else case.sample.settings),
        Column("transfer", "case", lambda case: case.sample.transfer),
    ]
    if any(case.variant for case in cases):
        found.append(Column("variant", "case", lambda case: case.variant))
    found.append(Column("n", "case", lambda case: str(case.repetitions)))
    found += [
        Column(heading, part, partial(_counted, phase, counter, 1))
        for heading, part, phase, counter in _MOVERS
        if any(0 < case.counts.get((phase, counter), 0) < case.sample.ranks for case in cases)
    ]
    if any(("write", "stretches") in case.counts for case in cases):
        found += [
            Column(f"{part} calls", part, partial(_calls, part, f"{part}_calls"))
            for part in _ACCESSES
        ]
    if any(compression_ratio(case) for case in cases):
        found.append(Column("ratio", "write", _compressed))
    if cases[0].sample.workload == "versions":
        found += [
            Column("kept MiB", "write", partial(_counted, "close", "file_bytes", _MIB)),
            Column("reused", "write", partial(_counted, "close", "chunks_reused", 1)),
        ]
    # With many arrays the time per array is relevant, not the rate.
    small = cases[0].sample.workload == "datasets"
    for part in _PARTS:
        total = f"{part}_total"
        if not any(total in case.phases for case in cases):
            continue
        found += [
            Column(f"{phase.partition('_')[0]} µs", part, partial(_told, tell, phase))
            for phase, tell in (_SMALL.get(part, {}) if small else {}).items()
            if any(phase in case.phases for case in cases)
        ]
        if part == "read" and any("inquire" in case.phases for case in cases):
            unit = unit_of(cases, total)
            found += [
                Column(f"{phase} {unit.name}", part, partial(_told, unit.seconds, phase))
                for phase in _STARTING
            ]
        found += _columns_of_total(cases, part)
        found += footprint_columns(cases, part)
    if any("update" in case.phases for case in cases):
        grown = partial(_counted, "update", "grown_bytes", _MIB)
        found.append(Column("grew MiB", "update", grown))
    found += [
        Column(heading, part, partial(_amplified, part, counter))
        for part in _ACCESSES
        for heading, counter in AMPLIFICATIONS.items()
        if part == "read" or heading == "×touched"
        if any(amplification(case, "touched_bytes", part) is not None for case in cases)
    ]
    if any("repack" in case.phases for case in cases):
        unit = unit_of(cases, "repack")
        found.append(Column(f"repack {unit.name}", "write", partial(_told, unit.seconds, "repack")))
    if any(("read", "decodes_counted") in case.counts for case in cases):
        found.append(Column("decodes", "read", _decodes))
    return found


_ACCESSES: tuple[Literal["read", "write"], ...] = ("write", "read")
#: The ranks that move data by calls of their own, shown where not all of them do.
_MOVERS: tuple[tuple[str, Part, str, str], ...] = (
    ("writers", "write", "write", "writing_ranks"),
    ("readers", "read", "read", "reading_ranks"),
)
_PARTS: tuple[Part, ...] = ("write", "update", "read")


#: The phases before a total of workload `startup` that its table has.
_STARTING = ("open", "inquire", "distribute")


class Unit(msgspec.Struct, frozen=True):
    """A unit of time for a column of totals."""

    name: str
    per_second: float

    def seconds(self, found: PhaseSummary) -> str:
        """Return the median."""
        return significant(found.seconds.median * self.per_second)

    def interval(self, found: PhaseSummary) -> str:
        """Return the 95 % interval of the median; of fewer than five values their range."""
        s = found.seconds
        few = math.isnan(s.low)
        low, high = (s.minimum, s.maximum) if few else (s.low, s.high)
        text = f"{significant(low * self.per_second)}–{significant(high * self.per_second)}"
        return f"({text})" if few else text

    def cpu(self, found: PhaseSummary) -> str:
        """Return the processor time of all ranks together."""
        cpu = found.cpu_seconds
        return "" if cpu is None else significant(cpu * self.per_second)

    def new_memory(self, found: PhaseSummary) -> str:
        """Return what new memory takes of the time."""
        seconds = found.new_memory_seconds
        return "" if seconds is None else significant(seconds * self.per_second)


def unit_of(cases: Sequence[CaseSummary], phase: str) -> Unit:
    """Return the most readable unit for the times of a phase."""
    medians = [case.phases[phase].seconds.median for case in cases if phase in case.phases]
    return Unit("s", 1.0) if max(medians, default=0.0) >= _LONG else Unit("ms", 1e3)


#: Threshold above which times are written in seconds.
_LONG = 10.0


def _columns_of_total(cases: Sequence[CaseSummary], part: Part) -> list[Column]:
    """Return the columns of writing, or of reading, as a whole."""
    total = f"{part}_total"
    unit = unit_of(cases, total)
    tell: dict[str, Callable[[PhaseSummary], str]] = {
        f"{part} {unit.name}": unit.seconds,
        "low–high": unit.interval,
        "×best": _ratio,
        "roof": _percent,
        f"cpu {unit.name}": unit.cpu,
        "MiB/s": _rate,
    }
    phases = [case.phases[total] for case in cases if total in case.phases]
    if all(phase.roofline is None for phase in phases):  # no raw transfers to compare with
        del tell["roof"]
    if part == "read" and takes_new_memory(cases):
        tell[f"new mem {unit.name}"] = unit.new_memory
    return [Column(heading, part, partial(_told, told, total)) for heading, told in tell.items()]


def takes_new_memory(cases: Sequence[CaseSummary]) -> bool:
    """Return whether a case takes new memory for a noticeable part of what it reads."""
    reads = [case.phases["read_total"] for case in cases if "read_total" in case.phases]
    return any(phase.faulted and phase.faulted >= _SOME_NEW for phase in reads)


#: Part of the bytes of a read in new memory from which on its cost has a column.
_SOME_NEW = 0.1


def _mostly_threaded(cases: Sequence[CaseSummary]) -> bool:
    """Return whether most formats of a comparison have threads of their own, as those of Zarr.

    Then the files, memory and threads that a way takes tell as much of it as its time.
    """
    formats = [case for case in cases if not case.raw]
    return 2 * sum(1 for case in formats if _THREADS in case.counts) > len(formats)


_THREADS = ("write", "threads")


def footprint_columns(cases: Sequence[CaseSummary], part: Part) -> list[Column]:
    """Return the columns of what writing, or reading, takes in addition to time."""
    if part == "update" or not _mostly_threaded(cases):
        return []
    found = [
        Column("threads", part, partial(_of_a_rank, part, "threads", 1)),
        Column("+MiB", part, partial(_of_a_rank, part, "memory_added", _MIB)),
    ]
    if part == "write":
        found += [
            Column("files", part, lambda case: _whole(case.disk_files)),
            Column("inodes", part, lambda case: _whole(case.disk_inodes)),
        ]
    return found


def _of_a_rank(phase: str, counter: str, unit: float, case: CaseSummary) -> str:
    """Return a counter of a phase, the mean over ranks, in a unit."""
    amount = case.counts.get((phase, counter))
    return "" if amount is None else significant(amount / case.sample.ranks / unit)


def _whole(number: int | None) -> str:
    return "" if number is None else str(number)


def _counted(phase: str, counter: str, unit: float, case: CaseSummary) -> str:
    """Return a counter of a phase, over all ranks together, in a unit."""
    amount = case.counts.get((phase, counter))
    return "" if amount is None else f"{amount / unit:.3g}"


def _calls(phase: str, counter: str, case: CaseSummary) -> str:
    """Return the calls of a phase that the kernel counted, over all ranks together."""
    amount = case.counts.get((phase, counter))
    return "" if amount is None else f"{amount:.0f}"


def _told(tell: Callable[[PhaseSummary], str], phase: str, case: CaseSummary) -> str:
    """Return a number of a phase; none for an invalid case, which must not be compared."""
    if case.invalid:
        return "INVALID" if tell in (_ratio, _each) else ""
    found = case.phases.get(phase)
    return "" if found is None else tell(found)


def _compressed(case: CaseSummary) -> str:
    ratio = compression_ratio(case)
    return "" if ratio is None else f"{ratio:.4g}"


def _decodes(case: CaseSummary) -> str:
    """Return the chunk decodes in reading, and the expected number if it differs."""
    counted = case.counts.get(("read", "decodes_counted"))
    expected = case.counts.get(("read", "decodes_expected"), counted)
    if counted is None or expected is None:
        return ""
    return f"{counted:.0f}" + ("" if counted == expected else f", not {expected:.0f}")


def _amplified(part: Literal["read", "write"], counter: str, case: CaseSummary) -> str:
    times = amplification(case, counter, part)
    return "" if times is None else f"{times:.3g}"


def stored_lines(cases: Sequence[CaseSummary]) -> list[str]:
    """Describe each storage layout of the formats' arrays once."""
    found: dict[str, str] = {}
    for case in ordered(cases):
        if case.raw or case.invalid or not case.stored_as:
            continue
        plural = "" if case.disk_files == 1 else "s"
        size = f"{Size(case.disk_bytes or 0)} in {case.disk_files} file{plural}"
        found.setdefault(f"{case.sample.backend} {case.sample.settings}: {case.stored_as}", size)
    return [f"{text}, {size}" for text, size in found.items()]


def ignored_lines(cases: Sequence[CaseSummary], summary: Summary) -> list[str]:
    """Return the hints and stripes that were asked for and are not in force."""
    return [
        f"not in force: {ignored}; {case.sample.backend} {case.sample.transfer} {case.variant}"
        for case in ordered(cases)
        if (ignored := ignored_of(summary.entry(case)))
    ]


def stretch_lines(cases: Sequence[CaseSummary], summary: Summary) -> list[str]:
    """Return how many stretches ranks have by a decomposition map, once for each map."""
    facts = (summary.entry(case).get("transfer_facts") or {} for case in ordered(cases))
    return [f"map {text}" for text in dict.fromkeys(one.get("stretches") for one in facts) if text]


def invalid_lines(cases: Sequence[CaseSummary]) -> list[str]:
    """Return the cases excluded from the comparison, with reasons."""
    return [
        f"INVALID, takes part in nothing: {case.sample.backend} {case.sample.settings} "
        f"{case.sample.transfer}: {case.invalid}"
        for case in ordered(cases)
        if case.invalid
    ]


def title(cases: Sequence[CaseSummary], summary: Summary) -> str:
    """Return the subject of a comparison in one line."""
    s = cases[0].sample
    p = summary.record.cases[s.case]["parameters"]
    apart = comparisons_apart(summary.record).get(s.group, "")
    of = f"{s.arrays} array{'s' if s.arrays != 1 else ''}"
    printed = ", reads printed within their time" if p.get("read_sink") == "print" else ""
    memory = ", one buffer reused" if p.get("buffer") == "reuse" else ""
    chunks = chunks_apart(summary.record).get(s.group, "")
    amount = f"{Size(cases[0].nbytes)} in {of} of {p['dtype']} ({p['source']}){chunks}"
    return (
        f"{s.workload}{apart}, layout {s.layout}: {amount}, {s.ranks} ranks, "
        f"cache {p['cache']}, written until {p['durability']}{printed}{memory}"
    )


def ordered(cases: Sequence[CaseSummary]) -> list[CaseSummary]:
    """Return formats first, in a fixed order, raw bytes last."""

    def key(case: CaseSummary) -> tuple[bool, str, str, str, str]:
        s = case.sample
        return (case.raw, s.backend, s.settings, s.transfer, case.variant)

    return sorted(cases, key=key)


def details(summary: Summary) -> list[str]:
    """Return further information about a run, in addition to its verdict."""
    record = summary.record
    count = sum(len(case.phases) for case in summary.cases)
    warned = [p for c in summary.cases for p in c.phases.values() if p.warnings]
    texts = [_floor(record), *_memory(record), *_imbalance(summary), *_waited_for(summary)]
    texts += [f"remark: {remark}" for remark in (*record.remarks, *record.stops)]
    if warned:
        codes = sorted({w.code for p in warned for w in p.warnings})
        named = ", ".join(codes).replace("_", " ")
        texts.append(f"notes on {len(warned)} of {count} phases: {named}")
    texts += [f"INVALID: {reason}" for reason in record.reasons]
    return [without_digests(text) for text in texts]


def _floor(record: RunRecord) -> str:
    """Describe the overhead of the harness, and the speed of memory."""
    floor = record.floor
    if "synced" not in floor:
        return f"floor: times are given in steps of {floor['tick']:g} s"
    rate = floor.get("memory_copy_bytes_per_second")
    copy = f"; all ranks together copy {Size(rate)}/s in memory" if rate else ""
    clock = "the slowest rank" if record.clock == "own" else "all ranks together"
    return (
        f"floor: an empty phase takes {floor['own'] * 1e6:.3g} µs on a rank and "
        f"{floor['synced'] * 1e6:.3g} µs until all have ended; job times are those of {clock}{copy}"
    )


def _memory(record: RunRecord) -> Iterator[str]:
    """Compare the largest case's data on a node with the node's memory."""
    totals = [host.get("memory_bytes") for host in record.provenance.get("hosts", [])]
    known = [total for total in totals if isinstance(total, int)]
    if not known or not record.cases:
        return
    largest = max(case["cost"]["nbytes"] for case in record.cases.values())
    most = max(record.topology["ranks_per_node"]) / record.ranks
    data = Size(largest * most)
    yield (
        f"data: at most {data} on a node with {Size(min(known))} of memory "
        f"({data / min(known):.1%}): what is not synced or dropped stays in memory"
    )


def _imbalance(summary: Summary) -> Iterator[str]:
    """Describe the phase with the largest lag of the slowest rank."""
    found = [
        (case, phase.phase, phase.ranks)
        for case in summary.cases
        for phase in case.phases.values()
        if phase.phase in _WATCHED and phase.ranks is not None
        if not any(w.code == "below_resolution" for w in phase.warnings)
    ]
    lagging = [f for f in found if f[2].imbalance >= _APART]
    if lagging:
        case, phase, ranks = max(lagging, key=lambda f: f[2].imbalance)
        s = case.sample
        yield (
            f"largest rank imbalance: {phase} of {s.backend} {s.layout} {s.transfer}, "
            f"slowest/median {ranks.imbalance:.2g}; usually rank {ranks.slowest_rank} "
            f"({ranks.slowest_share:.0%} of repetitions), host {ranks.slowest_host} "
            f"({ranks.host_share:.0%})"
        )


def _waited_for(summary: Summary) -> Iterator[str]:
    """Describe the collective call in which the ranks most likely wait for one of them."""
    found = [
        (case, phase.phase, phase.ranks)
        for case in summary.cases
        if case.sample.transfer == "collective"
        for phase in case.phases.values()
        if phase.phase in _WATCHED and phase.ranks is not None
        if phase.ranks.idle >= _IDLE and phase.ranks.idlest_share >= _USUALLY
    ]
    if found:
        case, phase, ranks = max(found, key=lambda f: f[2].idle)
        s = case.sample
        yield (
            f"collective {phase} of {s.backend} {s.layout}: the ranks wait for rank "
            f"{ranks.idlest_rank}, which takes {ranks.idle:.0%} of the time less processor time "
            f"than the median rank ({ranks.idlest_share:.0%} of repetitions)"
        )


def _rate(found: PhaseSummary) -> str:
    return "" if found.rate is None else significant(found.rate / _MIB)


def _each(found: PhaseSummary) -> str:
    """Return microseconds per array."""
    return significant(found.per_array * 1e6)


def _each_call(found: PhaseSummary) -> str:
    """Return microseconds per call, of which an array has several."""
    return significant(1e6 / found.operations_rate) if found.operations_rate else ""


#: The small operations of many arrays: time per array, or per attribute. Closing and flushing are
#: one call of the file for all arrays.
_SMALL: dict[Part, dict[str, Callable[[PhaseSummary], str]]] = {
    "write": {
        "define": _each, "set_attributes": _each_call, "write": _each, "flush": _each,
        "close": _each,
    },
    "read": {
        "open_array": _each, "get_attributes": _each_call, "read": _each, "close_read": _each,
    },
}  # fmt: skip


def _ratio(found: PhaseSummary) -> str:
    return "" if found.ratio is None else f"{found.ratio.value:.2f}"


def _percent(found: PhaseSummary) -> str:
    return "" if found.roofline is None else part_of_raw(found.roofline)


def part_of_raw(part: float) -> str:
    """Format a fraction of the raw speed in percent; no number where raw transfers are no limit.

    They are none where a format takes clearly less time than the fastest of them: it stores
    fewer bytes, or in an order that suits the boxes better.
    """
    return ">100%" if part > _NO_LIMIT else f"{part:.0%}"


def significant(value: float) -> str:
    """Format a number with three digits, and no exponent if possible."""
    if not math.isfinite(value):
        return "–"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
