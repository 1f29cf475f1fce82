"""Study 2: HDF5's chunk cache and compressed data, repeated by the workload `chunk_cache`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pffbench.results.summary import CaseSummary, Summary
from pffbench.units import Size
from pffbench_studies.published.counterparts import Match, cases_like, in_words
from pffbench_studies.published.matchers import Matcher
from pffbench_studies.published.reasons import Fields, libraries_of, listed, when
from pffbench_studies.published.values import PublishedValue, indexed

#: The dataset of the study: number and shape of its granules of float32.
_GRANULE, _GRANULES = (4, 30, 9, 717), 15
#: Phases that the study timed, by its own names.
_PHASES = ("read", "repack")
_ACCESS = {"rows": "row", "chunks": "chunk"}
#: Names of rewriting; the study used the program.
_BY_PROGRAM, _BY_LIBRARY = "h5repack", "repacked by the library"
#: Way of the study.
_NEAREST = ("one file per rank", "library defaults", "big-endian", "warm")
#: Columns that a case has to agree with; cache and access are empty for repacking.
_KEYS = ("operation", "codec", "chunk", "cache_bytes", "access", "datasets")


class Hdf5CompressionTuning(Matcher):
    """Matcher of cases by codec, chunk, size of the cache and access; times scale with granules."""

    def matches(self, summary: Summary, values: Sequence[PublishedValue]) -> list[Match]:
        """Return the numbers with a counterpart in the run.

        A case counts when HDF5 holds granules of the published shape and its cache is set to a
        published size. Fewer granules than the published 15 stand for them: the time of each is
        that of its own chunk, so 15 take 15 times as long as one. Of two published numbers
        of one case the white paper's counts.
        """
        # Of several numbers of a case that of the white paper comes first.
        index = indexed(values, lambda v: tuple(v.parameters[key] for key in _KEYS))
        cases = cases_like(
            summary, workload="study_chunk_cache", backend="hdf5", shape=list(_GRANULE),
            dtype=(None, "float32"), write="chunks",
        )  # fmt: skip
        return [
            _match(value, c, phase)
            for c in cases
            for phase in _PHASES
            if phase in c.phases and (value := index.get(_key(phase, c))) is not None
        ]

    def facts(self, summary: Summary, matches: Sequence[Match]) -> Mapping[str, Sequence[Fields]]:
        """Return what was decoded, stored and left out."""
        cases = list({match.case.name: match.case for match in matches}.values())
        decodes = (
            f"{m.alternative} ({m.variant}): {m.case.counts['read', 'decodes_counted']:.0f}"
            for m in matches
            if m.phase.phase == "read" and ("read", "decodes_counted") in m.case.counts
        )
        granules = {case.parameters["granules"] for case in cases}
        fewer = ", ".join(map(str, sorted(granules - {_GRANULES})))
        ratios = {
            f"{case.nbytes / case.disk.stored:.4g}"
            for case in cases
            if case.disk and "gzip" in str(case.entry.stored_as)
        }
        facts = [case.entry.transfer_facts for case in cases]
        usual = {f["chunk_cache_of_the_library"] for f in facts if len(f) > 1}
        of_files = f"{', '.join(sorted(ratios))} (of the whole file)"
        known = libraries_of(summary.record.provenance).get("h5py", {})
        names = {"version": "h5py", "hdf5": "HDF5"}
        versions = (f"{name} {known[key]}" for key, name in names.items() if known.get(key))
        return {
            "decodes": when(True, decodes=listed(decodes, "not counted (counters: true counts)")),
            "repacking": when(any(match.phase.phase == "repack" for match in matches)),
            "cache": when(any(case.cache != "warm" for case in cases)),
            "granules": when(fewer, granules=fewer),
            "ratio": when(True, ratios=of_files if ratios else "nothing compressed"),
            "own_cache": when(True, usual=listed(sorted(usual), between=", ")),
            "machine": when(True, library=listed(versions, "versions not recorded", ", ")),
        }


MATCHER = Hdf5CompressionTuning()


def _key(operation: str, c: CaseSummary) -> tuple[str, ...]:
    """Return the operation of a case in the study's terms; none if the study lacks it."""
    p = c.parameters
    chunks, anew = p["repack_chunks"] or p["chunks"], p.get("repack_codec")
    if operation == "repack" and anew not in (None, p["codec"]):
        return ()  # compression was removed too, but its time is not published
    if chunks in ("auto", "rank_part") and p["settings"] == "matched":
        chunks = _GRANULE
    if isinstance(chunks, str) or (p["codec"] == "gzip" and p["level"] != 6):
        return ()
    codec = anew or ("none" if p["codec"] == "auto" else p["codec"])
    chunk = "x".join(map(str, chunks))
    if operation == "repack":
        return operation, codec, chunk, "", "", str(_rewritten(p))
    cache, datasets = c.options.get("chunk_cache"), p.get("datasets", 1)
    return operation, codec, chunk, str(cache), _ACCESS[p["read"]], str(datasets)


def _rewritten(p: Mapping[str, Any]) -> int:
    """Return the number of datasets of a rewritten store."""
    return int(p.get("repack_datasets") or p.get("datasets", 1))


def _match(value: PublishedValue, c: CaseSummary, phase: str) -> Match:
    p = c.parameters
    granules = p["granules"]
    stands_for = "" if granules == _GRANULES else f" for {_GRANULES}"
    told = _variant(c)
    by_library = phase == "repack" and p["repack_with"] == "library"
    words = _alternative(value, p)
    plain = "read compressed" if value.parameters["codec"] == "gzip" else "read plain"
    return Match(
        value,
        c,
        c.phases[phase],
        factor=_GRANULES / granules,
        subject=f"{granules} granule{'s' if granules > 1 else ''}{stands_for}",
        operation=phase if phase == "repack" else plain,  # which are ordered separately
        variant=", ".join(told),
        alternative=words,
        nearest=told == _NEAREST,
        known_as=words.replace(_BY_LIBRARY, _BY_PROGRAM) if by_library else "",
        beyond=by_library,
    )


def _variant(c: CaseSummary) -> tuple[str, ...]:
    p = c.parameters
    order = "big-endian" if p["byte_order"] == "big" else "native"
    told = (*in_words(c, "files", "settings"), order, p["cache"])
    if p["files"] == "per_rank":
        return told
    return *told, f"{p['read_transfer'] or p['transfer']} reads, {p['sharing']}"


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
