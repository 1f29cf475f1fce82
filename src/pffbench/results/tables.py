"""What the tables of a summary say: their columns, titles and closing lines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from pffbench.results.amplification import AMPLIFICATIONS, amplification
from pffbench.results.compression import compression_ratio
from pffbench.results.phases import MOVING
from pffbench.results.record import RunRecord
from pffbench.results.summary import CaseSummary, PhaseSummary, Summary
from pffbench.results.wording import comparisons_apart
from pffbench.units import Size

_MIB = 2**20
#: How many times as long as the middle rank the slowest one takes before it is spoken of.
_APART = 1.2
#: Part of the raw speed beyond which raw transfers are no limit; less may be noise.
_NO_LIMIT = 1.1


@dataclass(frozen=True)
class Column:
    """A column of the table of a comparison.

    Parameters
    ----------
    heading : str
        What stands above it.
    part : {"case", "write", "read"}
        What it tells of: a narrow terminal shows writing and reading one below the other.
    cell : callable
        Gives the text for a case.
    """

    heading: str
    part: Literal["case", "write", "read"]
    cell: Callable[[CaseSummary], str]

    @property
    def is_text(self) -> bool:
        """Whether it holds words, not numbers."""
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
    # With many arrays the time of one is what matters, not the rate.
    if cases[0].sample.workload == "datasets":
        written = {"define ms": (_milliseconds, "define"), "write ms": (_milliseconds, "write")}
        read = {"open ms": (_milliseconds, "open_array"), "read ms": (_milliseconds, "read")}
    else:
        written = {"write MiB/s": (_rate, "write")}
        read = {"read MiB/s": (_rate, "read")}
    if any(compression_ratio(case) for case in cases):
        found.append(Column("ratio", "write", _compressed))
    if cases[0].sample.workload == "versions":
        found += [
            Column("kept MiB", "write", partial(_counted, "close", "file_bytes", _MIB)),
            Column("reused", "write", partial(_counted, "close", "chunks_reused", 1)),
        ]
    for part in _PARTS:
        phases = written if part == "write" else read
        total = f"{part}_total"
        phases |= {
            f"{part} total s": (_seconds, total),
            "×best": (_ratio, total),
            "roof": (_percent, total),
        }
        found += [Column(h, part, partial(_told, *told)) for h, told in phases.items()]
    if any("update" in case.phases for case in cases):
        found += [
            Column("update MiB/s", "write", partial(_told, _rate, "update")),
            Column("update total s", "write", partial(_told, _seconds, "update_total")),
            Column("×best", "write", partial(_told, _ratio, "update_total")),
            Column("grew MiB", "write", partial(_counted, "update", "grown_bytes", _MIB)),
        ]
    found += [
        Column(heading, "read", partial(_amplified, counter))
        for heading, counter in AMPLIFICATIONS.items()
        if any(amplification(case, "touched_bytes") is not None for case in cases)
    ]
    if any("repack" in case.phases for case in cases):
        found.append(Column("repack s", "write", partial(_told, _seconds, "repack")))
    if any(("read", "decodes_counted") in case.counts for case in cases):
        found.append(Column("decodes", "read", _decodes))
    return found


def _counted(phase: str, counter: str, unit: float, case: CaseSummary) -> str:
    """Return what was counted in a phase by all ranks together, in a unit."""
    amount = case.counts.get((phase, counter))
    return "" if amount is None else f"{amount / unit:.3g}"


_PARTS: tuple[Literal["write", "read"], ...] = ("write", "read")


def _told(tell: Callable[[PhaseSummary], str], phase: str, case: CaseSummary) -> str:
    found = case.phases.get(phase)
    return "" if found is None else tell(found)


def _compressed(case: CaseSummary) -> str:
    ratio = compression_ratio(case)
    return "" if ratio is None else f"{ratio:.4g}"


def _decodes(case: CaseSummary) -> str:
    """Return how often chunks were decoded in reading; with what must be, where they differ."""
    counted = case.counts.get(("read", "decodes_counted"))
    expected = case.counts.get(("read", "decodes_expected"), counted)
    if counted is None or expected is None:
        return ""
    return f"{counted:.0f}" + ("" if counted == expected else f", not {expected:.0f}")


def _amplified(counter: str, case: CaseSummary) -> str:
    times = amplification(case, counter)
    return "" if times is None else f"{times:.3g}"


def stored_lines(cases: Sequence[CaseSummary]) -> list[str]:
    """Say, once for each way that occurs, how the arrays of the formats lie on disk."""
    found: dict[str, str] = {}
    for case in ordered(cases):
        if case.raw or not case.stored_as:
            continue
        plural = "" if case.disk_files == 1 else "s"
        size = f"{Size(case.disk_bytes or 0)} in {case.disk_files} file{plural}"
        found.setdefault(f"{case.sample.backend} {case.sample.settings}: {case.stored_as}", size)
    return [f"{text}, {size}" for text, size in found.items()]


def title(cases: Sequence[CaseSummary], summary: Summary) -> str:
    """Say what is compared in one line."""
    s = cases[0].sample
    p = summary.record.cases[s.case]["parameters"]
    apart = comparisons_apart(summary.record).get(s.group, "")
    of = f"{s.arrays} array{'s' if s.arrays != 1 else ''}"
    printed = ", reads printed within their time" if p.get("read_sink") == "print" else ""
    amount = f"{Size(cases[0].nbytes)} in {of} of {p['dtype']} ({p['source']})"
    return (
        f"{s.workload}{apart}, layout {s.layout}: {amount}, {s.ranks} ranks, "
        f"cache {p['cache']}, written until {p['durability']}{printed}"
    )


def ordered(cases: Sequence[CaseSummary]) -> list[CaseSummary]:
    """Return formats first, in a fixed order, raw bytes last."""

    def key(case: CaseSummary) -> tuple[bool, str, str, str, str]:
        s = case.sample
        return (case.raw, s.backend, s.settings, s.transfer, case.variant)

    return sorted(cases, key=key)


def closing(summary: Summary) -> list[str]:
    """Return remarks, warnings, the reasons against the run and the verdict."""
    record = summary.record
    count = sum(len(case.phases) for case in summary.cases)
    warned = [(c, p) for c in summary.cases for p in c.phases.values() if p.warnings]
    codes = sorted({w.code for _, p in warned for w in p.warnings})
    texts = [_floor(record), *_memory(record), *_apart(summary), *_too_high(summary)]
    texts += [f"remark: {remark}" for remark in record.remarks]
    if warned:
        named = ", ".join(codes).replace("_", " ")
        texts.append(f"warnings: {len(warned)} of {count} phases ({named}); see summary.md")
    texts += [f"INVALID: {reason}" for reason in record.reasons]
    if record.imported and record.valid is None:
        return [*texts, f"measured by {record.imported}: pffbench has verified nothing of that"]
    verdict = {True: "VALID", False: "INVALID", None: "unfinished"}[record.valid]
    if record.valid and record.status == "interrupted":
        verdict = "VALID so far, but interrupted"
    if record.valid is None and record.status == "written":
        verdict = "written; the verdict comes with reading"
    return [*texts, verdict]


def _floor(record: RunRecord) -> str:
    """Tell what the harness itself costs, and how fast memory is."""
    floor = record.floor
    if "barrier" not in floor:
        return f"floor: times are given in steps of {floor['tick']:g} s"
    copy = Size(floor["memory_copy_bytes_per_second"])
    return (
        f"floor: an empty barrier takes {floor['barrier'] * 1e3:.3g} ms, the clock ticks every "
        f"{floor['tick'] * 1e9:.0f} ns; all ranks together copy {copy}/s in memory"
    )


def _memory(record: RunRecord) -> Iterator[str]:
    """Tell the largest case's data on a node against the node's memory."""
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


def _apart(summary: Summary) -> Iterator[str]:
    """Tell of the transfer in which the slowest rank lags the most behind the others."""
    found = [
        (case.sample.case, phase.phase, phase.ranks)
        for case in summary.cases
        for phase in case.phases.values()
        if phase.phase in MOVING and phase.ranks is not None
        if not any(w.code == "below_resolution" for w in phase.warnings)
    ]
    lagging = [f for f in found if f[2].imbalance >= _APART]
    if lagging:
        case, phase, ranks = max(lagging, key=lambda f: f[2].imbalance)
        yield (
            f"ranks lie furthest apart in {phase} of {case}: the slowest takes "
            f"{ranks.imbalance:.2g} times as long as the middle one; most often it is rank "
            f"{ranks.slowest_rank} ({ranks.slowest_share:.0%} of the repetitions), or one on "
            f"{ranks.slowest_host} ({ranks.host_share:.0%})"
        )


def _too_high(summary: Summary) -> Iterator[str]:
    """Tell that rates are too high where ranks began one after the other."""
    moving = [
        p for case in summary.cases for p in case.phases.values() if p.phase in ("write", "read")
    ]
    count = sum(any(w.code == "ranks_apart" for w in p.warnings) for p in moving)
    if count:
        yield (
            f"rates are upper bounds in {count} of {len(moving)} transfers: ranks began one after "
            "the other, as where they share a core; summary.md tells how much lower they may be"
        )


def _rate(found: PhaseSummary) -> str:
    return "" if found.rate is None else f"{found.rate / _MIB:.0f}"


def _seconds(found: PhaseSummary) -> str:
    """Return the median with half the width of its interval, as a part of it."""
    width = found.seconds.relative_interval
    return f"{found.seconds.median:.3g}" + ("" if math.isnan(width) else f" ±{50 * width:.0f}%")


def _milliseconds(found: PhaseSummary) -> str:
    return f"{found.per_array * 1e3:.3g}"


def _ratio(found: PhaseSummary) -> str:
    return "" if found.ratio is None else f"{found.ratio.median:.2f}"


def _percent(found: PhaseSummary) -> str:
    return "" if found.roofline is None else part_of_raw(found.roofline)


def part_of_raw(part: float) -> str:
    """Write a part of the raw speed in percent; no number where raw transfers are no limit.

    They are none where a format takes clearly less time than the fastest of them: it stores
    fewer bytes, or in an order that suits the boxes better.
    """
    return ">100%" if part > _NO_LIMIT else f"{part:.0%}"
