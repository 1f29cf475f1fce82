"""Study 1: many datasets in HDF5, netCDF4 and Zarr, repeated by the workload `datasets`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from pffbench.summary.summary import CaseSummary, Summary
from pffbench_analysis.published.counterparts import Match, PublishedValue
from pffbench_analysis.published.reasons import Fields, Reason, listed, reasons_of, when
from pffbench_analysis.published.values import published_values

_STUDY = "file-format-testing"
FORMATS = {"hdf5": "HDF5", "netcdf4": "netCDF4", "zarr": "Zarr", "zarr2": "Zarr"}

#: The study's operation for each phase.
_OPERATIONS = {"define": "create", "open_array": "open", "write": "write", "read": "read"}
#: Parameters in the name of a variant: layout and settings, and others that are not the default.
_USUAL = {
    "transfer": "independent",
    "cache": "warm",
    "durability": "close",
    "order": "create_first",
    "read_sink": "buffer",
}
#: Their values in the study.
_THERE = {
    "transfer": "independent",
    "cache": "copied",
    "durability": "close",
    "order": "interleaved",
    "read_sink": "print",
}
#: Names of Zarr in runs with both versions of zarr-python.
_VERSIONS = {"zarr": "Zarr (zarr-python 3)", "zarr2": "Zarr (zarr-python 2)"}
#: No compression, or the library's default; and Zarr's default in the study.
_PLAIN = ("none", "auto", None)
_PLAIN_ZARR = (*_PLAIN, "blosc")

Key = tuple[str, str, int, str]
#: Choices of the study that a case may share, by their keys in the table of differences: whether
#: a case with this backend, these parameters and options differs.
_CHOICES: Mapping[str, Callable[[str, Mapping[str, Any], Mapping[str, Any]], bool]] = {
    "read": lambda _, p, __: p.get("read_sink") != "print",
    "dimensions": lambda b, _, o: b == "netcdf4" and o.get("dimensions") != "unlimited_shared",
    "enddef": lambda b, _, o: b == "netcdf4" and o.get("enddef") != "implicit",
    "order": lambda _, p, __: p.get("order") != "interleaved",
    "cache": lambda _, p, __: p.get("cache") != "copied",
    "durability": lambda _, p, __: p.get("durability") != "close",
    "codec": lambda b, p, o: FORMATS[b] == "Zarr" and not _compresses_alike(b, p, o),
    "call": lambda b, _, o: b == "hdf5" and o.get("api") != "high_level",
}


class FileFormatTesting:
    """Matcher of cases by format, number of datasets, shape and type."""

    def matches(self, summary: Summary, values: Sequence[PublishedValue]) -> list[Match]:
        """Return the numbers with a counterpart in the run.

        A case counts when it writes uncompressed uniform float32, or leaves compression to the
        library, in any layout and with any settings. A run with fewer datasets is compared with the
        study if their number divides the study's, see `_stand_ins`: times are per dataset. Of the
        extended study only the numbers of one loop are used (all datasets created before the first
        is written), and the original ones where both have the case.
        """
        index = _index(values)
        cases = [
            (case, summary.entry(case)["parameters"])
            for case in summary.cases
            if not case.raw and _is_alike(summary.entry(case)["parameters"])
        ]
        stand_ins = _stand_ins(((case.sample.arrays, _shape(p)) for case, p in cases), index)
        found = []
        for case, parameters in cases:
            place = stand_ins.get((case.sample.arrays, _shape(parameters)))
            entry = summary.entry(case)
            for phase, operation in _OPERATIONS.items():
                key = (FORMATS[case.sample.backend], operation, place, _shape(parameters))
                if place is not None and key in index and phase in case.phases:
                    number = datasets_of_a_rank(
                        phase, entry, case.sample.arrays, summary.record.ranks
                    )
                    found.append(_match(index[key], case, phase, operation, parameters, number))
        return _told_apart(_with_nearest(found, summary))

    def reasons(self, summary: Summary) -> list[Reason]:
        """Return the differences between study and run."""
        matches = self.matches(summary, published_values(_STUDY))
        nearest = {match.case.sample.case for match in matches if match.nearest}
        cases = {match.case.sample.case: match.case for match in matches}
        scales = sorted({_scale(match) for match in matches})
        parts = ("as many" if scale == 1 else f"1/{scale} of them" for scale in scales)
        backends = {case.sample.backend for case in cases.values()}
        zarr = "; most of all Zarr, whose version 3 is written anew" if "zarr" in backends else ""
        rows = {key: _apart(_CHOICES[key], cases, nearest, summary) for key in _CHOICES} | {
            "datasets": when(max(scales, default=1) > 1, parts=", ".join(parts)),
            "stored": when(True, stored=listed(map(_stored, cases.values()), "")),
            "versions": when(True, zarr=zarr),
        }
        return reasons_of(_STUDY, summary, cases.values(), rows, ("h5py", "netCDF4", "zarr"))

    def claims(self, values: Sequence[PublishedValue]) -> list[str]:
        """Return statements of the study's text, checked by counting its numbers."""
        own = {
            key: value
            for key, value in _index(values).items()
            if value.parameters["edition"] == "original"
        }
        cases = sorted({key[2:] for key in own})

        def holds(operation: str, *order: str) -> str:
            kept = close = 0
            for case in cases:
                values = [own[(name, operation, *case)] for name in order]
                numbers = [value.value for value in values]
                kept += numbers == sorted(numbers)
                close += not all(a.differs_from(b) for a, b in combinations(values, 2))
            text = (
                f"{operation}: {' < '.join(order)} is claimed and holds in {kept} of {len(cases)}"
            )
            return text + f"; in {close} two of them lie within their error bars" * bool(close)

        def growth(
            name: str, operation: str, more: tuple[int, str], less: tuple[int, str]
        ) -> float:
            return own[(name, operation, *more)].value / own[(name, operation, *less)].value

        flat, deep = (2048, "128x128"), (2048, "128x128x128")
        few, many = (2048, "256"), (8192, "256")
        names = dict.fromkeys(FORMATS.values())
        depth = ", ".join(f"{n} {growth(n, 'write', deep, flat):.3g}" for n in names)
        count = ", ".join(f"{n} {growth(n, 'write', many, few):.3g}" for n in names)
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


