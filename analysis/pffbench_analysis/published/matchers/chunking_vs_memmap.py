"""Study 3: slices of a volume, memory-mapped and in HDF5, redone by the workload `slices`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, prod
from typing import Any

from pffbench.backends.inspection import touched_chunks
from pffbench.parallel.decomposition import Box, Shape
from pffbench.summary.summary import AMPLIFICATIONS, CaseSummary, Summary, amplification
from pffbench.text import value_text
from pffbench_analysis.published.counterparts import Match, PublishedValue
from pffbench_analysis.published.reasons import Reason, listed, reasons_of, when
from pffbench_analysis.published.values import published_values

FORMATS = {"hdf5": "HDF5", "memmap": "memmap"}
#: The study's name of a slice, by the axis it is normal to.
SLICES = {0: "x", 2: "z"}
_STUDY = "chunking-vs-memmap"
_ELAPSED = "elapsed time of the process"
#: The study timed the whole process; the nearest phase of pffbench.
_PHASE = "read_total"
_SHAPE: Shape = (621, 4991, 2600)
#: Largest ratio of longest to shortest side for chunks that prefer no axis; it is 7.8 for the
#: guessed ones of the published volume.
_NO_AXIS = 8
#: Chunk shape that h5py guesses for that shape; the study does not state it.
_GUESS: Shape = (20, 156, 82)
_PAGE = 4096
_HEADER = 3072
#: Way of the study: layout, settings and cache.
_NEAREST = ("file_per_process", "defaults", "dropped")


class ChunkingVsMemmap:
    """Matcher of cases by format, axis of the slice, element type and stride of the worst axis."""

    def matches(self, summary: Summary, values: Sequence[PublishedValue]) -> list[Match]:
        """Return the numbers with a counterpart in the run.

        A case counts when it reads one first slice across the first or last axis of a uint8 volume
        that is 621 long along its first axis, whatever its size, from a cold cache: through a map
        of a file in Fortran order, or from HDF5 in chunks that prefer no axis. A smaller volume
        is compared with the published one, since the stride, and so the bytes touched for each
        byte wanted, is the same.
        """
        index = {
            (v.parameters["format"], v.parameters["slice"]): v
            for v in values
            if v.quantity == _ELAPSED
        }
        found = []
        for case in summary.cases:
            entry = summary.entry(case)
            p = entry["parameters"]
            if not _does_the_work(entry):
                continue
            format_, slice_ = FORMATS[case.sample.backend], SLICES[p["axis"]]
            if _PHASE in case.phases:
                found.append(_match(index[format_, slice_], case, p, slice_))
        return found

    def reasons(self, summary: Summary) -> list[Reason]:
        """Return the differences between study and run, with the bytes that the run moved."""
        matches = self.matches(summary, published_values(_STUDY))
        cases = [match.case for match in matches]
        entries = [summary.entry(case) for case in cases]
        shapes = sorted({value_text(entry["parameters"]["shape"]) for entry in entries})
        orders = sorted({o["destination"] for e in entries if "destination" in (o := e["options"])})
        moved = (_moved(case, entry) for case, entry in zip(cases, entries, strict=True))
        stored = (case.stored_as for case in cases if case.sample.backend == "hdf5")
        nothing = "not counted (counters: true counts)"
        rows = {
            "moved": when(True, moved=listed(filter(None, moved), nothing)),
            "size": when(shapes != [value_text(_SHAPE)], shapes=", ".join(shapes)),
            "destination": when(orders and orders != ["C"], orders=" and ".join(orders)),
            "chunks": when(True, stored=listed(stored, "no HDF5 case")),
        }
        return reasons_of(_STUDY, summary, summary.cases, rows)

    def claims(self, values: Sequence[PublishedValue]) -> list[str]:
        """Return statements of the study's text, checked against its numbers and arithmetic."""
        told = {
            (v.quantity, v.parameters["format"], v.parameters["slice"]): v.value for v in values
        }

        def elapsed(name: str, slice_: str) -> float:
            return told[_ELAPSED, name, slice_]

        worst, best = elapsed("memmap", "x"), elapsed("memmap", "z")
        hdf5 = elapsed("HDF5", "z") / elapsed("HDF5", "x")
        cpu = sum(told[q, "memmap", "x"] for q in ("user CPU time", "system CPU time"))
        pages = ceil((_HEADER + prod(_SHAPE)) / _PAGE)  # a stride below a page leaves none out
        across_x, across_z = _chunks_of(0), _chunks_of(2)
        return [
            f"HDF5 is said to read both axes alike: the slice across z takes {hdf5:.3g} times as "
            "long as the one across x",
            f"of the map, the worst axis takes {worst / best:,.0f} times as long as the best one, "
            f"and {worst / elapsed('HDF5', 'x'):.0f} times as long as HDF5; the best one "
            f"1/{elapsed('HDF5', 'z') / best:.0f} of HDF5",
            f"a stride of 621 bytes touches all {pages:,} pages of the file: "
            f"{1e3 * worst / pages:.2g} ms for each, a seek of a disk, while the CPU is busy for "
            f"{cpu:.3g} s of {worst:,.0f} s. Reading the file from end to end would take "
            f"{ceil(prod(_SHAPE) / 1e8)} s at 100 MB/s; a destination in C order has the copy step "
            f"through it by {_SHAPE[0] * _SHAPE[1] / 1e6:.2g} MB instead",
            f"with the chunks that h5py guesses for this shape, {'×'.join(map(str, _GUESS))}, a "
            f"slice across x lies in {across_x[0]} chunks and one across z in {across_z[0]}, which "
            f"is {across_x[1]:.0f} and {across_z[1]:.0f} times what is wanted: that both axes take "
            "as long follows from this shape, not from chunks as such",
        ]


