"""Study 3: slices of a volume, memory-mapped and in HDF5, redone by the workload `slices`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, prod
from typing import Any

from pffbench.backends.inspection import touched_chunks
from pffbench.parallel.decomposition import Box, Shape
from pffbench.summary.summary import CaseSummary, Summary
from pffbench_analysis.published.counterparts import Match, PublishedValue, Reason
from pffbench_analysis.published.matchers.chunking_vs_memmap_reasons import (
    FORMATS,
    SLICES,
    reasons_of,
    standing_beside,
)
from pffbench_analysis.published.values import published_values

_STUDY = "chunking-vs-memmap"
_ELAPSED = "elapsed time of the process"
#: The study timed the whole process; the nearest phase of pffbench.
_PHASE = "read_total"
_SHAPE: Shape = (621, 4991, 2600)
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
        for case in standing_beside(summary):
            entry = summary.record.cases[case.sample.case]
            p = entry["parameters"]
            format_, slice_ = FORMATS[case.sample.backend], SLICES[p["axis"]]
            if _PHASE in case.phases:
                found.append(_match(index[format_, slice_], case, p, slice_))
        return found

    def reasons(self, summary: Summary) -> list[Reason]:
        """Return the differences between study and run, with the bytes that the run moved."""
        return reasons_of(summary, self.matches(summary, published_values(_STUDY)))

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
    shape = "×".join(map(str, p["shape"]))
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