def variant_of(parameters: Mapping[str, Any]) -> str:
    """Name the way of a case, such as ``file_per_process, defaults``."""
    told = [parameters["layout"], parameters["settings"]]
    told += [
        f"{key} {parameters[key]}"
        for key, usual in _USUAL.items()
        if parameters.get(key, usual) != usual
    ]
    return ", ".join(map(str, told))


def alternative_of(case: CaseSummary) -> str:
    """Name the format of a case, with its distinguishing parameters."""
    return " ".join(word for word in (FORMATS[case.sample.backend], case.variant) if word)


def datasets_of_a_rank(phase: str, entry: Mapping[str, Any], total: int, ranks: int) -> int:
    """Return the largest number of datasets that a rank works on in a phase.

    The study timed one process, so a time per dataset is that of a rank over the datasets that
    it takes part in: its own, or those of all ranks where all work on each dataset.

    Parameters
    ----------
    phase : str
        The phase.
    entry : mapping
        The case's entry in `run.json`.
    total : int
        Datasets of all ranks.
    ranks : int
        Number of ranks.
    """
    p, options = entry["parameters"], entry.get("options", {})
    together = p["layout"] == "shared"
    if p["layout"] == "own" and p["backend"] in ("hdf5", "netcdf4"):
        by_phase = {
            "define": True,  # all ranks define all arrays of a file
            "open_array": _opened_together(p, options),
            "write": p["transfer"] == "collective",
            "read": p["transfer"] == "collective",
        }
        together = by_phase[phase]
    return total if together else -(-total // ranks)


def _opened_together(p: Mapping[str, Any], options: Mapping[str, Any]) -> bool:
    """Whether all ranks open all arrays of a file that they share."""
    if p["backend"] == "netcdf4":
        return options.get("chunk_cache") is not None
    asked = options.get("collective_metadata")
    return bool(p["settings"] == "matched" if asked is None else asked)


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
    plain = _PLAIN_ZARR if parameters.get("backend") in ("zarr", "zarr2") else _PLAIN
    return (
        parameters.get("workload") == "datasets"
        and parameters.get("backend") in FORMATS
        and bool(parameters.get("shape"))
        and (parameters.get("dtype") or "float32") == "float32"
        and parameters.get("source", "uniform") == "uniform"
        and parameters.get("codec") in plain
    )


def _stand_ins(here: Iterable[tuple[int, str]], index: Iterable[Key]) -> dict[tuple[int, str], int]:
    """Map each number of datasets to its published counterpart, by shape.

    Equal numbers match. Others are scaled to published ones by the smallest whole factor that
    fits all of the same shape: 256, 512 and 1024 datasets here stand for 2048, 4096 and 8192.
    """
    known: dict[str, set[int]] = defaultdict(set)
    for _, _, number, shape in index:
        known[shape].add(number)
    smaller: dict[str, set[int]] = defaultdict(set)
    found: dict[tuple[int, str], int] = {}
    for number, shape in here:
        if number in known[shape]:
            found[number, shape] = number
        else:
            smaller[shape].add(number)
    for shape, numbers in smaller.items():
        least = min(numbers)
        factors = sorted(n // least for n in known[shape] if n % least == 0)
        for factor in factors:
            if all(factor * n in known[shape] for n in numbers):
                found.update({(n, shape): factor * n for n in numbers})
                break
    return found


def _match(
    value: PublishedValue,
    case: CaseSummary,
    phase: str,
    operation: str,
    parameters: Mapping[str, Any],
    of_a_rank: int,
) -> Match:
    number, published = case.sample.arrays, int(value.parameters["datasets"])
    stands_for = "" if number == published else f" for {published}"
    return Match(
        value,
        case,
        case.phases[phase],
        factor=1e3 / of_a_rank,
        subject=f"{number} datasets{stands_for} of {_shape(parameters).replace('x', '×')}",
        operation=operation,
        variant=variant_of(parameters),
        alternative=alternative_of(case),
        nearest=False,
        known_as=FORMATS[case.sample.backend],
    )


def _told_apart(matches: Sequence[Match]) -> list[Match]:
    """Name the version of zarr-python where a run has two; the study had version 2."""
    of_version_2 = {(m.subject, m.variant) for m in matches if m.case.sample.backend == "zarr2"}
    if not of_version_2 or not any(m.case.sample.backend == "zarr" for m in matches):
        return list(matches)
    found = []
    for m in matches:
        backend = m.case.sample.backend
        if name := _VERSIONS.get(backend):
            m = replace(
                m,
                alternative=m.alternative.replace("Zarr", name, 1),
                beyond=backend == "zarr" and (m.subject, m.variant) in of_version_2,
            )
        found.append(m)
    return found


def _with_nearest(matches: Sequence[Match], summary: Summary) -> list[Match]:
    """Mark the variant nearest to the study: a file per process, library defaults.

    Of several such variants, the one with the fewest differences is marked.
    """
    distance: dict[str, int] = {}
    for match in matches:
        p = summary.entry(match.case)["parameters"]
        if (p["layout"], p["settings"]) == ("file_per_process", "defaults"):
            distance[match.variant] = sum(p.get(k, _USUAL[k]) != v for k, v in _THERE.items())
    nearest = min(distance, key=distance.__getitem__, default=None)
    return [replace(match, nearest=match.variant == nearest) for match in matches]


def _scale(match: Match) -> int:
    return int(match.published.parameters["datasets"]) // match.case.sample.arrays


def _shape(parameters: Mapping[str, Any]) -> str:
    return "x".join(map(str, parameters["shape"]))


def _apart(
    differs: Callable[[str, Mapping[str, Any], Mapping[str, Any]], bool],
    cases: Mapping[str, CaseSummary],
    nearest: Collection[str],
    summary: Summary,
) -> list[Fields]:
    """Return the row of a choice; none where all cases do as the study did."""
    entries = summary.record.cases
    other = {
        name
        for name, case in cases.items()
        if differs(
            case.sample.backend, entries[name]["parameters"], entries[name].get("options", {})
        )
    }
    alike = nearest and not other & set(nearest)
    return when(other, nearest="in the nearest variant as there; in others: " if alike else "")


def _compresses_alike(backend: str, p: Mapping[str, Any], options: Mapping[str, Any]) -> bool:
    """Whether Zarr compresses with Blosc-LZ4 in format 2, as zarr-python 2 does by default."""
    codec = p.get("codec")
    if backend == "zarr2":
        return codec == "blosc" or (codec == "auto" and p["settings"] == "defaults")
    return (options.get("format"), codec) == (2, "blosc")


def _stored(case: CaseSummary) -> str:
    name = FORMATS.get(case.sample.backend, case.sample.backend)
    return f"{name} {case.sample.settings}: {case.stored_as}"
