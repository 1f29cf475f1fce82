"""Study 1: many datasets in HDF5, netCDF4 and Zarr, redone by the workload `datasets`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pffbench.results.summary import CaseSummary, Summary
from pffbench_analysis.published.model import Match, PublishedValue, Reason

_FORMATS = {"hdf5": "HDF5", "netcdf4": "netCDF4", "zarr": "Zarr"}
#: The study's operation for each phase.
_OPERATIONS = {"define": "create", "open_array": "open", "write": "write", "read": "read"}
#: How variants are named: these always, others where they are not what the study did.
_USUAL = {"transfer": "independent", "cache": "warm", "durability": "close"}
_PLAIN = ("none", "auto", None)

Key = tuple[str, str, int, str]


#: What differs whatever the run is.
_ALWAYS = (
    Reason(
        "what a read is",
        "the array is read, turned into text and printed, all in the time",
        "into memory; checked afterwards, off the timer",
        "read: of small arrays there mostly the time of NumPy's text; far less here",
    ),
    Reason(
        "netCDF dimensions",
        "unlimited, and shared by all variables: each access asks every variable for its length",
        "fixed",
        "write, read of netCDF4: rose there with the number of datasets; flat here",
    ),
    Reason(
        "when netCDF4 creates",
        "put off by the library to the first write",
        "ended within define",
        "create of netCDF4: nearly nothing there, all of it here; write the reverse",
    ),
    Reason(
        "order of the loop",
        "create a dataset, write it, then the next",
        "all are defined, then all written",
        "create, write",
    ),
)


class FileFormatTesting:
    """Matches cases by format, number of datasets, shape and type."""

    def matches(self, summary: Summary, values: Sequence[PublishedValue]) -> list[Match]:
        """Return the numbers that the run has a counterpart of.

        A case counts when it writes uncompressed uniform float32, or leaves compression to the
        library, in any layout and with any settings. The extended study created all datasets
        before it wrote any, as pffbench does; only its numbers of that loop are taken, and the
        original ones where both have the case.
        """
        index = _index(values)
        found = []
        for case in summary.cases:
            parameters = summary.record.cases[case.sample.case]["parameters"]
            if case.raw or not _is_alike(parameters):
                continue
            shape = "x".join(map(str, parameters["shape"]))
            for phase, operation in _OPERATIONS.items():
                key = (_FORMATS[case.sample.backend], operation, case.sample.arrays, shape)
                if key in index and phase in case.phases:
                    found.append(_match(index[key], case, phase, operation, parameters))
        return found

    def reasons(self, summary: Summary) -> list[Reason]:
        """Return in what study and run differ."""
        return [*_ALWAYS, *_of_the_run(summary)]

    def claims(self, values: Sequence[PublishedValue]) -> list[str]:
        """Return what the study's numbers say of its own text, counted here."""
        own = {
            key: value
            for key, value in _index(values).items()
            if value.parameters["edition"] == "original"
        }
        cases = sorted({key[2:] for key in own})

        def holds(operation: str, *order: str) -> str:
            kept = 0
            for case in cases:
                numbers = [own[(name, operation, *case)].value for name in order]
                kept += numbers == sorted(numbers)
            return (
                f"{operation}: {' < '.join(order)} is claimed and holds in {kept} of {len(cases)}"
            )

        def growth(
            name: str, operation: str, more: tuple[int, str], less: tuple[int, str]
        ) -> float:
            return own[(name, operation, *more)].value / own[(name, operation, *less)].value

        flat, deep = (2048, "128x128"), (2048, "128x128x128")
        few, many = (2048, "256"), (8192, "256")
        depth = ", ".join(f"{n} {growth(n, 'write', deep, flat):.3g}" for n in _FORMATS.values())
        count = ", ".join(f"{n} {growth(n, 'write', many, few):.3g}" for n in _FORMATS.values())
        return [
            holds("create", "netCDF4", "HDF5", "Zarr"),
            holds("open", "netCDF4", "Zarr", "HDF5"),
            holds("write", "HDF5", "Zarr", "netCDF4"),
            holds("read", "HDF5", "Zarr", "netCDF4"),
            f"three dimensions are said to take about twice as long as two; writing takes this "
            f"many times as long, for 128 times the data: {depth}",
            f"the number of datasets is said not to matter; with four times as many, writing one "
            f"takes this many times as long: {count}",
        ]


