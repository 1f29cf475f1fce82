"""Study 4: compressors and Zarr libraries on three volumes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from pffbench.phases import in_common
from pffbench.results.spread import spread
from pffbench.results.summary import CaseSummary, Summary, compression_ratio
from pffbench.text import value_text
from pffbench.workloads.specs import DEFAULT_LEVELS
from pffbench_studies.published.counterparts import Match, but, cases_like
from pffbench_studies.published.curves import Curves, PublishedAxis, curves_over
from pffbench_studies.published.matchers import Matcher
from pffbench_studies.published.reasons import Fields, libraries_of, when
from pffbench_studies.published.values import PublishedValue, indexed

#: Shape and bytes of the study's volumes of uint16.
_SHAPE = (806, 629, 629)
VOLUME = prod(_SHAPE) * 2
_DATASETS = {"image": "heart", "dense": "dense", "sparse": "sparse"}
#: The study's own volumes, by their names in its archive.
_VOLUMES = {
    "200.64um_LADAF-2021-17_heart_complete-organ_pag.zarr": "heart",
    "H01-c3-subset.zarr": "dense",
    "H01-proofread-104-subset.zarr": "sparse",
}
_SHUFFLES = {"none": "noshuffle", "byte": "shuffle", "bit": "bitshuffle"}
#: Libraries of the study, with shorter names.
V2, V3, TENSORSTORE = "zarr-python 2.18.7", "zarr-python 3.1.1", "tensorstore 0.1.76"
_NAMES = {V2: "zarr-python 2", V3: "zarr-python 3", TENSORSTORE: "TensorStore"}
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
#: Numbers by library, quantity, operation and subject.
Index = Mapping[tuple[str, str, str, Subject], PublishedValue]


@dataclass(frozen=True)
class _Compressed:
    """A case with a counterpart in the study, and the study's implementation of Zarr."""

    case: CaseSummary
    implementation: str

    @property
    def p(self) -> Mapping[str, Any]:
        return self.case.parameters

    @property
    def subject(self) -> Subject:
        p = self.p
        codec = "none" if p["codec"] == "auto" else p["codec"]
        level = "" if codec == "none" else str(p.get("level") or DEFAULT_LEVELS.get(codec, ""))
        shuffle = ""
        if codec == "blosc":
            codec = f"blosc-{p.get('compressor') or 'lz4'}"
            shuffle = _SHUFFLES[p.get("shuffle") or "byte"]
        elif p.get("shuffle") not in (None, "none"):
            shuffle = f"{p['shuffle']} shuffle before"  # the study has no such case
        return _dataset(self.case) or "", codec, level, shuffle, "x".join(map(str, p["chunks"]))

    @property
    def label(self) -> str:
        dataset, codec, level, shuffle, chunk = self.subject
        words = " ".join(word for word in (codec, level, shuffle) if word)
        return f"{dataset}, {words}, chunks {chunk}"

    @property
    def alternative(self) -> str:
        without = self.implementation == TENSORSTORE and not self.syncs
        return f"{_NAMES[self.implementation]}{' without fsync' * without}"

    @property
    def syncs(self) -> bool:
        """Whether TensorStore syncs each file that it writes; in matched settings it does not."""
        asked = self.case.options.get("file_io_sync")
        return self.p["settings"] == "defaults" if asked is None else bool(asked)

    @property
    def nearest_writes(self) -> bool:
        """Whether no other case differs only in syncing files more."""
        told = self.case.options.get("file_io_sync")
        return self.p["settings"] == "matched" or told is not False

    @property
    def variant(self) -> str:
        told = [self.p["settings"]]
        if "format" in self.case.options:
            told.append(f"format {self.case.options['format']}")
        usual = {"durability": "close", "cache": "warm"}
        told += [f"{k} {self.p[k]}" for k, u in usual.items() if self.p[k] != u]
        return ", ".join(told)


