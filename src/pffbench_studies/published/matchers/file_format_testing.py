"""Study 1: many datasets in HDF5, netCDF4 and Zarr, repeated by the workload `datasets`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from pffbench.summary.summary import Summary
from pffbench_studies.published.counterparts import Match, StudyCase, cases_like, study_case
from pffbench_studies.published.matchers import Matcher
from pffbench_studies.published.reasons import Fields, listed, when
from pffbench_studies.published.values import PublishedValue, indexed

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
_THERE = _USUAL | {"cache": "copied", "order": "interleaved", "read_sink": "print"}
#: Names of Zarr in runs with both versions of zarr-python.
_VERSIONS = {"zarr": "Zarr (zarr-python 3)", "zarr2": "Zarr (zarr-python 2)"}
#: No compression, or the library's default; and Zarr's default in the study.
_PLAIN = ("none", "auto", None)
_ZARR_PLAIN = {"zarr": ("blosc",), "zarr2": ("blosc",)}

#: Format, operation, number of datasets and shape.
Key = tuple[str, str, int, str]
#: Choices of the study that a case may share, by their keys in the table of differences: whether
#: a case differs.
_CHOICES: Mapping[str, Callable[[StudyCase], bool]] = {
    "read": lambda c: c.p.get("read_sink") != "print",
    "dimensions": lambda c: _lacks(c, "netcdf4", "dimensions", "unlimited_shared"),
    "enddef": lambda c: _lacks(c, "netcdf4", "enddef", "implicit"),
    "order": lambda c: c.p.get("order") != "interleaved",
    "cache": lambda c: c.p.get("cache") != "copied",
    "durability": lambda c: c.p.get("durability") != "close",
    "codec": lambda c: FORMATS[c.backend] == "Zarr" and not _compresses_alike(c),
    "call": lambda c: _lacks(c, "hdf5", "api", "high_level"),
}


class FileFormatTesting(Matcher):
    """Matcher of cases by format, number of datasets, shape and type."""

    libraries = ("h5py", "netCDF4", "zarr")

    def matches(self, summary: Summary, values: Sequence[PublishedValue]) -> list[Match]:
        """Return the numbers with a counterpart in the run.

        A case counts when it writes uncompressed uniform float32, or leaves compression to the
        library, in any layout and with any settings. A run with fewer datasets is compared with the
        study if their number divides the study's, see `_stand_ins`: times are per dataset. Of the
        extended study only the numbers of one loop are used (all datasets created before the first
        is written), and the original ones where both have the case.
        """
        index = indexed(values, _key)
        cases = [
            c
            for c in cases_like(
                summary, workload="datasets", backend=tuple(FORMATS), dtype=(None, "float32"),
                source=("uniform", None),
            )
            if c.p.get("shape") and c.p.get("codec") in (*_PLAIN, *_ZARR_PLAIN.get(c.backend, ()))
        ]  # fmt: skip
        stand_ins = _stand_ins(((c.case.sample.arrays, _shape(c)) for c in cases), index)
        found = []
        for c in cases:
            number = stand_ins.get((c.case.sample.arrays, _shape(c)))
            for phase, operation in _OPERATIONS.items():
                value = index.get((FORMATS[c.backend], operation, number or 0, _shape(c)))
                if value is not None and phase in c.case.phases:
                    found.append(_match(value, c, phase, summary.record.ranks))
        return _told_apart(_with_nearest(found, summary))

    def facts(self, summary: Summary, matches: Sequence[Match]) -> Mapping[str, Sequence[Fields]]:
        """Return the choices of the study that some cases do not share, and what is stored."""
        nearest = {match.case.sample.case for match in matches if match.nearest}
        cases = {match.case.sample.case: study_case(summary, match.case) for match in matches}
        scales = sorted({_scale(match) for match in matches})
        parts = ("as many" if scale == 1 else f"1/{scale} of them" for scale in scales)
        backends = {c.backend for c in cases.values()}
        zarr = "; most of all Zarr, whose version 3 is written anew" if "zarr" in backends else ""
        stored = (f"{FORMATS[c.backend]} {c.p['settings']}: {c.case.stored_as}"
                  for c in cases.values())  # fmt: skip
        return {key: _apart(differs, cases, nearest) for key, differs in _CHOICES.items()} | {
            "datasets": when(max(scales, default=1) > 1, parts=", ".join(parts)),
            "stored": when(True, stored=listed(stored, "")),
            "versions": when(True, zarr=zarr),
        }


MATCHER = FileFormatTesting()


def variant_of(c: StudyCase) -> str:
    """Name the way of a case, such as ``file_per_process, defaults``."""
    told = [c.p["layout"], c.p["settings"]]
    told += [f"{k} {c.p[k]}" for k, usual in _USUAL.items() if c.p.get(k, usual) != usual]
    return ", ".join(map(str, told))


def alternative_of(c: StudyCase) -> str:
    """Name the format of a case, with its distinguishing parameters."""
    return " ".join(word for word in (FORMATS[c.backend], c.case.variant) if word)


def datasets_of_a_rank(phase: str, c: StudyCase, ranks: int) -> int:
    """Return the largest number of datasets that a rank works on in a phase.

    The study timed one process, so a time per dataset is that of a rank over the datasets that
    it takes part in: its own, or those of all ranks where all work on each dataset.

    Parameters
    ----------
    phase : str
        The phase.
    c : StudyCase
        The case.
    ranks : int
        Number of ranks.
    """
    p, total = c.p, c.case.sample.arrays
    together = p["layout"] == "shared"
    if p["layout"] == "own" and p["backend"] in ("hdf5", "netcdf4"):
        by_phase = {
            "define": True,  # all ranks define all arrays of a file
            "open_array": _opened_together(c),
            "write": p["transfer"] == "collective",
            "read": p["transfer"] == "collective",
        }
        together = by_phase[phase]
    return total if together else -(-total // ranks)


def _opened_together(c: StudyCase) -> bool:
    """Whether all ranks open all arrays of a file that they share."""
    if c.backend == "netcdf4":
        return c.options.get("chunk_cache") is not None
    asked = c.options.get("collective_metadata")
    return bool(c.p["settings"] == "matched" if asked is None else asked)


def _key(value: PublishedValue) -> Key | None:
    """Return the key of a number; None for those that no case redoes."""
    p = value.parameters
    loop = {"original": "interleaved", "extended": "create-first"}[p["edition"]]
    if p["loop"] != loop or p["experiment"] not in ("six cases", "larger arrays"):
        return None
    return p["format"], p["operation"], int(p["datasets"]), p["shape"]


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
        for factor in sorted(n // least for n in known[shape] if n % least == 0):
            if all(factor * n in known[shape] for n in numbers):
                found.update({(n, shape): factor * n for n in numbers})
                break
    return found


def _match(value: PublishedValue, c: StudyCase, phase: str, ranks: int) -> Match:
    number, published = c.case.sample.arrays, int(value.parameters["datasets"])
    stands_for = "" if number == published else f" for {published}"
    return Match(
        value,
        c.case,
        c.case.phases[phase],
        factor=1e3 / datasets_of_a_rank(phase, c, ranks),
        subject=f"{number} datasets{stands_for} of {_shape(c).replace('x', '×')}",
        operation=_OPERATIONS[phase],
        variant=variant_of(c),
        alternative=alternative_of(c),
        nearest=False,
        known_as=FORMATS[c.backend],
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
        p = study_case(summary, match.case).p
        if (p["layout"], p["settings"]) == ("file_per_process", "defaults"):
            distance[match.variant] = sum(p.get(k, _USUAL[k]) != v for k, v in _THERE.items())
    nearest = min(distance, key=distance.__getitem__, default=None)
    return [replace(match, nearest=match.variant == nearest) for match in matches]


def _scale(match: Match) -> int:
    return int(match.published.parameters["datasets"]) // match.case.sample.arrays


def _shape(c: StudyCase) -> str:
    return "x".join(map(str, c.p["shape"]))


def _apart(
    differs: Callable[[StudyCase], bool], cases: Mapping[str, StudyCase], nearest: Collection[str]
) -> list[Fields]:
    """Return the row of a choice; none where all cases do as the study did."""
    other = {name for name, c in cases.items() if differs(c)}
    alike = nearest and other.isdisjoint(nearest)
    return when(other, nearest="in the nearest variant as there; in others: " if alike else "")


def _lacks(c: StudyCase, backend: str, option: str, value: str) -> bool:
    return c.backend == backend and bool(c.options.get(option) != value)


def _compresses_alike(c: StudyCase) -> bool:
    """Whether Zarr compresses with Blosc-LZ4 in format 2, as zarr-python 2 does by default."""
    codec = c.p.get("codec")
    if c.backend == "zarr2":
        return bool(codec == "blosc" or (codec == "auto" and c.p["settings"] == "defaults"))
    return bool((c.options.get("format"), codec) == (2, "blosc"))
