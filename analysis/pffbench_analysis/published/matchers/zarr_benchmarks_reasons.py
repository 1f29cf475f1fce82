"""Differences between study 4 and a run of the workload `codecs`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pffbench.summary.summary import Summary
from pffbench_analysis.published.counterparts import Reason

_VERSIONS = ("zarr", "numcodecs", "tensorstore", "h5py", "netCDF4", "hdf5plugin", "zarrs")
_COMPUTED = Reason(
    "what is compressed",
    "a tomogram of a heart and two segmentations of a brain",
    "volumes that are computed, fitted to the published ratios",
    "ratios: within 6 % (image, sparse) and 25 % (dense) on the whole volume; times with them",
)
_ALWAYS = (
    Reason(
        "what a time holds",
        "write: metadata, encoding, files, and in TensorStore the sync of each; read: opening too",
        "write and read alone; create, define, open and sync are phases of their own",
        "all: a few percent of times as long as these",
    ),
    Reason(
        "where an array is read to",
        "a new one",
        "memory that is there; checked afterwards, off the timer",
        "read: new memory costs as much as reading from the page cache",
    ),
    Reason(
        "how ratios are made",
        "bytes of the array over those stored, with what pads chunks at the edges; TensorStore's "
        "with metadata",
        "the same without metadata",
        "ratios: sparse labels most, of which little is stored",
    ),
)


def reasons(summary: Summary) -> Iterator[Reason]:
    """Yield the differences common to all runs, then those specific to the run."""
    record = summary.record
    cases = [case for case in summary.cases if not case.raw]
    parameters = [record.cases[case.sample.case]["parameters"] for case in cases]
    if any(p.get("source") != "file" for p in parameters):
        yield _COMPUTED
    yield from _ALWAYS
    shapes = sorted({"×".join(map(str, p.get("shape") or ())) for p in parameters})
    if shapes != ["806×629×629"]:
        yield Reason(
            "volume",
            "806×629×629, 638 MB",
            f"{', '.join(shapes)}; times are multiplied by how much larger the study's is",
            "times: what a call costs by itself is multiplied too",
        )
    yield Reason(
        "processes and threads",
        "one process; zarr-python 2 one thread, zarr-python 3 a few, TensorStore all 72 CPUs",
        f"{record.ranks} rank(s) on {_cores(record.provenance)}; one thread each in matched "
        "settings, the library's own number in defaults (see the notes of each case)",
        "all; most of all TensorStore's",
    )
    chunks = {"×".join(map(str, c)) for p in parameters if isinstance(c := p.get("chunks"), list)}
    if chunks - {"128×128×128"} and shapes != ["806×629×629"]:
        yield Reason(
            "what pads the chunks",
            "15 % with chunks of 128, 7 % with chunks of 64",
            "as much with chunks of 128; other chunks pad a part of the volume by another share",
            "ratios and times with other chunks than those of 128",
        )
    durability = sorted({str(p.get("durability")) for p in parameters})
    yield Reason(
        "until when",
        "TensorStore until each file is synced, the others until they are written",
        f"TensorStore both ways; durability {', '.join(durability)}, sync a phase of its own",
        "write of TensorStore",
    )
    cache = sorted({case.cache for case in cases if case.cache})
    if cache != ["warm"]:
        yield Reason(
            "page cache",
            "warm: what is read has just been written",
            ", ".join(cache) or "not recorded",
            "read",
        )
    repetitions = sorted({p.seconds.n for case in cases for p in case.phases.values()})
    turns = "libraries in turns"
    if len({case.run for case in cases}) > 1:
        turns += ", but for those of another environment (zarr-python 2), which came after"
    yield Reason(
        "statistic",
        "mean of 5 rounds, libraries hours apart; single rounds of TensorStore three times as long",
        f"median of {'–'.join(map(str, repetitions))} repetitions, {turns}",
        "all: a slow round moves a mean, not a median",
    )
    yield from _machine(record.provenance)


def _cores(provenance: Mapping[str, Any]) -> str:
    host = (provenance.get("hosts") or [{}])[0]
    return f"{host.get('cpus') or host.get('cores') or 'an unknown number of'} cores"


def _machine(provenance: Mapping[str, Any]) -> Iterator[Reason]:
    host = (provenance.get("hosts") or [{}])[0]
    here = ", ".join(str(v) for v in (host.get("cpu_model"), host.get("os")) if v)
    system = str(provenance.get("filesystem", {}).get("type") or "not recorded")
    yield Reason(
        "machine and storage",
        "Xeon w9-3475X with 72 logical CPUs, Windows 11, local SSD",
        f"{here or 'not recorded'}, {system}",
        "all; small files are dear on Windows, which speaks against small chunks there",
    )
    libraries = provenance.get("software", {}).get("libraries", {})
    told = [
        f"{name} {facts['version']}"
        for wanted in _VERSIONS
        for name, facts in libraries.items()
        # Joined runs may have another one, such as `zarr (RUN)`.
        if name.partition(" ")[0] == wanted and isinstance(facts, Mapping) and facts.get("version")
    ]
    yield Reason(
        "versions",
        "zarr 2.18.7 with numcodecs 0.15.1, zarr 3.1.1 with numcodecs 0.16.2, tensorstore 0.1.76",
        ", ".join(told) or "not recorded",
        "all; equal codecs of different builds have different ratios",
    )
