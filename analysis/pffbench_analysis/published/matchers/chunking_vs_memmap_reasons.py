"""Differences between study 3 and a run of the workload `slices`, with the bytes moved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pffbench.summary.summary import AMPLIFICATIONS, CaseSummary, Summary, amplification
from pffbench_analysis.published.counterparts import Match, Reason

FORMATS = {"hdf5": "HDF5", "memmap": "memmap"}
#: The study's name of a slice, by the axis it is normal to.
SLICES = {0: "x", 2: "z"}
#: Bytes from one element of the worst slice to the next.
_STRIDE = 621
#: Largest ratio of longest to shortest side for chunks that prefer no axis; it is 7.8 for the
#: guessed ones of the published volume.
_NO_AXIS = 8

_ALWAYS = (
    Reason(
        "what is timed",
        "a whole process, by the shell: start of Python and imports, open, read, end",
        "open, read and close; imports and the start are not in it",
        "all; most of all the map along its best axis, whose 0.385 s are mostly the start",
    ),
    Reason(
        "where the files are",
        "in two directories, perhaps on two disks",
        "in one directory",
        "HDF5 against the map",
    ),
    Reason(
        "page cache",
        "dropped by root before each process",
        "the file is synced and evicted before each read; what is resident is measured",
        "all: directory entries and inodes stay cached here",
    ),
    Reason(
        "the disk",
        "not told; 6.6 ms for each page is what a disk that turns needs to seek",
        "as told below; without seeks, and with pages fetched ahead, the axes lie closer together, "
        "as the study expects of an SSD",
        "the map along its worst axis; bytes moved are the same on any device",
    ),
)


def standing_beside(summary: Summary) -> list[CaseSummary]:
    """Return the cases of a run that do the study's work, in any way."""
    return [case for case in summary.cases if _does_the_work(_entry(summary, case))]


def reasons_of(summary: Summary, matches: Sequence[Match]) -> list[Reason]:
    """Return the differences between study and run."""
    cases = [match.case for match in matches]
    return [*_moved(cases, summary), *_told_of(cases, summary), *_ALWAYS, *_of_the_run(summary)]


def _does_the_work(entry: Mapping[str, Any]) -> bool:
    p: Mapping[str, Any] = entry["parameters"]
    options: Mapping[str, Any] = entry.get("options", {})
    if p.get("workload") != "slices" or p.get("backend") not in FORMATS:
        return False
    plain = (p.get("position"), p.get("count"), p.get("cut"), p.get("dtype"), p.get("codec"))
    if plain[:4] != ("first", 1, "even", "uint8") or plain[4] not in ("auto", "none"):
        return False
    if p.get("axis") not in SLICES or p["shape"][0] != _STRIDE or p["cache"] != "dropped":
        return False
    if p["backend"] == "memmap":
        return bool(options.get("order") == "F")
    chunks = p["chunks"]
    if isinstance(chunks, list):
        return bool(max(chunks) <= _NO_AXIS * min(chunks))
    guessed = bool(options.get("guess_chunks")) and chunks == "auto"
    return guessed and p["settings"] == "defaults"


def _moved(cases: Sequence[CaseSummary], summary: Summary) -> Iterator[Reason]:
    """Yield the bytes moved for each byte wanted."""
    told = []
    for case in cases:
        times = {
            heading.lstrip("×"): amplification(case, counter)
            for heading, counter in AMPLIFICATIONS.items()
        }
        if times["touched"] is None:
            continue
        slice_ = SLICES[_entry(summary, case)["parameters"]["axis"]]
        numbers = ", ".join(f"{k} {v:.3g}" for k, v in times.items() if v is not None)
        name = f"{FORMATS[case.sample.backend]} {slice_} {case.sample.layout} {case.cache}"
        told.append(f"{name} {case.variant}".strip() + f": {numbers}")
    yield Reason(
        "bytes moved for each byte wanted",
        "not told; by the file's order 621 of the map across x and 1 across z, by the chunks that "
        "h5py guesses 20 and 84 of HDF5",
        "; ".join(dict.fromkeys(told)) or "not counted (counters: true counts)",
        "all: this, and not the format, is what the times follow from",
    )


def _told_of(cases: Sequence[CaseSummary], summary: Summary) -> Iterator[Reason]:
    """Yield the differences of the cases."""
    entries = [_entry(summary, case) for case in cases]
    shapes = {"×".join(map(str, entry["parameters"]["shape"])) for entry in entries}
    if shapes != {"621×4991×2600"}:
        yield Reason(
            "size of the volume",
            "621×4991×2600",
            ", ".join(sorted(shapes)),
            "all: less is read; the stride of the worst axis is the same",
        )
    orders = sorted({o["destination"] for e in entries if "destination" in (o := e["options"])})
    if orders and orders != ["C"]:
        yield Reason(
            "order of the copy in memory",
            "C, against the order of the file",
            " and ".join(orders),
            "the map across x: a copy in the order of the file goes through it once",
        )
    stored = dict.fromkeys(c.stored_as for c in cases if c.sample.backend == "hdf5")
    yield Reason(
        "chunks",
        "automatic, not told; h5py guesses 20×156×82 for this shape",
        "; ".join(stored) or "no HDF5 case",
        "HDF5: how many chunks a slice lies in",
    )


def _of_the_run(summary: Summary) -> Iterator[Reason]:
    record = summary.record
    repetitions = sorted({p.seconds.n for c in summary.cases for p in c.phases.values()})
    yield Reason(
        "statistic",
        "one run of each",
        f"median of {'–'.join(map(str, repetitions))} repetition(s), in turns",
        "all",
    )
    nodes = len(set(record.topology.get("nodes", [0])))
    if record.ranks > 1:
        yield Reason(
            "processes",
            "1",
            f"{record.ranks} on {nodes} node(s); with layout file_per_process each reads a slice "
            "of a file of its own, with shared all read one slice",
            "all",
        )
    host = (record.provenance.get("hosts") or [{}])[0]
    here = (host.get("cpu_model"), host.get("os"), _filesystem(record.provenance))
    yield Reason(
        "machine and storage",
        "not told",
        ", ".join(str(word) for word in here if word) or "not recorded",
        "all",
    )


def _filesystem(provenance: Mapping[str, Any]) -> str:
    found = provenance.get("filesystem", {}).get("type")
    return f"file system {found}" if found else ""


def _entry(summary: Summary, case: CaseSummary) -> Mapping[str, Any]:
    found: Mapping[str, Any] = summary.record.cases[case.sample.case]
    return found
