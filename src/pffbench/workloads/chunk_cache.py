"""Workload `chunk_cache`: chunks are written whole and read row by row."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import prod
from typing import ClassVar

from msgspec.structs import replace

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Backend
from pffbench.case import ArrayShape, Count, DataSize, GivenShape, Parameters
from pffbench.geometry.box import Box, Shape
from pffbench.geometry.cut import Grid
from pffbench.workloads.arrays import CaseArrays, Family
from pffbench.workloads.base import Workload
from pffbench.workloads.decodes import Decodes, Unit, count, cut, unit_shape
from pffbench.workloads.refusals import unfit_chunks
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.write_read import read_store, run_stages, write_store


class ChunkCacheParameters(Parameters, frozen=True, kw_only=True, tag="chunk_cache"):
    """Parameters of the workload `chunk_cache`."""

    #: Shape of a granule, one delivery of an instrument. Default with ``source: file``: the shape
    #: of the variable.
    shape: GivenShape[ArrayShape | None] = None
    #: Number of granules of all ranks, one after the other along the first axis.
    granules: DataSize[Count]
    #: Unit of one call: one row along the last axis, or one chunk as it is written (one granule if
    #: there are no chunks, or if the library chooses them).
    read: Unit = "rows"


class ChunkCache(Workload):
    """Granules of one dataset are written, then read in rows or in chunks.

    With ``arrays: shared`` all ranks have one dataset; with ``arrays: per_rank`` each rank has
    one of its own granules. The first ranks have a granule more where they do not divide evenly;
    a rank without any has no dataset.
    """

    name = "chunk_cache"
    summary = "chunks written whole and read row by row: the effect of the chunk cache"
    parameters_type: ClassVar[type[ChunkCacheParameters]] = ChunkCacheParameters

    def arrays(self, parameters: ChunkCacheParameters, ranks: int) -> CaseArrays:
        return CaseArrays((granules_of(parameters, ranks),))

    def run(self, repetition: Repetition) -> None:
        """Write granules, read them and count decodes."""
        decodes = Decodes(repetition)
        run_stages(
            repetition,
            lambda: write_store(repetition),
            lambda: read_store(replace(repetition, observers=(decodes.observe,))),
            inspect=decodes.count,
        )

    def refuse(
        self, parameters: ChunkCacheParameters, ranks: int, backend: type[Backend]
    ) -> str | None:
        p = parameters
        if p.shape is None:
            return "shape is missing (the shape of a granule, such as [4, 30, 9, 717])"
        if len(p.shape) < 2:
            return "shape needs 2 axes or more: rows go along the last one, granules the first"
        return unfit_chunks(granules_of(p, ranks))


def granules_of(p: ChunkCacheParameters, ranks: int) -> Family:
    """Return the dataset of granules, which follow one another along the first axis."""
    first, *inner = granule_of(p)
    whole = (p.granules * first, *inner)
    granules = Grid(whole, (ranks, *(1 for _ in inner)), "leading", granule_of(p))
    return Family(
        parameters=p,
        ranks=ranks,
        cut=granules,
        name=_name,
        block=lambda _: granule_of(p),
        write=partial(in_units, p, granules, "chunks"),
        read=partial(in_units, p, granules, p.read),
    )


def _name(index: int, owner: int | None) -> str:
    return "granules" if owner is None else f"granules_rank_{owner:06d}"


def granule_of(p: ChunkCacheParameters) -> Shape:
    """Return the shape of a granule, which has been checked."""
    assert p.shape is not None
    return p.shape


def unit_of(p: ChunkCacheParameters, spec: ArraySpec, unit: Unit) -> Shape:
    """Return the largest box of one call."""
    chunks = spec.chunks if isinstance(spec.chunks, tuple) else granule_of(p)
    return unit_shape(spec.shape, chunks, unit)


def in_units(
    p: ChunkCacheParameters, granules: Grid, unit: Unit, spec: ArraySpec, part: Box, rank: int
) -> Iterator[Box]:
    """Yield the boxes of a part, one unit a call, and empty ones where other ranks have more."""
    shape = unit_of(p, spec, unit)
    yield from cut(part, shape)
    of_ranks = [spec.whole]
    if spec.owner is None:
        stored = Box(spec.origin, spec.shape)
        parts = (granules.part(other).common(stored) for other in range(prod(granules.grid)))
        of_ranks = [_counted_from(spec.origin, part) for part in parts]
    most = max(count(one, shape) for one in of_ranks)
    yield from empty_boxes(spec, most - count(part, shape))


def _counted_from(origin: Shape, box: Box) -> Box:
    return Box(tuple(a - b for a, b in zip(box.start, origin, strict=True)), box.shape)


def empty_boxes(spec: ArraySpec, number: int) -> Iterator[Box]:
    """Yield empty boxes: ranks with less to move call for a shared array as often as others."""
    yield from (spec.whole.nothing for _ in range(number))
