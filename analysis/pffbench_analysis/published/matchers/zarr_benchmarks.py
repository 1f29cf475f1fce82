"""Study 4: compressors and Zarr libraries on three volumes, repeated by the workload `codecs`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from pffbench.summary.statistics import spread
from pffbench.summary.summary import CaseSummary, Summary, compression_ratio
from pffbench.text import value_text
from pffbench.workloads.base import DEFAULT_LEVELS
from pffbench_analysis.published.counterparts import Match, PublishedValue
from pffbench_analysis.published.curves import Curves, PublishedAxis, curves_over
from pffbench_analysis.published.reasons import Reason, reasons_of, when

_STUDY = "zarr-benchmarks"
#: Shape and bytes of the study's volumes of uint16.
_SHAPE = (806, 629, 629)
VOLUME = prod(_SHAPE) * 2
#: Libraries whose versions matter.
_VERSIONS = ("zarr", "numcodecs", "tensorstore", "h5py", "netCDF4", "hdf5plugin", "zarrs")
_DATASETS = {"image": "heart", "dense": "dense", "sparse": "sparse"}
#: The study's own volumes, by their names in its archive.
_VOLUMES = {
    "200.64um_LADAF-2021-17_heart_complete-organ_pag.zarr": "heart",
    "H01-c3-subset.zarr": "dense",
    "H01-proofread-104-subset.zarr": "sparse",
}
_SHUFFLES = {"none": "noshuffle", "byte": "shuffle", "bit": "bitshuffle"}
#: Libraries of the study, and names of backends in addition to them.
V2, V3, TENSORSTORE = "zarr-python 2.18.7", "zarr-python 3.1.1", "tensorstore 0.1.76"
_LIBRARIES = {"zarr2": V2, "zarr": V3, "tensorstore": TENSORSTORE}
_NAMES = {
    "zarr2": "zarr-python 2",
    "zarr": "zarr-python 3",
    "tensorstore": "TensorStore",
    "hdf5": "HDF5",
    "netcdf4": "netCDF4",
}
_LIBRARY_NAMES = {library: _NAMES[backend] for backend, library in _LIBRARIES.items()}
_OPERATIONS = ("write", "read")
_TIME, _RATIO = "time of the whole array", "compression ratio"
_FORMATS = "time, format 3 over format 2"
#: Variant given for a ratio.
_OF_A_CODEC = "ratio"
#: Experiments of the study that measured the same.
_EXPERIMENT = ("experiment",)
_CHUNKS = PublishedAxis(
    "published-chunk-size",
    "Published and here, by chunk size",
    "elements along each edge of a chunk",
    "chunk",
    regardless=_EXPERIMENT,
)
_SHUFFLED = PublishedAxis(
    "published-shuffle",
    "Published and here, by shuffle",
    "shuffle before Blosc",
    "shuffle",
    tuple(_SHUFFLES.values()),
    _EXPERIMENT,
)
#: Operations in these figures.
_DRAWN = {"write": "write, s", "read": "read, s", "compress": "compression ratio"}

#: Data set, codec, level, shuffle and chunk, as the study's table has them.
Subject = tuple[str, str, str, str, str]
Index = Mapping[tuple[str, str, str, Subject], PublishedValue]


@dataclass(frozen=True)
class _Beside:
    """A case with a counterpart in the study."""

    case: CaseSummary
    parameters: Mapping[str, Any]
    options: Mapping[str, Any]
    subject: Subject

    @property
    def backend(self) -> str:
        return self.case.sample.backend

    @property
    def label(self) -> str:
        dataset, codec, level, shuffle, chunk = self.subject
        words = " ".join(word for word in (codec, level, shuffle) if word)
        return f"{dataset}, {words}, chunks {chunk}"

    @property
    def alternative(self) -> str:
        name = _NAMES[self.backend]
        if self.options.get("pipeline") == "zarrs":
            return f"{name} with zarrs"
        if self.backend == "tensorstore" and not self.syncs:
            return f"{name} without fsync"
        return name

    @property
    def syncs(self) -> bool:
        """Whether TensorStore syncs each file that it writes; in matched settings it does not."""
        asked = self.options.get("file_io_sync")
        return self.parameters["settings"] == "defaults" if asked is None else bool(asked)

    @property
    def nearest_writes(self) -> bool:
        """Whether no other case differs only in syncing files more."""
        told = self.options.get("file_io_sync")
        return self.parameters["settings"] == "matched" or told is not False

    @property
    def variant(self) -> str:
        told = [self.parameters["settings"]]
        if "format" in self.options:
            told.append(f"format {self.options['format']}")
        usual = {"durability": "close", "cache": "warm"}
        told += [f"{k} {self.parameters[k]}" for k, u in usual.items() if self.parameters[k] != u]
        return ", ".join(told)


class ZarrBenchmarks:
    """Matcher of cases by volume, codec, level, shuffle and chunk; times by library too."""

    def matches(self, summary: Summary, values: Sequence[PublishedValue]) -> list[Match]:
        """Return the numbers with a counterpart in the run.

        Times of a volume of another size are scaled by the ratio of the sizes. A
        ratio is compared once for each library; those of HDF5 and netCDF4 are compared with that of
        the same codec in Zarr. Format 3 is compared with format 2 over all pairs of cases that
        differ in nothing else.
        """
        index = _index(values)
        found: list[Match] = []
        cases = list(_alike(summary))
        for beside in cases:
            library = _LIBRARIES.get(beside.backend)
            if library is None or beside.options.get("pipeline") == "zarrs":
                continue
            # The way of writing files does not affect reading: they are cached.
            for operation in _OPERATIONS if beside.nearest_writes else ("write",):
                value = index.get((library, _TIME, operation, beside.subject))
                if value is not None and operation in beside.case.phases:
                    found.append(_time(value, beside, operation))
        return [*found, *_ratios(cases, index), *_formats(cases, values)]

    def curves(self, matches: Sequence[Match], values: Sequence[PublishedValue]) -> list[Curves]:
        """Return times and ratios over the edge of a chunk, and over shuffles."""
        alike = [m for m in matches if not m.beyond and (m.nearest or m.variant == _OF_A_CODEC)]
        return [
            *curves_over(_CHUNKS, alike, values, lambda m: _named(m, "chunk"), _DRAWN),
            *curves_over(_SHUFFLED, alike, values, lambda m: _named(m, "shuffle"), _DRAWN),
        ]

    def reasons(self, summary: Summary) -> list[Reason]:
        """Return the differences between study and run."""
        record = summary.record
        cases = [case for case in summary.cases if not case.raw]
        parameters = [summary.entry(case)["parameters"] for case in cases]
        shapes = sorted({value_text(p.get("shape") or ()) for p in parameters})
        chunks = {value_text(c) for p in parameters if isinstance(c := p.get("chunks"), list)}
        durability = sorted({str(p.get("durability")) for p in parameters})
        cache = sorted({case.cache for case in cases if case.cache})
        host = (record.provenance.get("hosts") or [{}])[0]
        smaller = shapes != [value_text(_SHAPE)]
        rows = {
            "computed": when(any(p.get("source") != "file" for p in parameters)),
            "volume": when(smaller, shapes=", ".join(shapes)),
            "threads": when(
                True, cores=host.get("cpus") or host.get("cores") or "an unknown number of"
            ),
            "padding": when(chunks - {"128×128×128"} and smaller),
            "until": when(True, durability=", ".join(durability)),
            "cache": when(cache != ["warm"], cache=", ".join(cache) or "not recorded"),
        }
        return reasons_of(_STUDY, summary, cases, rows, _VERSIONS)

    def claims(self, values: Sequence[PublishedValue]) -> list[str]:
        """Return statements of the study's text, checked by counting its numbers."""
        index = _index(values)

        def number(quantity: str, library: str, operation: str, *subject: str) -> float:
            told = (*subject, "128x128x128")
            return index[library, quantity, operation, told].value  # type: ignore[index]

        def heart(level: str, quantity: str, library: str = V3) -> float:
            return number(quantity, library, "write", "heart", "blosc-zstd", level, "shuffle")

        hc = ("dense", "blosc-lz4hc", "1", "shuffle")
        pairs = _pairs(index)
        lines = [
            f"TensorStore is said to be the fastest library: of {len(own)} configurations of "
            f"{name} in the table it {word} more slowly than zarr-python 3 in "
            f"{sum(ts.value > v3.value for v3, ts in own)}, in "
            f"{sum(ts.value > v3.value and ts.differs_from(v3) for v3, ts in own)} of them beyond "
            "the standard deviations"
            for operation, word in (("write", "writes"), ("read", "reads"))
            for name, own in sorted(pairs[operation].items())
        ]
        return [
            *lines,
            "TensorStore syncs every file that it writes and the others none, which is in its time "
            "of writing",
            f"levels above 3 are said not to pay: on the heart Blosc-Zstd 9 is "
            f"{heart('9', _RATIO, V2) / heart('3', _RATIO, V2):.3g} times smaller than level 3 and "
            f"takes zarr-python 3 {heart('9', _TIME) / heart('3', _TIME):.3g} times as long",
            f"the same codec has other ratios in other libraries: dense labels with Blosc-LZ4HC 1 "
            f"{number(_RATIO, V2, 'write', *hc):g} in zarr-python and "
            f"{number(_RATIO, TENSORSTORE, 'write', *hc):g} in TensorStore",
            "the ratio counts what pads the chunks at the edges: without compression it is "
            f"{number(_RATIO, V2, 'write', 'heart', 'none', '', ''):g}",
        ]


