"""Limits of a recommendation: reasons for doubt, and ways not tested."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pffbench.backends.registry import backend_class, backend_names
from pffbench.record.run_json import RunRecord
from pffbench.summary.cautions import busy
from pffbench.summary.labels import format_title
from pffbench.summary.summary import Summary
from pffbench.text import value_text
from pffbench.units import Size
from pffbench.workloads.registry import workload, workload_names
from pffbench_analysis.captions import job_size
from pffbench_analysis.recommend.candidates import READING, Candidate, Work, works

#: Part of a node's memory below which data may never have left it.
_SMALL = 0.5
_LAYOUTS = ("shared", "own", "file_per_process")
_TRANSFERS = ("independent", "collective")
_CODECS = ("none", "gzip", "zstd", "blosc", "szip", "lz4")
_CACHES = ("warm", "shifted", "dropped", "separate")


def objection(record: RunRecord) -> str:
    """Return why nothing can be recommended from a run; empty if something can."""
    if record.objection:
        return f"the run is INVALID: {record.objection}"
    if record.valid is None:
        state = "it is not finished" if record.status != "finished" else "no verdict was given"
        return f"{state}, so nobody has verified what was read"
    return ""


def doubts(summary: Summary, work: Work) -> Iterator[str]:
    """Yield the reasons for doubt in the answers for a work, the worst first."""
    record, p = summary.record, work.parameters
    yield from busy(summary.load)
    filesystem = record.provenance.get("filesystem", {})
    if filesystem.get("in_memory"):
        yield (
            f"the files were in memory ({filesystem.get('type')}): these numbers say nothing of "
            "any disk or parallel file system"
        )
    if record.status == "interrupted":
        yield "the run was interrupted: fewer repetitions count than were planned"
    yield from summary.gaps
    if failed := [name for name, entry in record.cases.items() if entry.get("failure")]:
        yield f"{len(failed)} cases failed and are out of the running: {', '.join(failed[:3])}"
    if any(way.warned(READING, "cache_unproved") for way in work.candidates):
        yield (
            f"reading: the state of the page cache (cache: {p.get('cache')}) was not proved, so "
            "reads may have come from memory"
        )
    elif p.get("cache") in ("warm", "copied"):
        yield "reading: the data came from the page cache; a job that reads later takes longer"
    if p.get("durability") != "sync":
        yield (
            f"writing: timed until {p.get('durability')}, when bytes may still be in memory "
            "(durability: sync times them until they are on the device)"
        )
    yield from _small(summary)


def _small(summary: Summary) -> Iterator[str]:
    record = summary.record
    totals = [host.get("memory_bytes") for host in record.provenance.get("hosts", [])]
    known = [total for total in totals if isinstance(total, int)]
    per_node = record.topology.get("ranks_per_node")
    if not known or not per_node or not summary.cases:
        return
    largest = max(case.nbytes for case in summary.cases) * max(per_node) / record.ranks
    if largest < _SMALL * min(known):
        yield (
            f"the data of a node, {Size(int(largest))}, are {largest / min(known):.2g} times its "
            f"memory ({Size(min(known))}): larger ones may behave otherwise"
        )


def untested(summary: Summary, work: Work) -> Iterator[str]:
    """Yield the choices that the run does not cover, in this work or in another one."""
    covered = works(summary)
    candidates = [way for one in covered for way in one.candidates]
    record, name = summary.record, str(work.parameters.get("workload"))
    grouped = name in workload_names() and workload(name).groups_ranks
    formats = [name for name in backend_names() if not backend_class(name).capabilities.raw]
    yield from _others("formats", [c.backend for c in candidates], formats)
    for key, all_, what in (
        ("layout", (*_LAYOUTS, *["file_per_group"] * grouped), "layouts"),
        ("transfer", _TRANSFERS, "transfers"),
        ("settings", ("matched", "defaults"), "settings"),
    ):
        yield from _others(what, [c.parameters[key] for c in candidates], all_)
    yield from _others(
        "codecs", [c.codec.split()[0].partition("-")[0] for c in candidates], _CODECS
    )
    chunks = sorted({_chunks(c) for c in candidates})
    yield f"chunks other than {', '.join(chunks)}"
    yield from _others("cache states", [one.parameters.get("cache") for one in covered], _CACHES)
    source = work.parameters.get("source")
    if source in ("uniform", "integers", "constant"):
        how = "far too well" if source == "constant" else "hardly at all"
        yield f"your data: these ({source}) compress {how}, so they say little of codecs"
    kind = record.provenance.get("filesystem", {}).get("type", "that of this run")
    yield f"other sizes than {job_size(record)}"
    yield f"other file systems than {kind}, other machines, other days and loads"


def _others(what: str, tested: list[Any], all_: Any) -> Iterator[str]:
    missing = [name for name in all_ if name not in tested]
    if missing:
        yield f"{what} {', '.join(map(format_title, missing))}"


def _chunks(candidate: Candidate) -> str:
    if candidate.stored is None:
        return str(candidate.parameters.get("chunks", "auto"))
    chunks = candidate.stored["chunks"]
    return "contiguous" if chunks is None else value_text(chunks)
