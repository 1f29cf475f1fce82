"""Differences between study 1 and a run of the workload `datasets`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pffbench.summary.summary import CaseSummary, Summary
from pffbench_analysis.published.counterparts import Reason

FORMATS = {"hdf5": "HDF5", "netcdf4": "netCDF4", "zarr": "Zarr", "zarr2": "Zarr"}


@dataclass(frozen=True)
class Beside:
    """A case that is compared with the study.

    Parameters
    ----------
    case : CaseSummary
        The case.
    parameters, options : mapping
        Its entries in `run.json`.
    nearest : bool
        Whether it is of the variant that is nearest to the study.
    """

    case: CaseSummary
    parameters: Mapping[str, Any]
    options: Mapping[str, Any]
    nearest: bool


@dataclass(frozen=True)
class StudyChoice:
    """A choice of the study that a case may share.

    Parameters
    ----------
    about, there, here, bears_on : str
        See `Reason`, for cases that differ.
    differs : callable
        Whether a case differs.
    """

    about: str
    there: str
    here: str
    bears_on: str
    differs: Callable[[Beside], bool]

    def reason(self, cases: Sequence[Beside]) -> Reason | None:
        """Return the difference; None where all cases do as the study did."""
        other = [case for case in cases if self.differs(case)]
        if not other:
            return None
        here = self.here
        if any(case.nearest for case in cases) and not any(case.nearest for case in other):
            here = f"in the nearest variant as there; in others: {here}"
        return Reason(self.about, self.there, here, self.bears_on)


CHOICES = (
    StudyChoice(
        "what a read is",
        "the array is read, turned into text and printed, all in the time",
        "into memory; checked afterwards, off the timer",
        "read: of small arrays there mostly the time of NumPy's text; far less here",
        lambda one: one.parameters.get("read_sink") != "print",
    ),
    StudyChoice(
        "netCDF dimensions",
        "unlimited, and shared by all variables: each access asks every variable for its length",
        "fixed, or each variable's own",
        "write, read of netCDF4: rose there with the number of datasets; flat here",
        lambda one: (
            one.case.sample.backend == "netcdf4"
            and one.options.get("dimensions") != "unlimited_shared"
        ),
    ),
    StudyChoice(
        "when netCDF4 creates",
        "put off by the library to the first write",
        "ended within define",
        "create of netCDF4: nearly nothing there, all of it here; write the reverse",
        lambda one: (
            one.case.sample.backend == "netcdf4" and one.options.get("enddef") != "implicit"
        ),
    ),
    StudyChoice(
        "order of the loop",
        "create a dataset, write it, then the next; open one, read it, then the next",
        "all are defined, then all written; all opened, then all read",
        "create, write",
        lambda one: one.parameters.get("order") != "interleaved",
    ),
    StudyChoice(
        "page cache",
        "copied and renamed between writing and reading, which leaves the copy cached",
        "warm, dropped or shifted, and measured",
        "read",
        lambda one: one.parameters.get("cache") != "copied",
    ),
    StudyChoice(
        "until when",
        "no flush or sync; close is not timed",
        "flushed or synced; close, flush and sync are phases of their own",
        "write: what libraries leave to close is in neither number",
        lambda one: one.parameters.get("durability") != "close",
    ),
    StudyChoice(
        "what Zarr compresses with",
        "Blosc-LZ4, level 5, in format 2: the library's own choice then",
        "the library's own choice now, or nothing, as told below",
        "create, write, read of Zarr",
        lambda one: FORMATS[one.case.sample.backend] == "Zarr" and not _compresses_alike(one),
    ),
    StudyChoice(
        "what a call is",
        "h5py's slicing: the selection is parsed and data spaces are made within the time",
        "H5Dwrite and H5Dread through h5py's low level, with data spaces made before",
        "write, read of HDF5: shorter here",
        lambda one: one.case.sample.backend == "hdf5" and one.options.get("api") != "high_level",
    ),
)


def _compresses_alike(one: Beside) -> bool:
    """Whether Zarr compresses with Blosc-LZ4 in format 2, as zarr-python 2 does by default."""
    codec = one.parameters.get("codec")
    if one.case.sample.backend == "zarr2":
        return codec == "blosc" or (codec == "auto" and one.parameters["settings"] == "defaults")
    return (one.options.get("format"), codec) == (2, "blosc")


def reasons_for(
    summary: Summary, cases: Sequence[Beside], scales: Collection[int]
) -> Iterator[Reason]:
    """Yield the differences.

    Parameters
    ----------
    summary : Summary
        The run.
    cases : sequence of Beside
        Its cases with published counterparts.
    scales : collection of int
        Ratios of the study's number of datasets to the run's.
    """
    for choice in CHOICES:
        if reason := choice.reason(cases):
            yield reason
    if max(scales, default=1) > 1:
        parts = ", ".join("as many" if s == 1 else f"1/{s} of them" for s in sorted(scales))
        yield Reason(
            "number of datasets",
            "2048, 4096, 8192",
            parts,
            "what grows with their number: netCDF4 with shared unlimited dimensions",
        )
    yield from _of_the_run(summary, [one.case for one in cases])


def _of_the_run(summary: Summary, cases: Sequence[CaseSummary]) -> Iterator[Reason]:
    """Yield the differences due to the conditions of the run."""
    record = summary.record
    repetitions = sorted({p.seconds.n for case in cases for p in case.phases.values()})
    nodes = len(set(record.topology.get("nodes", [0])))
    yield Reason(
        "how arrays are stored",
        "HDF5 contiguous; netCDF4 chunked, with fill values; Zarr in automatic chunks, compressed "
        "with Blosc-LZ4",
        "; ".join(dict.fromkeys(map(_stored, cases))),
        "write, read; with settings `defaults` libraries choose by themselves here too",
    )
    if record.ranks > 1:
        yield Reason(
            "processes",
            "1",
            f"{record.ranks} on {nodes} node(s); time of the slowest rank over the datasets that "
            "it works on",
            "all: ranks share disk and memory, and cores where there are fewer of them",
        )
    yield Reason(
        "statistic",
        "mean of 5 trials with its standard deviation, formats one after the other",
        f"median of {'–'.join(map(str, repetitions))} repetitions, formats in turns",
        "all: a slow trial moves a mean, not a median",
    )
    yield from _machine(record.provenance, {case.sample.backend for case in cases})


def _stored(case: CaseSummary) -> str:
    name = FORMATS.get(case.sample.backend, case.sample.backend)
    return f"{name} {case.sample.settings}: {case.stored_as}"


def _machine(provenance: Mapping[str, Any], backends: Collection[str]) -> Iterator[Reason]:
    host = (provenance.get("hosts") or [{}])[0]
    memory = host.get("memory_bytes")
    size = f"{memory / 2**30:.0f} GiB memory" if memory else ""
    yield Reason(
        "machine",
        "Xeon Silver 4215R, 196 GB memory, Ubuntu 18.04.5",
        ", ".join(str(v) for v in (host.get("cpu_model"), size, host.get("os")) if v)
        or "not recorded",
        "all",
    )
    yield Reason(
        "storage",
        "960 GB SATA SSD (Micron 5200)",
        str(provenance.get("filesystem", {}).get("type") or "not recorded"),
        "write, read; little while data stay in memory",
    )
    yield Reason(
        "versions",
        "h5py 3.6.0, netCDF4 1.5.8, zarr 2.11.0",
        _versions(provenance.get("software", {}).get("libraries", {})),
        "all; most of all Zarr, whose version 3 is written anew" if "zarr" in backends else "all",
    )


def _versions(libraries: Mapping[str, Any]) -> str:
    told = [
        f"{name} {facts['version']}"
        for wanted in ("h5py", "netCDF4", "zarr")
        for name, facts in libraries.items()
        # Joined runs may have another one, such as `zarr (RUN)`.
        if name.partition(" ")[0] == wanted and isinstance(facts, Mapping) and facts.get("version")
    ]
    return ", ".join(told) or "not recorded"
