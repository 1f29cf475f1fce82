"""Text of a figure: its heading, reading notes, warnings and source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pffbench.summary.columns import many_arrays, title
from pffbench.summary.summary import CaseSummary, Summary

from pffbench.phases import TOTALS
from pffbench.record.run_json import RunRecord
from pffbench.text import counted, without_digests
from pffbench_analysis.charts import CaseMedian, Chart, dots_each, label

#: Libraries whose versions are named below a figure, by import name, with the C library that
#: each wraps, by the key in `run.json`.
_LIBRARIES = {
    "h5py": "hdf5",
    "netCDF4": "netcdf_c",
    "zarr": "",
    "tensorstore": "",
    "mpi4py": "mpi_library",
}


def heading(cases: Sequence[CaseSummary], summary: Summary, differs: Mapping[str, str]) -> str:
    """Return the heading of a comparison, with its distinguishing parameters."""
    told = title(cases, summary)
    more = [f"{key} {value}" for key, value in differs.items() if key not in _IN_TITLE]
    return ", ".join([told, *more])


#: Parameters that the title already names.
_IN_TITLE = {"workload", "layout", "cache", "durability", "source"}


def stamp(summary: Summary) -> str:
    """Return the stamp over a figure: INVALID, or nothing."""
    return "INVALID" if summary.record.valid is False or summary.record.reasons else ""


def how_to_read(chart: Chart, cases: Sequence[CaseSummary]) -> list[str]:
    """Explain the marks that occur in a chart."""
    drawn = [median for panel in chart.panels for median in panel.drawn]
    texts = [f"{_medians(chart, cases)} {_whiskers(drawn)}"]
    marks = []
    if any(e.case.sample.transfer == "collective" for e in drawn):
        marks.append("Squares: collective.")
    if any(e.case.sample.settings == "defaults" and not e.case.raw for e in drawn):
        marks.append("Pale: the library's defaults.")
    if any(panel.limit is not None for panel in chart.panels):
        marks.append(
            "Dashed line: the fastest raw transfer of the same bytes, by its median, or copying "
            "them in memory where that takes longer."
        )
    if any(e.unsure for e in drawn):
        marks.append("†: under 100 times what the harness itself takes; not to be relied on.")
    texts += [" ".join(marks)] if marks else []
    if any("unproved" in case.cache for case in cases if case.entry.get("verified", True)):
        texts.append("The state of the page cache that was asked for was not proved for each read.")
    return texts


def _medians(chart: Chart, cases: Sequence[CaseSummary]) -> str:
    if chart.name == "metadata":
        if many_arrays(cases):
            return "Points: median job time over the number of datasets of all ranks."
        return "Points: median job time."
    if chart.name == "data":
        return "Points: bytes of all ranks over the median job time."
    there = {name for case in cases for name in case.phases}
    sums = "; ".join(
        f"{total.replace('_total', ' total')} is {' + '.join(p for p in parts if p in there)}"
        for total, parts in TOTALS.items()
        if there.intersection(parts)
    )
    return f"Points: median of a sum of phases: {sums}."


def _whiskers(drawn: Sequence[CaseMedian]) -> str:
    """Explain the whiskers around the medians, by the number of repetitions."""
    counts = sorted({len(median.repetitions) for median in drawn})
    texts = []
    if any(e.has_interval for e in drawn):
        texts.append("Lines with caps: 95 % interval of the median, by order statistics.")
    if any(not e.has_interval and len(e.repetitions) > 1 for e in drawn):
        texts.append("Lines without caps: range of fewer than five repetitions, no interval.")
    if counts[-1] > 1:
        most = f"{counts[0]}–{counts[-1]}" if len(counts) > 1 else f"{counts[0]}"
        dots, shown = f"the {most} repetitions", dots_each(len(drawn))
        if counts[-1] > shown:
            dots = f"{shown} of {most} repetitions, evenly spaced and with the extremes"
        texts.append(f"Dots: {dots}, the first uppermost.")
    if counts[0] == 1:
        texts.append("Hollow: one repetition, no interval.")
    return " ".join(texts)


def alarms(summary: Summary) -> list[str]:
    """List the problems of a run."""
    record = summary.record
    texts = []
    if stamp(summary):
        more = f" (and {len(record.reasons) - 1} more)" if len(record.reasons) > 1 else ""
        reason = record.reasons[0] if record.reasons else "see run.json"
        texts.append(f"INVALID: {reason}{more}")
    if record.status != "finished":
        state = "is not at its end" if record.status == "running" else "was interrupted"
        texts.append(f"The run {state}: repetitions are missing.")
    return list(map(without_digests, texts))


def alarms_of_group(summary: Summary, group: str) -> list[str]:
    """List the cases of a comparison without a result, or with one that is not drawn."""
    there = {case.sample.case for case in summary.groups[group]}
    entries = summary.record.cases.items()
    missing = sorted(name for name, e in entries if e.get("group") == group and name not in there)
    texts = [f"No result: {', '.join(missing)}"] if missing else []
    return texts + [
        f"Not drawn, INVALID: {label(case)}: {case.invalid}"
        for case in summary.groups[group]
        if case.invalid
    ]


def footnote(summary: Summary) -> str:
    """Name the run, its ranks, date and versions."""
    record = summary.record
    filesystem = record.provenance.get("filesystem", {}).get("type")
    parts = [
        f"run {record.run_id}",
        job_size(record),
        record.started.replace("T", " "),
        *([str(filesystem)] if filesystem else []),
        *software_versions(record),
    ]
    return "; ".join(parts)


def job_size(record: RunRecord) -> str:
    """Return the number of ranks, and of nodes if known."""
    nodes = len(set(record.topology.get("nodes", [0])))
    return counted(record.ranks, "rank") + (f" on {counted(nodes, 'node')}" if nodes else "")


def software_versions(record: RunRecord) -> list[str]:
    """Name pffbench and the libraries that a run used, with their versions."""
    software = record.provenance.get("software", {})
    own = software.get("pffbench", {}).get("version")
    texts = [f"pffbench {own}"] if own else []
    libraries = software.get("libraries", {})
    for name, wrapped in _LIBRARIES.items():
        facts = libraries.get(name)
        if isinstance(facts, Mapping) and facts.get("version"):
            texts.append(_version(name, facts, wrapped))
    return list(dict.fromkeys(texts))


def _version(name: str, facts: Mapping[str, Any], wrapped: str) -> str:
    below = facts.get(wrapped)
    if wrapped == "mpi_library" and below:
        return str(below).split(",")[0].replace(" v", " ")
    inner = {"hdf5": "HDF5", "netcdf_c": "netCDF-C"}.get(wrapped, wrapped)
    return f"{name} {facts['version']}" + (f" with {inner} {below}" if below else "")