class ZarrBenchmarks(Matcher):
    """Matcher of cases by volume, codec, level, shuffle and chunk; times by library too."""

    libraries = ("zarr", "numcodecs", "tensorstore")

    def matches(self, summary: Summary, values: Sequence[PublishedValue]) -> list[Match]:
        """Return the numbers with a counterpart in the run.

        Times of a volume of another size are scaled by the ratio of the sizes. A ratio is compared
        once for each library. Format 3 is compared with format 2 over all pairs of cases that
        differ in nothing else.
        """
        index = indexed(values, _key)
        cases = list(_alike(summary))
        found = []
        for c in cases:
            # The way of writing files does not affect reading: they are cached.
            for operation in _OPERATIONS if c.nearest_writes else ("write",):
                value = index.get((c.implementation, _TIME, operation, c.subject))
                if value and operation in c.case.phases:
                    found.append(_time(value, c, operation))
        return [*found, *_ratios(cases, index), *_formats(cases, values)]

    def curves(self, matches: Sequence[Match], values: Sequence[PublishedValue]) -> list[Curves]:
        """Return times and ratios over the edge of a chunk, and over shuffles."""
        alike = [m for m in matches if not m.beyond and (m.nearest or m.variant == _OF_A_CODEC)]
        return [
            *curves_over(_CHUNKS, alike, values, lambda m: _named(m, "chunk"), _DRAWN),
            *curves_over(_SHUFFLED, alike, values, lambda m: _named(m, "shuffle"), _DRAWN),
        ]

    def facts(self, summary: Summary, matches: Sequence[Match]) -> Mapping[str, Sequence[Fields]]:
        """Return the data, storage and machine of the run."""
        cases = [case for case in summary.cases if not case.raw]
        parameters = [case.parameters for case in cases]
        shapes = sorted({value_text(p.get("shape") or ()) for p in parameters})
        chunks = {value_text(c) for p in parameters if isinstance(c := p.get("chunks"), list)}
        durability = sorted({str(p.get("durability")) for p in parameters})
        cache = sorted({case.cache for case in cases if case.cache})
        host = (summary.record.provenance.get("hosts") or [{}])[0]
        cores = host.get("cpus") or host.get("cores") or "an unknown number of"
        smaller = shapes != [value_text(_SHAPE)]
        return {
            "computed": when(any(p.get("source") != "file" for p in parameters)),
            "volume": when(smaller, shapes=", ".join(shapes)),
            "threads": when(True, cores=cores),
            "padding": when(chunks - {"128×128×128"} and smaller),
            "until": when(True, durability=", ".join(durability)),
            "cache": when(cache != ["warm"], cache=", ".join(cache) or "not recorded"),
        }


MATCHER = ZarrBenchmarks()


def _key(value: PublishedValue) -> tuple[str, str, str, Subject] | None:
    """Return the key of a number; None for those that no case redoes."""
    p = value.parameters
    if not (p["dataset"] and p["chunk"] and value.quantity in (_TIME, _RATIO)):
        return None
    level = "" if p["codec"] == "none" else p["level"]
    subject = (p["dataset"], p["codec"], level, p["shuffle"], p["chunk"])
    return p["library"], value.quantity, p["operation"], subject


def _alike(summary: Summary) -> Iterator[_Compressed]:
    """Yield the cases that compress one of the volumes in cubic chunks.

    Of environments with the same library the first counts.
    """
    first: dict[str, str] = {}
    kinds = ("zarr", "tensorstore")
    for case in cases_like(summary, workload="hyperslab", backend=kinds, dtype="uint16"):
        environment, library = _environment(case), _library(summary, case)
        chunked = isinstance(case.parameters.get("chunks"), list) and not case.options.get("shards")
        usual = case.options.get("pipeline") in (None, "library")
        if not (chunked and usual and _dataset(case) is not None):
            continue
        if first.setdefault(library, environment) == environment:
            yield _Compressed(case, library)


def _environment(case: CaseSummary) -> str:
    return case.keys.get("environment", "")


def _library(summary: Summary, case: CaseSummary) -> str:
    """Return the study's library that a case has, by the version that its environment has."""
    if case.backend == "tensorstore":
        return TENSORSTORE
    record = summary.record
    own = record.environments.get(_environment(case), {}).get("provenance", record.provenance)
    version = str(libraries_of(own).get("zarr", {}).get("version", ""))
    return V2 if version.startswith("2.") else V3


