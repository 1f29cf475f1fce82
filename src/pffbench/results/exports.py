"""The summary as files: `summary.csv` for programs, `summary.md` for people."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from pffbench.results.conclusions import cautions, verdict_lines
from pffbench.results.record import RunRecord
from pffbench.results.summary import CaseSummary, PhaseSummary, Summary
from pffbench.results.tables import (
    columns_of,
    details,
    invalid_lines,
    ordered,
    stored_lines,
    title,
)
from pffbench.storage.regular_files import replacing, write_replacing
from pffbench.text import escape_markdown, markdown_row

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
    "mean_s",
    "sd_s",
    "low_s",
    "high_s",
    "cv",
    "rate_mib_s",
    "first_done_mib_s",
    "ms_per_array",
    "operations_per_s",
    "ratio",
    "ratio_low",
    "ratio_high",
    "roofline",
    "cpu_s",
    "faulted",
    "imbalance",
    "slowest_rank",
    "slowest_rank_share",
    "slowest_host",
    "slowest_host_share",
    "warning_codes",
    "warnings",
    "invalid",
)


def write_summary(summary: Summary, directory: str | Path) -> None:
    """Write `summary.csv` and `summary.md` into a results directory."""
    place = Path(directory)
    with replacing(place / "summary.csv") as file:
        writer = csv.DictWriter(file, _CSV_COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(_csv_rows(summary))
    write_replacing(place / "summary.md", "\n".join(_markdown(summary)) + "\n")


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
                **_mean(p),
                "low_s": p.seconds.low,
                "high_s": p.seconds.high,
                "cv": p.seconds.cv,
                "rate_mib_s": _mib(p.rate),
                "first_done_mib_s": _mib(p.first_done),
                "ms_per_array": p.per_array * 1e3,
                "operations_per_s": p.operations_rate,
                "ratio": None if p.ratio is None else p.ratio.value,
                "ratio_low": None if p.ratio is None else p.ratio.low,
                "ratio_high": None if p.ratio is None else p.ratio.high,
                "roofline": p.roofline,
                "cpu_s": p.cpu_seconds,
                "faulted": p.faulted,
                **_ranks(p),
                "warning_codes": " ".join(w.code for w in p.warnings),
                "warnings": "; ".join(w.message for w in p.warnings),
                "invalid": case.invalid,
            }


def _mean(found: PhaseSummary) -> dict[str, float]:
    """Return mean and sample standard deviation, which many studies publish."""
    seconds = list(found.by_block.values())
    deviation = stdev(seconds) if len(seconds) > 1 else float("nan")
    return {"mean_s": mean(seconds), "sd_s": deviation}


def _mib(rate: float | None) -> float | None:
    return None if rate is None else rate / _MIB


def _ranks(found: PhaseSummary) -> dict[str, Any]:
    """Return the columns about ranks; a sum of phases has none."""
    r = found.ranks
    if r is None:
        return {}
    return {
        "imbalance": r.imbalance,
        "slowest_rank": r.slowest_rank,
        "slowest_rank_share": r.slowest_share,
        "slowest_host": r.slowest_host,
        "slowest_host_share": r.host_share,
    }


def _markdown(summary: Summary) -> Iterable[str]:
    record = summary.record
    yield f"# {record.name}"
    if record.question:
        yield from ("", escape_markdown(record.question))
    yield from (
        "",
        f"{record.ranks} ranks{_nodes(record)}, {escape_markdown(record.started)}.",
        "",
    )
    texts = [*verdict_lines(summary), *cautions(summary)]
    yield from (f"- {escape_markdown(text)}" for text in texts)
    for cases in summary.groups.values():
        yield from ("", f"## {escape_markdown(title(cases, summary))}", "")
        columns = columns_of(cases)
        yield markdown_row(c.heading for c in columns)
        yield markdown_row("---" if c.is_text else "---:" for c in columns)
        yield from (markdown_row(c.cell(case) for c in columns) for case in ordered(cases))
        yield ""
        lines = (*stored_lines(cases), *invalid_lines(cases))
        yield from (f"- {escape_markdown(text)}" for text in lines)
        yield from ("", "Every phase, median seconds (95 % interval):", "")
        yield from _phase_table(ordered(cases))
    yield from ("", "## Details", "")
    yield from (f"- {escape_markdown(text)}" for text in details(summary))
    warned = [(c, p) for c in summary.cases for p in c.phases.values() if p.warnings]
    if warned:
        yield from ("", "## Notes on single phases", "")
        for case, p in warned:
            told = "; ".join(w.message for w in p.warnings)
            yield f"- {escape_markdown(f'{case.sample.case} {p.phase}: {told}')}"


def _nodes(record: RunRecord) -> str:
    """Say on how many nodes a job ran, where that is known."""
    nodes = len(set(record.topology["nodes"]))
    return f" on {nodes} node(s)" if nodes else ""


def _phase_table(cases: Sequence[CaseSummary]) -> Iterable[str]:
    names = list(dict.fromkeys(name for case in cases for name in case.phases))
    yield markdown_row(["case", *names])
    yield markdown_row(["---", *("---:" for _ in names)])
    for case in cases:
        cells = (_with_interval(case.phases.get(name)) for name in names)
        yield markdown_row([case.sample.case, *cells])


def _with_interval(found: PhaseSummary | None) -> str:
    if found is None:
        return ""
    s = found.seconds
    interval = "" if math.isnan(s.low) else f" ({s.low:.3g}–{s.high:.3g})"
    return f"{s.median:.3g}{interval}"
