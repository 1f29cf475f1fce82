"""Differences between study 5 and a run of the workload `versions`, with measured figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pffbench.summary.summary import CaseSummary, Summary
from pffbench_analysis.published.counterparts import Reason

#: Differences common to all runs.
_ALWAYS = (
    Reason(
        "what a version's time holds",
        "drawing random numbers and finding rows, staging, committing, and the flush of the "
        "version before; the flush of the last one not",
        "staging, committing and flushing each version; numbers are drawn before, off the timer",
        "time of a version, of all versions: less time in plain HDF5 most of all, so larger ratios",
    ),
    Reason(
        "rows that are moved",
        "the rows behind deleted or inserted ones are read first, within the time",
        "the application holds the table: they are only written",
        "versions with inserts or deletes, 1 in 50",
    ),
    Reason(
        "random numbers",
        "without a seed, one run",
        "a history of its own for each seed and rank",
        "size of the file: with 50 versions of the constant table ±12 % by chance alone",
    ),
    Reason(
        "a look-up",
        "of one column, the values",
        "of all three columns",
        "time of a look-up: up to three times as much work here",
    ),
)


def reasons_of(summary: Summary) -> list[Reason]:
    """Return the differences between study and run; contradictions with run figures."""
    return [*_reading(summary), *_changing(summary), *_saved(summary), *_ALWAYS, *_machine(summary)]


def _told(summary: Summary, **wanted: str) -> Iterator[tuple[CaseSummary, Mapping[str, Any]]]:
    for case in summary.cases:
        p = summary.record.cases[case.sample.case]["parameters"]
        if p.get("workload") == "versions" and all(p.get(k) == v for k, v in wanted.items()):
            yield case, p


def _name(p: Mapping[str, Any]) -> str:
    return f"{p['keep']}, {p['kind']}, {p['versions']} versions, chunks {p['chunks'][0]}"


def _milliseconds(case: CaseSummary, phase: str) -> float:
    return 1e3 * case.phases[phase].seconds.median


def _reading(summary: Summary) -> Iterator[Reason]:
    """Report the time to find all versions, and to read them too, which the study left out."""
    for case, p in _told(summary, probabilities="as_published"):
        if {"look_up_all", "read_all"} <= set(case.phases):
            found, read = (_milliseconds(case, name) for name in ("look_up_all", "read_all"))
            yield Reason(
                f"look-up against reading: {p['backend']} {_name(p)}",
                "called reading, but only the object is looked up",
                f"all versions: looked up in {found:.3g} ms, read in {read:.3g} ms more; the "
                f"latest in {_milliseconds(case, 'open_array'):.3g} ms and "
                f"{_milliseconds(case, 'read'):.3g} ms more",
                "times of reading: the study's are those of the look-up",
            )


def _changing(summary: Summary) -> Iterator[Reason]:
    """Report the extra time of single values over a contiguous range, by pairs of cases."""
    batch = {_way(p): case for case, p in _told(summary, change="batch")}
    for case, p in _told(summary, change="element", probabilities="as_described"):
        other = batch.get(_way(p))
        if other is not None:
            one, all_ = (_milliseconds(c, "write") for c in (case, other))
            yield Reason(
                f"values one by one: {p['backend']} {_name(p)}",
                "each changed value is an assignment of its own",
                f"staging all versions takes {one:.3g} ms one by one and {all_:.3g} ms as a "
                f"stretch: ×{one / all_:.3g}",
                "the described workload: most of its time is these calls, not versions",
            )


def _way(p: Mapping[str, Any]) -> str:
    return str(sorted((k, str(v)) for k, v in p.items() if k != "change"))


def _saved(summary: Summary) -> Iterator[Reason]:
    """Report the real changes, and the number of chunks that versions share."""
    for case, p in _told(summary, keep="chunks", backend="hdf5"):
        counts, ranks = case.counts, summary.record.ranks
        if ("close", "chunks_referenced") not in counts:
            continue
        referenced, stored = (counts["close", f"chunks_{w}"] for w in ("referenced", "stored"))
        rows = [counts["version", w] / ranks for w in ("changed", "appended", "final_rows")]
        yield Reason(
            f"what changed: {p['kind']}, {p['versions']} versions, {p['probabilities']}",
            "described as thousands of changed values; published with all changes switched off",
            f"a rank: {rows[0]:.0f} values changed, {rows[1]:.0f} rows appended, "
            f"{rows[2]:.0f} rows at the end; {stored / ranks:.0f} chunks kept of "
            f"{referenced / ranks:.0f} that versions consist of (×{referenced / stored:.3g})",
            "size of the file, time of a version",
        )


def _machine(summary: Summary) -> Iterator[Reason]:
    record = summary.record
    libraries = record.provenance.get("software", {}).get("libraries", {})
    told = [
        f"{name} {entry['version']}"
        for name, entry in libraries.items()
        if isinstance(entry, Mapping) and entry.get("version")
    ]
    if record.ranks > 1:
        yield Reason(
            "processes",
            "1",
            f"{record.ranks}, each with a file of its own; time of the slowest, mean size",
            "all",
        )
    yield Reason(
        "versions of the software",
        "versioned-hdf5 1.0 of 2020",
        ", ".join(told) or "not recorded",
        "time of a version: staging and committing were written anew since",
    )