def _dataset(case: CaseSummary) -> str | None:
    """Return the study's name of the data of a case."""
    source = case.parameters.get("source") or ""
    if source == "file":
        return _VOLUMES.get(Path(case.parameters.get("file") or "").name)
    return _DATASETS.get(source)


def _time(value: PublishedValue, c: _Compressed, operation: str) -> Match:
    return Match(
        value,
        c.case,
        c.case.phases[operation],
        factor=VOLUME / c.case.nbytes,
        subject=c.label,
        operation=operation,
        variant=c.variant,
        alternative=c.alternative,
        nearest=c.variant == "defaults, format 2",
        known_as=_NAMES[c.implementation],
        beyond=not c.nearest_writes and operation == "write",
    )


def _ratios(cases: Sequence[_Compressed], index: Index) -> Iterator[Match]:
    """Yield the ratios, once for each way of storing and library."""
    done = set()
    for c in cases:
        ratio = compression_ratio(c.case)
        # The table lists a ratio once if it is the one of zarr-python 2.
        values = (
            index.get((library, _RATIO, "write", c.subject)) for library in (c.implementation, V2)
        )
        value = next(filter(None, values), None)
        name = c.alternative.removesuffix(" without fsync")
        key = (c.subject, name)
        if ratio is None or value is None or key in done or "write" not in c.case.phases:
            continue
        done.add(key)
        yield Match(
            value,
            c.case,
            c.case.phases["write"],
            factor=1.0,
            subject=c.label,
            operation="compress",
            variant=_OF_A_CODEC,
            alternative=name,
            nearest=False,
            measured=spread([ratio]),
            known_as=_NAMES[value.parameters["library"]],
        )


def _formats(cases: Sequence[_Compressed], values: Sequence[PublishedValue]) -> Iterator[Match]:
    """Yield the ratio of times of format 3 to format 2, for each volume and library.

    The geometric mean over pairs of cases that are equal but for the format, within each round.
    """
    pairs: dict[tuple[str, ...], dict[int, _Compressed]] = {}
    for c in cases:
        as_there = (c.p["settings"], c.p["durability"]) == ("defaults", "close")
        if as_there and c.nearest_writes and "format" in c.case.options:
            key = but("format", c.case)
            way = (c.implementation, c.subject[0], key)
            pairs.setdefault(way, {})[c.case.options["format"]] = c
    for value in (v for v in values if v.quantity == _FORMATS):
        p = value.parameters
        found = [
            (both[3], both[2])
            for way, both in pairs.items()
            if way[:2] == (p["library"], p["dataset"]) and {2, 3} <= set(both)
        ]
        means = _mean_ratios(found, p["operation"])
        if means:
            three = found[0][0]
            yield Match(
                value,
                three.case,
                three.case.phases[p["operation"]],
                factor=1.0,
                subject=f"{p['dataset']}, format 3 over format 2",
                operation=p["operation"],
                variant=f"geometric mean of {len(found)} codecs and chunks",
                alternative=_NAMES[three.implementation],
                nearest=False,
                measured=spread(means),
            )


def _mean_ratios(pairs: Sequence[tuple[_Compressed, _Compressed]], operation: str) -> list[float]:
    """Return, for each round that all cases have, the geometric mean of their ratios of times."""
    ratios = []
    for pair in pairs:
        phases = [c.case.phases.get(operation) for c in pair]
        times = in_common([phase.by_round if phase else {} for phase in phases])
        ratios.append(
            {number: over / under for number, (over, under) in times.items() if under > 0}
        )
    return [geometric_mean(values) for values in in_common(ratios).values()]


def _named(match: Match, but: str) -> str:
    """Name the subject without one of its parameters."""
    p = match.published.parameters
    told = ("dataset", "codec", "level", "shuffle", "chunk")
    words = [f"chunks {p[key]}" if key == "chunk" else p[key] for key in told if key != but]
    return " ".join(filter(None, words))
