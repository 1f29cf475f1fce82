"""Study 2: HDF5's chunk cache and compressed data, repeated by the workload `chunk_cache`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pffbench.summary.summary import CaseSummary, Summary
from pffbench.units import Size
from pffbench_analysis.published.counterparts import Match, PublishedValue
from pffbench_analysis.published.reasons import Reason, listed, reasons_of, when
from pffbench_analysis.published.values import published_values

_STUDY = "hdf5-compression-tuning"
#: The dataset of the study: number and shape of its granules of float32.
_GRANULE, _GRANULES, _ITEMSIZE = (4, 30, 9, 717), 15, 4
_PHASES = {"read": "read", "repack": "repack"}
_ACCESS = {"rows": "row", "chunks": "chunk"}
#: Names of rewriting; the study used the program.
_BY_PROGRAM, _BY_LIBRARY = "h5repack", "repacked by the library"
#: Way of the study.
_NEAREST = ("file_per_process", "defaults", "big-endian", "warm")
#: Operation, codec, chunk, cache in bytes, access and datasets; cache and access are empty for
#: repacking.
Key = tuple[str, str, str, str, str, str]


class Hdf5CompressionTuning:
    """Matcher of cases by codec, chunk, size of the cache and access; times scale with granules."""

    def matches(self, summary: Summary, values: Sequence[PublishedValue]) -> list[Match]:
        """Return the numbers with a counterpart in the run.

        A case counts when HDF5 holds granules of the published shape and its cache is set to a
        published size. Fewer granules than the published 15 stand for them: the time of each is
        that of its own chunk, so 15 take 15 times as long as one. Of two published numbers
        of one case the white paper's counts.
        """
        index = _index(values)
        found = []
        for case in summary.cases:
            entry = summary.entry(case)
            p, options = entry["parameters"], entry.get("options", {})
            if case.raw or not _is_alike(p):
                continue
            for operation, phase in _PHASES.items():
                key = _key(operation, p, options)
                value = None if key is None else index.get(key)
                if value is not None and phase in case.phases:
                    found.append(_match(value, case, phase, p, summary.record.ranks))
        return found

    def reasons(self, summary: Summary) -> list[Reason]:
        """Return the differences between study and run, with the decodes that the run counted."""
        matches = self.matches(summary, published_values(_STUDY))
        cases = {match.case.sample.case: match.case for match in matches}
        entries = [summary.record.cases[name] for name in cases]
        decodes = (
            f"{m.alternative} ({m.variant}): {m.case.counts['read', 'decodes_counted']:.0f}"
            for m in matches
            if m.phase.phase == "read" and ("read", "decodes_counted") in m.case.counts
        )
        granules = {_granules(entry["parameters"], summary.record.ranks) for entry in entries}
        fewer = ", ".join(map(str, sorted(granules - {_GRANULES})))
        ratios = {
            f"{case.nbytes / case.disk_bytes:.4g}"
            for case in cases.values()
            if case.disk_bytes and "gzip" in case.stored_as
        }
        facts = [entry.get("transfer_facts") or {} for entry in entries]
        usual = sorted({f["chunk_cache_of_the_library"] for f in facts if len(f) > 1})
        of_files = f"{', '.join(sorted(ratios))} (of the whole file)"
        rows = {
            "decodes": when(True, decodes=listed(decodes, "not counted (counters: true counts)")),
            "repacking": when(any(match.phase.phase == "repack" for match in matches)),
            "cache": when(any(case.cache != "warm" for case in cases.values())),
            "granules": when(fewer, granules=fewer),
            "ratio": when(True, ratios=of_files if ratios else "nothing compressed"),
            "own_cache": when(True, usual=", ".join(usual) or "not recorded"),
            "machine": when(True, library=_library(summary)),
        }
        return reasons_of(_STUDY, summary, cases.values(), rows)

    def claims(self, values: Sequence[PublishedValue]) -> list[str]:
        """Return statements of the study's text, checked against its numbers and HDF5's rules."""
        index = _index(values)

        def seconds(codec: str, mebibytes: int, access: str = "row") -> float:
            return index["read", codec, "4x30x9x717", str(mebibytes * 2**20), access, "1"].value

        slow, fast = seconds("gzip", 1), seconds("gzip", 3)
        decodes = {mebibytes: _decodes(mebibytes * 2**20) for mebibytes in (1, 3)}
        return [
            f"compressed rows are said to take more than 3000 times as long as uncompressed ones: "
            f"{slow / seconds('none', 1):.0f} times; a cache of 3 MiB makes them "
            f"{slow / fast:.0f} times faster",
            f"by HDF5's rules rows decode {decodes[1]:,} chunks through a cache of 1 MiB and "
            f"{decodes[3]} through one of 3 MiB: {1e3 * slow / decodes[1]:.3g} and "
            f"{1e3 * fast / decodes[3]:.3g} ms for each, so the times follow from the decodes",
            "the six minutes are told of 1080 reads, which are those of one chunk; at "
            f"{1e3 * slow / decodes[1]:.3g} ms a decode they are {1080 * slow / decodes[1]:.0f} s",
            f"decoding each chunk once costs {seconds('gzip', 1, 'chunk'):.3g} s less "
            f"{seconds('none', 1, 'chunk'):.3g} s of the whole dataset",
        ]


MATCHER = Hdf5CompressionTuning()


def _decodes(nbytes: int) -> int:
    """Count the decodes of all rows of the published dataset through a cache of a size.

    Its chunk is a granule. One that fits is decoded once, another one with each of its rows.
    """
    fits = math.prod(_GRANULE) * _ITEMSIZE <= nbytes
    return _GRANULES * (1 if fits else math.prod(_GRANULE[:-1]))


def _index(values: Sequence[PublishedValue]) -> dict[Key, PublishedValue]:
    found: dict[Key, PublishedValue] = {}
    for value in values:
        p = value.parameters
        if p["operation"] in _PHASES:
            key = (
                p["operation"], p["codec"], p["chunk"], p["cache_bytes"], p["access"],
                p["datasets"],
            )  # fmt: skip
            found.setdefault(key, value)  # the table comes first
    return found


def _is_alike(p: Mapping[str, Any]) -> bool:
    return (
        p.get("workload") == "chunk_cache"
        and p.get("backend") == "hdf5"
        and tuple(p.get("shape") or ()) == _GRANULE
        and (p.get("dtype") or "float32") == "float32"
        and p.get("write") == "chunks"
    )


def _key(operation: str, p: Mapping[str, Any], options: Mapping[str, Any]) -> Key | None:
    """Return the operation of a case in the study's terms; None if the study lacks it."""
    chunks, anew = p["repack_chunks"] or p["chunks"], p.get("repack_codec")
    if operation == "repack" and anew not in (None, p["codec"]):
        return None  # compression was removed too, but its time is not published
    if chunks in ("auto", "block") and p["settings"] == "matched":
        chunks = _GRANULE
    if not isinstance(chunks, (list, tuple)) or (p["codec"] == "gzip" and p["level"] != 6):
        return None
    codec = anew or ("none" if p["codec"] == "auto" else p["codec"])
    read = operation == "read"
    cache = str(options.get("chunk_cache")) if read else ""
    datasets = p.get("datasets", 1) if read else _rewritten(p)
    access = _ACCESS[p["read"]] if read else ""
    return operation, codec, "x".join(map(str, chunks)), cache, access, str(datasets)