MATCHER = FileFormatTesting()


def _of_the_run(summary: Summary) -> Iterator[Reason]:
    """Yield what differs by how and where the run was made."""
    record = summary.record
    cases = [case for case in summary.cases if not case.raw]
    durability = sorted({str(_parameters(summary, case).get("durability")) for case in cases})
    cache = sorted({case.cache for case in cases if case.cache})
    repetitions = sorted({p.seconds.n for case in cases for p in case.phases.values()})
    nodes = len(set(record.topology.get("nodes", [0])))
    yield Reason(
        "how arrays are stored",
        "HDF5 contiguous; netCDF4 chunked, with fill values; Zarr in automatic chunks, compressed "
        "with Blosc-LZ4",
        "; ".join(dict.fromkeys(map(_stored, cases))),
        "write, read; with settings `defaults` libraries choose by themselves here too",
    )
    yield Reason(
        "processes",
        "1",
        f"{record.ranks} on {nodes} node(s); time of the slowest over the datasets of all ranks",
        "all: with R ranks a dataset can take R times as long as the number says",
    )
    yield Reason(
        "until when",
        "no flush or sync; close is not timed",
        f"durability {', '.join(durability)}; close and sync are phases of their own",
        "write: what libraries leave to close is in neither number",
    )
    yield Reason(
        "page cache",
        "copied and renamed between writing and reading, which leaves the copy cached",
        ", ".join(cache) or "not recorded",
        "read",
    )
    yield Reason(
        "statistic",
        "mean of 5 trials, formats one after the other; no intervals, so their order is taken as "
        "printed",
        f"median of {'–'.join(map(str, repetitions))} repetitions, formats in turns",
        "all: a slow trial moves a mean, not a median",
    )
    yield from _machine(record.provenance)


def _stored(case: CaseSummary) -> str:
    name = _FORMATS.get(case.sample.backend, case.sample.backend)
    return f"{name} {case.sample.settings}: {case.stored_as}"


def _machine(provenance: Mapping[str, Any]) -> Iterator[Reason]:
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
        "all; most of all Zarr, whose version 3 is written anew",
    )


def _index(values: Sequence[PublishedValue]) -> dict[Key, PublishedValue]:
    """Return the numbers that can be matched, by format, operation, datasets and shape."""
    found: dict[Key, PublishedValue] = {}
    for value in values:
        p = value.parameters
        loops = {"original": ("interleaved",), "extended": ("create-first",)}[p["edition"]]
        if p["loop"] in loops and p["experiment"] in ("six cases", "larger arrays"):
            key = (p["format"], p["operation"], int(p["datasets"]), p["shape"])
            found.setdefault(key, value)  # the original study comes first in the table
    return found


def _is_alike(parameters: Mapping[str, Any]) -> bool:
    return (
        parameters.get("workload") == "datasets"
        and parameters.get("backend") in _FORMATS
        and bool(parameters.get("shape"))
        and (parameters.get("dtype") or "float32") == "float32"
        and parameters.get("source", "uniform") == "uniform"
        and parameters.get("codec") in _PLAIN
    )


def _match(
    value: PublishedValue,
    case: CaseSummary,
    phase: str,
    operation: str,
    parameters: Mapping[str, Any],
) -> Match:
    told = [parameters["layout"], parameters["settings"]]
    told += [f"{k} {parameters[k]}" for k, usual in _USUAL.items() if parameters.get(k) != usual]
    shape = "×".join(map(str, parameters["shape"]))
    return Match(
        value,
        case,
        case.phases[phase],
        factor=1e3 / case.sample.arrays,
        subject=f"{case.sample.arrays} datasets of {shape}",
        operation=operation,
        variant=", ".join(map(str, told)),
        alternative=" ".join(w for w in (_FORMATS[case.sample.backend], case.variant) if w),
        nearest=told == ["file_per_process", "defaults"],
    )


def _parameters(summary: Summary, case: CaseSummary) -> Mapping[str, Any]:
    found: Mapping[str, Any] = summary.record.cases[case.sample.case]["parameters"]
    return found


def _versions(libraries: Mapping[str, Any]) -> str:
    told = [
        f"{name} {libraries[name]['version']}"
        for name in ("h5py", "netCDF4", "zarr")
        if isinstance(libraries.get(name), Mapping) and libraries[name].get("version")
    ]
    return ", ".join(told) or "not recorded"
