"""The summary as tables: on the terminal, in Markdown and as CSV."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pffbench.results.conclusions import conclusions
from pffbench.results.summary import CaseSummary, PhaseSummary, Summary
from pffbench.units import Size

if TYPE_CHECKING:
    from rich.console import Console

_MIB = 2**20
_CSV_COLUMNS = (
    "case",
    "group",
    "backend",
    "workload",
    "layout",
    "transfer",
    "settings",
    "cache",
    "phase",
    "repetitions",
    "min_s",
    "median_s",
    "max_s",
    "mad_s",
    "low_s",
    "high_s",
    "cv",
    "rate_mib_s",
    "ms_per_array",
    "ratio",
    "ratio_low",
    "ratio_high",
    "roofline",
    "warnings",
)


def headings(cases: Sequence[CaseSummary]) -> list[str]:
    """Return the headings of the table of a comparison."""
    columns = ["backend", "settings", "transfer"]
    if _varied(cases):
        columns.append("variant")
    written, read = (
        (["define", "write"], ["open", "read"]) if _many(cases) else (["write"], ["read"])
    )
    unit = "ms" if _many(cases) else "MiB/s"
    for names, total in ((written, "write"), (read, "read")):
        columns += [f"{name} {unit}" for name in names]
        columns += [f"{total} total s", "×best", "roof"]
    return columns


def cells(case: CaseSummary, cases: Sequence[CaseSummary]) -> list[str]:
    """Return the cells of a case in the table of its comparison."""
    s = case.sample
    texts = [s.backend, "raw" if case.raw else s.settings, s.transfer]
    if _varied(cases):
        texts.append(case.variant)
    for names, total in (
        (["define", "write"], "write_total"),
        (["open_array", "read"], "read_total"),
    ):
        if _many(cases):
            texts += [_milliseconds(case.phases.get(name)) for name in names]
        else:
            texts.append(_rate(case.phases.get(names[-1])))
        found = case.phases.get(total)
        texts += [_seconds(found), _ratio(found), _percent(found)]
    return texts


def stored_lines(cases: Sequence[CaseSummary]) -> list[str]:
    """Say, once for each way that occurs, how the arrays of the formats lie on disk."""
    found: dict[str, str] = {}
    for case in _ordered(cases):
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
    of = f"{s.arrays} array{'s' if s.arrays != 1 else ''}"
    amount = f"{Size(cases[0].nbytes)} in {of} of {p['dtype']} ({p['source']})"
    return (
        f"{s.workload}, layout {s.layout}: {amount}, {s.ranks} ranks, "
        f"cache {p['cache']}, written until {p['durability']}"
    )


def _varied(cases: Sequence[CaseSummary]) -> bool:
    """Whether a backend was swept over more than settings and transfer."""
    return any(case.variant for case in cases)


def _many(cases: Sequence[CaseSummary]) -> bool:
    """Whether the time of one array is what matters, not the rate."""
    return cases[0].sample.workload == "datasets"


def print_summary(summary: Summary, console: Console) -> None:
    """Print the tables, the conclusions and the verdict."""
    from rich import box
    from rich.table import Table

    for cases in summary.groups.values():
        console.print(title(cases, summary), style="bold", highlight=False)
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
        for i, heading in enumerate(headings(cases)):
            words = i < 3 or heading == "variant"
            table.add_column(heading, justify="left" if words else "right", no_wrap=i < 3)
        for case in _ordered(cases):
            table.add_row(*cells(case, cases), style="dim" if case.raw else None)
        console.print(table)
        for text in stored_lines(cases):
            console.print(f"  {text}", style="dim", highlight=False)
        console.print()
    for text in conclusions(summary):
        console.print(f"• {text}", highlight=False)
    for text in _closing(summary):
        console.print(text, highlight=False)


def _ordered(cases: Sequence[CaseSummary]) -> list[CaseSummary]:
    """Return formats first, in a fixed order, raw bytes last."""

    def key(case: CaseSummary) -> tuple[bool, str, str, str, str]:
        s = case.sample
        return (case.raw, s.backend, s.settings, s.transfer, case.variant)

    return sorted(cases, key=key)


def _closing(summary: Summary) -> list[str]:
    record = summary.record
    count = sum(len(case.phases) for case in summary.cases)
    warned = [(c, p) for c in summary.cases for p in c.phases.values() if p.warnings]
    codes = sorted({w.code for _, p in warned for w in p.warnings})
    texts = [f"remark: {remark}" for remark in record.remarks]
    if warned:
        named = ", ".join(codes).replace("_", " ")
        texts.append(f"warnings: {len(warned)} of {count} phases ({named}); see summary.md")
    texts += [f"INVALID: {reason}" for reason in record.reasons]
    verdict = {True: "VALID", False: "INVALID", None: "unfinished"}[record.valid]
    if record.valid and record.status == "interrupted":
        verdict = "VALID so far, but interrupted"
    return [*texts, verdict]


def write_summary(summary: Summary, directory: str | Path) -> None:
    """Write `summary.csv` and `summary.md` into a results directory."""
    place = Path(directory)
    with (place / "summary.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, _CSV_COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(_csv_rows(summary))
    (place / "summary.md").write_text("\n".join(_markdown(summary)) + "\n", encoding="utf-8")


def _csv_rows(summary: Summary) -> Iterable[dict[str, Any]]:
    for case in summary.cases:
        s = case.sample
        for p in case.phases.values():
            yield {
                "case": s.case,
                "group": s.group,
                "backend": s.backend,
                "workload": s.workload,
                "layout": s.layout,
                "transfer": s.transfer,
                "settings": s.settings,
                "cache": case.cache,
                "phase": p.phase,
                "repetitions": p.seconds.n,
                "min_s": p.seconds.minimum,
                "median_s": p.seconds.median,
                "max_s": p.seconds.maximum,
                "mad_s": p.seconds.mad,
                "low_s": p.seconds.low,
                "high_s": p.seconds.high,
                "cv": p.seconds.cv,
                "rate_mib_s": None if p.rate is None else p.rate / _MIB,
                "ms_per_array": p.per_array * 1e3,
                "ratio": None if p.ratio is None else p.ratio.median,
                "ratio_low": None if p.ratio is None else p.ratio.low,
                "ratio_high": None if p.ratio is None else p.ratio.high,
                "roofline": p.roofline,
                "warnings": "; ".join(w.message for w in p.warnings),
            }


def _markdown(summary: Summary) -> Iterable[str]:
    record = summary.record
    yield f"# {record.name}"
    if record.question:
        yield from ("", record.question)
    yield from (
        "",
        f"{record.ranks} ranks on {len(set(record.topology['nodes']))} node(s), {record.started}.",
        "",
    )
    yield from (f"- {text}" for text in [*conclusions(summary), *_closing(summary)])
    for cases in summary.groups.values():
        yield from ("", f"## {title(cases, summary)}", "")
        columns = headings(cases)
        yield f"| {' | '.join(columns)} |"
        yield f"| {' | '.join('---' if i < 3 else '---:' for i in range(len(columns)))} |"
        yield from (f"| {' | '.join(cells(case, cases))} |" for case in _ordered(cases))
        yield ""
        yield from (f"- {text}" for text in stored_lines(cases))
        yield from ("", "Every phase, median seconds of the slowest rank (95 % interval):", "")
        yield from _phase_table(_ordered(cases))
    warned = [(c, p) for c in summary.cases for p in c.phases.values() if p.warnings]
    if warned:
        yield from ("", "## Warnings", "")
        for case, p in warned:
            yield f"- {case.sample.case} {p.phase}: {'; '.join(w.message for w in p.warnings)}"


def _phase_table(cases: Sequence[CaseSummary]) -> Iterable[str]:
    names = list(dict.fromkeys(name for case in cases for name in case.phases))
    yield f"| case | {' | '.join(names)} |"
    yield f"| --- | {' | '.join('---:' for _ in names)} |"
    for case in cases:
        row = " | ".join(_with_interval(case.phases.get(name)) for name in names)
        yield f"| {case.sample.case} | {row} |"


def _with_interval(found: PhaseSummary | None) -> str:
    if found is None:
        return ""
    s = found.seconds
    interval = "" if math.isnan(s.low) else f" ({s.low:.3g}–{s.high:.3g})"
    return f"{s.median:.3g}{interval}"


def _rate(found: PhaseSummary | None) -> str:
    return "" if found is None or found.rate is None else f"{found.rate / _MIB:.0f}"


def _seconds(found: PhaseSummary | None) -> str:
    """Return the median with half the width of its interval, as a part of it."""
    if found is None:
        return ""
    width = found.seconds.relative_interval
    return f"{found.seconds.median:.3g}" + ("" if math.isnan(width) else f" ±{50 * width:.0f}%")


def _milliseconds(found: PhaseSummary | None) -> str:
    return "" if found is None else f"{found.per_array * 1e3:.3g}"


def _ratio(found: PhaseSummary | None) -> str:
    return "" if found is None or found.ratio is None else f"{found.ratio.median:.2f}"


def _percent(found: PhaseSummary | None) -> str:
    return "" if found is None or found.roofline is None else f"{found.roofline:.0%}"