MATCHER = ZarrBenchmarks()


def _index(values: Sequence[PublishedValue]) -> Index:
    """Return the numbers that can be matched, by library, quantity, operation and subject."""
    found: dict[tuple[str, str, str, Subject], PublishedValue] = {}
    for value in values:
        p = value.parameters
        if p["dataset"] and p["chunk"] and value.quantity in (_TIME, _RATIO):
            level = "" if p["codec"] == "none" else p["level"]
            subject = (p["dataset"], p["codec"], level, p["shuffle"], p["chunk"])
            found.setdefault((p["library"], value.quantity, p["operation"], subject), value)
    return found


def _pairs(index: Index) -> dict[str, dict[str, list[tuple[PublishedValue, PublishedValue]]]]:
    """Return, by operation and data set, the times of zarr-python 3 and TensorStore."""
    found: dict[str, dict[str, list[tuple[PublishedValue, PublishedValue]]]] = {
        name: {} for name in _OPERATIONS
    }
    for (library, quantity, operation, subject), value in index.items():
        other = index.get((TENSORSTORE, quantity, operation, subject))
        if library == V3 and quantity == _TIME and other is not None:
            found[operation].setdefault(subject[0], []).append((value, other))
    return found


def _alike(summary: Summary) -> Iterator[_Beside]:
    """Yield the cases that compress one of the volumes in cubic chunks."""
    for case in summary.cases:
        entry = summary.entry(case)
        p, options = entry["parameters"], entry.get("options") or {}
        known = p.get("workload") == "codecs" and case.sample.backend in _NAMES
        if case.raw or not known or _dataset(p) is None:
            continue
        chunked = isinstance(p.get("chunks"), list) and not options.get("shards")
        if p["dtype"] == "uint16" and chunked:
            yield _Beside(case, p, options, _subject(p))