MATCHER = ChunkingVsMemmap()


def _match(value: PublishedValue, case: CaseSummary, p: Mapping[str, Any], slice_: str) -> Match:
    told = [p["layout"], p["settings"], p["cache"]]
    if (p["read_transfer"] or p["transfer"]) == "collective":
        told.append("collective reads")
    shape = value_text(p["shape"])
    apart = [word for word in case.variant.split() if not word.startswith("read_transfer=")]
    words = [value.parameters["format"], slice_, *apart]
    return Match(
        value,
        case,
        case.phases[_PHASE],
        factor=1.0,
        subject=f"volume of {shape}",
        operation="one slice",
        variant=", ".join(told),
        alternative=" ".join(words),
        nearest=tuple(told) == _NEAREST,
        known_as=f"{value.parameters['format']} {slice_}",
    )


def _slice_across(axis: int) -> Box:
    return Box((0, 0, 0), tuple(1 if a == axis else n for a, n in enumerate(_SHAPE)))


def _chunks_of(axis: int) -> tuple[int, float]:
    """Return the number of chunks that hold a slice, and their bytes over those wanted."""
    box = _slice_across(axis)
    found = touched_chunks(box, _GUESS, prod(_GUESS))
    return found.count, (found.nbytes or 0) / box.size


def _does_the_work(entry: Mapping[str, Any]) -> bool:
    p: Mapping[str, Any] = entry["parameters"]
    options: Mapping[str, Any] = entry.get("options", {})
    if p.get("workload") != "slices" or p.get("backend") not in FORMATS:
        return False
    plain = (p.get("position"), p.get("count"), p.get("cut"), p.get("dtype"), p.get("codec"))
    if plain[:4] != ("first", 1, "even", "uint8") or plain[4] not in ("auto", "none"):
        return False
    if p.get("axis") not in SLICES or p["shape"][0] != _SHAPE[0] or p["cache"] != "dropped":
        return False
    if p["backend"] == "memmap":
        return bool(options.get("order") == "F")
    chunks = p["chunks"]
    if isinstance(chunks, list):
        return bool(max(chunks) <= _NO_AXIS * min(chunks))
    guessed = bool(options.get("guess_chunks")) and chunks == "auto"
    return guessed and p["settings"] == "defaults"


def _moved(case: CaseSummary, entry: Mapping[str, Any]) -> str:
    """Return the bytes moved for each byte wanted; empty where they were not counted."""
    times = {
        heading.lstrip("×"): amplification(case, counter)
        for heading, counter in AMPLIFICATIONS.items()
    }
    if times["touched"] is None:
        return ""
    numbers = ", ".join(f"{k} {v:.3g}" for k, v in times.items() if v is not None)
    name = f"{FORMATS[case.sample.backend]} {SLICES[entry['parameters']['axis']]}"
    return f"{name} {case.sample.layout} {case.cache} {case.variant}".strip() + f": {numbers}"
