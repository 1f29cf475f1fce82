"""Differences between study 2 and a run of the workload `chunk_cache`, with counted decodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pffbench.summary.summary import CaseSummary, Summary
from pffbench_analysis.published.counterparts import Match, Reason

_PUBLISHED_RATIO = 1.076

_ALWAYS = (
    Reason(
        "what is timed",
        "property lists, opening, selecting and reading; closing is outside",
        "reading alone; opening, closing and preparing are phases of their own or off the timer",
        "read: less than a millisecond, which shows in whole chunks read without compression",
    ),
    Reason(
        "data",
        "measured by the sounder CrIS, gzip 6 makes them 1.076 times smaller",
        "generated like them, see the ratio below",
        "little: a chunk takes as long to decode as it has bits",
    ),
)
_REPACKING = Reason(
    "what repacking rewrites",
    "a file that holds many datasets, by h5repack",
    "a file with these datasets alone, by h5repack or through the library",
    "repack: less here",
)
_CACHE = Reason(
    "page cache",
    "not told; 0.1 s for 46 MB mean that it was warm",
    "dropped in some cases, where told",
    "read, little where data are decoded",
)


def reasons_of(summary: Summary, matches: Sequence[Match]) -> list[Reason]:
    """Return the differences between study and run.

    Parameters
    ----------
    summary : Summary
        The run.
    matches : sequence of Match
        Its matches with the study.
    """
    cases = {match.case.sample.case: match.case for match in matches}
    found = [_decoded(matches), *_ALWAYS]
    if any(match.phase.phase == "repack" for match in matches):
        found.append(_REPACKING)
    if any(case.cache != "warm" for case in cases.values()):
        found.append(_CACHE)
    found += _of_the_cases(summary, list(cases.values()))
    return [*found, *_of_the_run(summary, list(cases.values()))]


def _decoded(matches: Sequence[Match]) -> Reason:
    told = [
        f"{match.alternative} ({match.variant}): {match.case.counts['read', 'decodes_counted']:.0f}"
        for match in matches
        if match.phase.phase == "read" and ("read", "decodes_counted") in match.case.counts
    ]
    return Reason(
        "chunks that were decoded",
        "not told; by HDF5's rules 16 200 by rows through 1 MiB, 15 through 3 MiB, 60 small ones",
        "; ".join(told) or "not counted (counters: true counts)",
        "read: this is what the times follow from",
    )


def _of_the_cases(summary: Summary, cases: Sequence[CaseSummary]) -> Iterator[Reason]:
    """Yield the differences of the cases."""
    entries = [summary.record.cases[case.sample.case] for case in cases]
    fewer = {
        granules for entry in entries if (granules := _granules(entry, summary.record.ranks)) != 15
    }
    if fewer:
        yield Reason(
            "number of granules",
            "15, and 16 200 rows",
            f"{', '.join(map(str, sorted(fewer)))}; times are brought to 15",
            "none where a granule takes as long as the next; opening counts once, not 15 times",
        )
    ratios = sorted(
        {
            f"{case.nbytes / case.disk_bytes:.4g}"
            for case in cases
            if case.disk_bytes and "gzip" in case.stored_as
        }
    )
    yield Reason(
        "compression ratio",
        str(_PUBLISHED_RATIO),
        f"{', '.join(ratios)} (of the whole file)" if ratios else "nothing compressed",
        "read of compressed data",
    )
    facts = [entry.get("transfer_facts") or {} for entry in entries]
    usual = sorted({f["chunk_cache_of_the_library"] for f in facts if len(f) > 1})
    yield Reason(
        "HDF5's own chunk cache",
        "1 MiB in 521 slots, w0 0.75, as until version 2.0",
        f"{', '.join(usual) or 'not recorded'}; set for each case",
        "none: the cache is set there and here",
    )


def _granules(entry: Mapping[str, Any], ranks: int) -> int:
    p = entry["parameters"]
    return int(p["granules"] or p["granules_per_rank"] * ranks)


def _of_the_run(summary: Summary, cases: Sequence[CaseSummary]) -> Iterator[Reason]:
    record = summary.record
    repetitions = sorted({p.seconds.n for case in cases for p in case.phases.values()})
    yield Reason(
        "statistic",
        "not told; numbers are called approximate",
        f"median of {'–'.join(map(str, repetitions))} repetition(s), in turns",
        "all",
    )
    nodes = len(set(record.topology.get("nodes", [0])))
    if record.ranks > 1:
        yield Reason(
            "processes",
            "1",
            f"{record.ranks} on {nodes} node(s); time of the slowest",
            "all: with R ranks each reads a part, if there are granules enough",
        )
    host = (record.provenance.get("hosts") or [{}])[0]
    libraries = record.provenance.get("software", {}).get("libraries", {})
    h5py = libraries.get("h5py")
    here = (host.get("cpu_model"), host.get("os"), _version(h5py))
    yield Reason(
        "machine and library",
        "not told; HDF5 1.8 or 1.10 by the date",
        ", ".join(str(v) for v in here if v) or "not recorded",
        "all",
    )


def _version(h5py: Any) -> str:
    if not isinstance(h5py, Mapping):
        return ""
    names = {"version": "h5py", "hdf5": "HDF5"}
    return ", ".join(f"{name} {h5py[key]}" for key, name in names.items() if h5py.get(key))