def _dataset(p: Mapping[str, Any]) -> str | None:
    """Return the study's name of the data of a case."""
    if p.get("source") == "file":
        return _VOLUMES.get(Path(p.get("file") or "").name)
    return _DATASETS.get(p.get("source") or "")


def _subject(p: Mapping[str, Any]) -> Subject:
    codec = "none" if p["codec"] == "auto" else p["codec"]
    level = "" if codec == "none" else str(p.get("level") or DEFAULT_LEVELS.get(codec, ""))
    shuffle = ""
    if codec == "blosc":
        codec = f"blosc-{p.get('compressor') or 'lz4'}"
        shuffle = _SHUFFLES[p.get("shuffle") or "byte"]
    elif p.get("shuffle") not in (None, "none"):
        shuffle = f"{p['shuffle']} shuffle before"  # the study has no such case
    return _dataset(p) or "", codec, level, shuffle, "x".join(map(str, p["chunks"]))


def _time(value: PublishedValue, beside: _Beside, operation: str) -> Match:
    return Match(
        value,
        beside.case,
        beside.case.phases[operation],
        factor=VOLUME / beside.case.nbytes,
        subject=beside.label,
        operation=operation,
        variant=beside.variant,
        alternative=beside.alternative,
        nearest=beside.variant == "defaults, format 2",
        known_as=_NAMES[beside.backend],
        beyond=not beside.nearest_writes and operation == "write",
    )


