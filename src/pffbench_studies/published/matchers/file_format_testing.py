"""Study 1: many datasets in HDF5, netCDF4 and Zarr, repeated by the workload `study_datasets`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from pffbench.grouping import grouped
from pffbench.results.summary import CaseSummary, Summary
from pffbench_studies.published.counterparts import Match, apart, cases_like, in_words
from pffbench_studies.published.matchers import Matcher
from pffbench_studies.published.reasons import Fields, listed, when
from pffbench_studies.published.values import PublishedValue, indexed

FORMATS = {"hdf5": "HDF5", "netcdf4": "netCDF4", "zarr": "Zarr"}

#: The study's operation for each phase.
_OPERATIONS = {"define": "create", "open_array": "open", "write": "write", "read": "read"}
#: Parameters in the name of a variant: files and settings, and others that are not the default.
_USUAL = {
    "transfer": "independent",
    "cache": "warm",
    "durability": "close",
    "order": "create_first",
    "read_sink": "buffer",
    "read_copy": False,
}
#: Their values in the study.
_THERE = _USUAL | {"read_copy": True, "order": "interleaved", "read_sink": "print"}
#: No compression, or the library's default; and Zarr's default in the study.
_PLAIN = ("none", "auto", None)
_ZARR_PLAIN = {"zarr": ("blosc",)}

#: Format, operation, number of datasets and shape.
Key = tuple[str, str, int, str]
#: Number of datasets and shape.
Size = tuple[int, str]
#: Choices of the study that a case may share, by their keys in the table of differences:
#: parameters, and options of a backend with their values in the study.
_PARAMETERS = {
    "read": "read_sink",
    "order": "order",
    "cache": "read_copy",
    "durability": "durability",
}
_OPTIONS = {
    "dimensions": ("netcdf4", "dimensions", "unlimited_shared"),
    "enddef": ("netcdf4", "enddef", "implicit"),
    "call": ("hdf5", "api", "high_level"),
}


class FileFormatTesting(Matcher):
    """Matcher of cases by format, number of datasets, shape and type."""

    libraries = ("h5py", "netCDF4", "zarr")

    def matches(self, summary: Summary, values: Sequence[PublishedValue]) -> list[Match]:
        """Return the numbers with a counterpart in the run.

        A case counts when it writes uncompressed uniform float32, or leaves compression to the
        library, with any files and settings. A run with fewer datasets is compared with the study
        if their number divides the study's, see `_stand_ins`: times are per dataset. Of the
        extended study only the numbers of one loop are used (all datasets created before the first
        is written), and the original ones where both have the case.
        """
        index = indexed(values, _key)
        cases = [
            c
            for c in cases_like(
                summary, workload=("datasets", "study_datasets"), backend=tuple(FORMATS),
                dtype=(None, "float32"), source=("uniform", None),
            )
            if c.parameters.get("shape")
            and c.parameters.get("codec") in (*_PLAIN, *_ZARR_PLAIN.get(c.backend, ()))
        ]  # fmt: skip
        stand_ins = _stand_ins(map(_size, cases), index)
        cases = [c for c in cases if _size(c) in stand_ins]
        nearest = _nearest(cases)
        found = []
        for c in cases:
            (arrays, shape), variant = _size(c), variant_of(c)
            published = stand_ins[arrays, shape]
            stands_for = "" if arrays == published else f" for {published}"
            for phase, operation in _OPERATIONS.items():
                value = index.get((FORMATS[c.backend], operation, published, shape))
                if value is None or phase not in c.phases:
                    continue
                found.append(
                    Match(
                        value,
                        c,
                        c.phases[phase],
                        factor=1e3 / datasets_of_a_rank(phase, c),
                        subject=f"{arrays} datasets{stands_for} of {shape.replace('x', '×')}",
                        operation=operation,
                        variant=variant,
                        alternative=alternative_of(c, summary),
                        nearest=variant == nearest,
                        known_as=FORMATS[c.backend],
                    )
                )
        return found

    def facts(self, summary: Summary, matches: Sequence[Match]) -> Mapping[str, Sequence[Fields]]:
        """Return the choices of the study that some cases do not share, and what is stored."""
        nearest = {match.case.name for match in matches if match.nearest}
        cases = {match.case.name: match.case for match in matches}
        sizes = {(m.published.parameters["datasets"], m.case.entry.cost.arrays) for m in matches}
        scales = sorted({int(published) // here for published, here in sizes})
        parts = ("as many" if scale == 1 else f"1/{scale} of them" for scale in scales)
        backends = {c.backend for c in cases.values()}
        zarr = "; most of all Zarr, whose version 3 is written anew" if "zarr" in backends else ""
        stored = (f"{FORMATS[c.backend]} {c.parameters['settings']}: {c.entry.stored_as}"
                  for c in cases.values())  # fmt: skip
        choices = (*_PARAMETERS, *_OPTIONS, "codec")
        return {choice: _apart(choice, cases, nearest) for choice in choices} | {
            "datasets": when(max(scales, default=1) > 1, parts=", ".join(parts)),
            "stored": when(True, stored=listed(stored, "")),
            "versions": when(True, zarr=zarr),
        }


MATCHER = FileFormatTesting()


def variant_of(c: CaseSummary) -> str:
    """Name the way of a case, such as ``one file per rank, library defaults``."""
    p = c.parameters
    others = [key for key, usual in _USUAL.items() if p.get(key, usual) != usual]
    return ", ".join(in_words(c, "files", "settings", *others))


def alternative_of(c: CaseSummary, summary: Summary) -> str:
    """Name the format of a case, with its distinguishing parameters."""
    return " ".join(filter(None, (FORMATS[c.backend], apart(c, summary))))


def datasets_of_a_rank(phase: str, c: CaseSummary) -> int:
    """Return the largest number of datasets that a rank works on in a phase.

    The study timed one process, so a time per dataset is that of a rank over the datasets that
    it takes part in: its own, or those of all ranks where all work on each dataset.

    Parameters
    ----------
    phase : str
        The phase.
    c : CaseSummary
        The case.
    """
    p, total = c.parameters, c.entry.cost.arrays
    together = p["arrays"] == "shared"
    if p["files"] == "one" and not together and p["backend"] in ("hdf5", "netcdf4"):
        by_phase = {
            "define": True,  # all ranks define all arrays of a file
            "open_array": _opened_together(c),
            "write": p["transfer"] == "collective",
            "read": p["transfer"] == "collective",
        }
        together = by_phase[phase]
    return total if together else -(-total // c.ranks)


def _opened_together(c: CaseSummary) -> bool:
    """Whether all ranks open all arrays of a file that they share."""
    if c.backend == "netcdf4":
        return c.options.get("chunk_cache") is not None
    asked = c.options.get("collective_metadata")
    return bool(c.parameters["settings"] == "matched" if asked is None else asked)


def _key(value: PublishedValue) -> Key | None:
    """Return the key of a number; None for those that no case redoes."""
    p = value.parameters
    loop = {"original": "interleaved", "extended": "create-first"}[p["edition"]]
    if p["loop"] != loop or p["experiment"] not in ("six cases", "larger arrays"):
        return None
    return p["format"], p["operation"], int(p["datasets"]), p["shape"]


def _size(c: CaseSummary) -> Size:
    return c.entry.cost.arrays, "x".join(map(str, c.parameters["shape"]))


def _stand_ins(here: Iterable[Size], index: Iterable[Key]) -> dict[Size, int]:
    """Map each number of datasets to its published counterpart, by shape.

    Equal numbers match. Others are scaled to published ones by the smallest whole factor that
    fits all of the same shape: 256, 512 and 1024 datasets here stand for 2048, 4096 and 8192.
    """
    known = grouped((shape, number) for _, _, number, shape in index)
    found: dict[Size, int] = {}
    for shape, numbers in grouped((shape, number) for number, shape in here).items():
        there = set(known.get(shape, ()))
        found |= {(number, shape): number for number in there.intersection(numbers)}
        if smaller := set(numbers) - there:
            least = min(smaller)
            for factor in sorted(n // least for n in there if n % least == 0):
                if there.issuperset(factor * n for n in smaller):
                    found |= {(n, shape): factor * n for n in smaller}
                    break
    return found


def _nearest(cases: Iterable[CaseSummary]) -> str | None:
    """Return the variant nearest to the study: a file per process, library defaults.

    Of several such variants it is the one with the fewest differences.
    """
    distance = {
        variant_of(c): sum(c.parameters.get(k, _USUAL[k]) != there for k, there in _THERE.items())
        for c in cases
        if (c.parameters["files"], c.parameters["settings"]) == ("per_rank", "defaults")
    }
    return min(distance, key=distance.__getitem__, default=None)


def _apart(choice: str, cases: Mapping[str, CaseSummary], nearest: Collection[str]) -> list[Fields]:
    """Return the row of a choice; none where all cases do as the study did."""
    other = {name for name, c in cases.items() if _differs(choice, c)}
    alike = nearest and other.isdisjoint(nearest)
    return when(other, nearest="in the nearest variant as there; in others: " if alike else "")


def _differs(choice: str, c: CaseSummary) -> bool:
    """Whether a case does not share a choice of the study."""
    if choice == "codec":
        return FORMATS[c.backend] == "Zarr" and not _compresses_alike(c)
    if name := _PARAMETERS.get(choice):
        return bool(c.parameters.get(name) != _THERE[name])
    backend, option, value = _OPTIONS[choice]
    return c.backend == backend and bool(c.options.get(option) != value)


def _compresses_alike(c: CaseSummary) -> bool:
    """Whether Zarr compresses with Blosc-LZ4 in format 2, as zarr-python 2 does by default."""
    return bool((c.options.get("format"), c.parameters.get("codec")) == (2, "blosc"))