def _rewritten(p: Mapping[str, Any]) -> int:
    """Return the number of datasets of a rewritten store."""
    return int(p.get("repack_datasets") or p.get("datasets", 1))


def _match(
    value: PublishedValue, case: CaseSummary, phase: str, p: Mapping[str, Any], ranks: int
) -> Match:
    granules = _granules(p, ranks)
    stands_for = "" if granules == _GRANULES else f" for {_GRANULES}"
    told = _variant(p)
    by_library = value.parameters["operation"] == "repack" and p["repack_with"] == "library"
    words = _alternative(value, p)
    return Match(
        value,
        case,
        case.phases[phase],
        factor=_GRANULES / granules,
        subject=f"{granules} granule{'s' if granules > 1 else ''}{stands_for}",
        operation=_operation(value),
        variant=", ".join(told),
        alternative=words,
        nearest=told == _NEAREST,
        known_as=words.replace(_BY_LIBRARY, _BY_PROGRAM) if by_library else "",
        beyond=by_library,
    )


def _granules(p: Mapping[str, Any], ranks: int) -> int:
    return int(p["granules"] or p["granules_per_rank"] * ranks)


def _library(summary: Summary) -> str:
    h5py = summary.record.provenance.get("software", {}).get("libraries", {}).get("h5py")
    known = h5py if isinstance(h5py, Mapping) else {}
    names = {"version": "h5py", "hdf5": "HDF5"}
    versions = [f"{name} {known[key]}" for key, name in names.items() if known.get(key)]
    return ", ".join(versions) or "versions not recorded"


def _operation(value: PublishedValue) -> str:
    """Name the timed operation; compressed and plain data are ordered separately."""
    known = value.parameters
    if known["operation"] == "repack":
        return "repack"
    return "read compressed" if known["codec"] == "gzip" else "read plain"


def _variant(p: Mapping[str, Any]) -> tuple[str, ...]:
    told = [p["layout"], p["settings"], "big-endian" if p["byte_order"] == "big" else "native"]
    told.append(p["cache"])
    if p["layout"] != "file_per_process":
        told.append(f"{p['read_transfer'] or p['transfer']} reads, {p['sharing']}")
    return tuple(told)


def _alternative(value: PublishedValue, p: Mapping[str, Any]) -> str:
    """Name the alternative that the study compares: data, chunks, cache and access."""
    known = value.parameters
    words = ["gzip 6" if known["codec"] == "gzip" else "plain", known["chunk"].replace("x", "×")]
    if known["cache_bytes"]:
        words += [f"{Size(int(known['cache_bytes']))} cache", f"by {known['access']}"]
    if p["repack_chunks"] or p.get("repack_codec"):
        words.append(_BY_PROGRAM if p["repack_with"] == "h5repack" else _BY_LIBRARY)
    if known["operation"] == "repack" and p.get("datasets", 1) > 1:
        words.append(f"{_rewritten(p)} of {p['datasets']} datasets")
    return ", ".join(words)