def _formats(cases: Sequence[_Beside], values: Sequence[PublishedValue]) -> Iterator[Match]:
    """Yield the ratio of times of format 3 to format 2, for each volume and library.

    The geometric mean over pairs of cases that are equal but for the format, within each block.
    """
    published = {
        (v.parameters["library"], v.parameters["operation"], v.parameters["dataset"]): v
        for v in values
        if v.quantity == _FORMATS
    }
    pairs: dict[tuple[str, ...], dict[int, _Beside]] = {}
    for beside in cases:
        library, p = _LIBRARIES.get(beside.backend), beside.parameters
        as_there = (p["settings"], p["durability"]) == ("defaults", "close")
        if library and as_there and beside.nearest_writes and "format" in beside.options:
            alike = {**p, **beside.options} | {"format": None}
            key = (library, beside.subject[0], str(sorted((k, str(v)) for k, v in alike.items())))
            pairs.setdefault(key, {})[beside.options["format"]] = beside
    for (library, operation, dataset), value in published.items():
        found = [
            (both[3], both[2])
            for key, both in pairs.items()
            if key[:2] == (library, dataset) and {2, 3} <= set(both)
        ]
        means = _mean_ratios(found, operation)
        if means:
            three = found[0][0]
            yield Match(
                value,
                three.case,
                three.case.phases[operation],
                factor=1.0,
                subject=f"{dataset}, format 3 over format 2",
                operation=operation,
                variant=f"geometric mean of {len(found)} codecs and chunks",
                alternative=_NAMES[three.backend],
                nearest=False,
                measured=spread(means),
            )


def _mean_ratios(pairs: Sequence[tuple[_Beside, _Beside]], operation: str) -> list[float]:
    """Return, for each block that all cases have, the geometric mean of their ratios of times."""
    times = [
        tuple(b.case.phases[operation].by_block if operation in b.case.phases else {} for b in pair)
        for pair in pairs
    ]
    blocks = set.intersection(*(set(t) for both in times for t in both)) if times else set()
    return [
        geometric_mean(over[block] / under[block] for over, under in times)
        for block in sorted(blocks)
        if all(under[block] > 0 for _, under in times)
    ]


def _named(match: Match, but: str) -> str:
    """Name the subject without one of its parameters."""
    p = match.published.parameters
    told = ("dataset", "codec", "level", "shuffle", "chunk")
    words = [f"chunks {p[key]}" if key == "chunk" else p[key] for key in told if key != but]
    return " ".join(filter(None, words))


def _ratios(cases: Sequence[_Beside], index: Index) -> Iterator[Match]:
    """Yield the ratios, once for each way of storing and library."""
    done = set()
    for beside in cases:
        ratio = compression_ratio(beside.case)
        library = _LIBRARIES.get(beside.backend, V2)
        # A ratio equal to that of zarr-python is listed once.
        value = index.get((library, _RATIO, "write", beside.subject)) or index.get(
            (V2, _RATIO, "write", beside.subject)
        )
        name = beside.alternative.removesuffix(" without fsync")
        key = (beside.subject, name)
        if ratio is None or value is None or key in done or "write" not in beside.case.phases:
            continue
        done.add(key)
        yield Match(
            value,
            beside.case,
            beside.case.phases["write"],
            factor=1.0,
            subject=beside.label,
            operation="compress",
            variant=_OF_A_CODEC,
            alternative=name,
            nearest=False,
            measured=spread([ratio]),
            known_as=_LIBRARY_NAMES[value.parameters["library"]],
            beyond=beside.backend not in _LIBRARIES,
        )
