"""Workload `chunk_cache`: chunks are written whole and read row by row."""

from __future__ import annotations

from math import prod
from typing import ClassVar

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Cuts
from pffbench.case import ArrayShape, Count, Parameters, itemsize
from pffbench.parallel.decomposition import Box, Shape
from pffbench.workloads.base import (
    CaseTotals,
    Workload,
    illegal_chunks,
    make_spec,
    taking_part,
)
from pffbench.workloads.decodes import Decodes, Unit, count, cut, granules_of, region_of, unit_shape
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.transfers import Access
from pffbench.workloads.write_read import read_store, run_stages, write_store


class ChunkCacheParameters(Parameters, frozen=True, kw_only=True, tag="chunk_cache"):
    """Parameters of the workload `chunk_cache`.

    Parameters
    ----------
    shape : list of int, optional
        Shape of a granule, one delivery of an instrument. Default with ``source: file``: the shape
        of the variable.
    granules : int
        Number of granules of all ranks, one after the other along the first axis.
    read : {"rows", "chunks"}
        Unit of one call: one row along the last axis, or one chunk as it is written (one granule if
        there are no chunks, or if the library chooses them).
    """

    shape: ArrayShape | None = None
    granules: Count
    read: Unit = "rows"


class ChunkCache(Workload):
    """Granules of one dataset are written, then read in rows or in chunks.

    With ``shared`` all ranks have one dataset; with ``own`` and ``file_per_process`` each rank has
    one of its own granules. The first ranks have a granule more where they do not divide evenly;
    a rank without any has no dataset.
    """

    name = "chunk_cache"
    summary = "chunks written whole and read row by row: the effect of the chunk cache"
    parameters_type: ClassVar[type[ChunkCacheParameters]] = ChunkCacheParameters

    def arrays(self, parameters: ChunkCacheParameters, ranks: int, rank: int) -> list[ArraySpec]:
        p, whole = parameters, region(parameters, ranks, None)
        if p.layout == "shared":
            return [make_granules(p, "granules", whole, whole, None, 0)]
        found: list[ArraySpec] = []
        offset = 0
        for owner in p.groups(ranks).members(rank):
            if (own := region(p, ranks, owner)).size:
                name = f"granules_rank_{owner:06d}"
                found.append(make_granules(p, name, own, whole, owner, offset))
                offset += found[-1].nbytes
        return found

    def writes(self, parameters: ChunkCacheParameters, ranks: int, rank: int) -> list[Access]:
        return self.accesses(parameters, ranks, rank, "chunks")

    def reads(self, parameters: ChunkCacheParameters, ranks: int, rank: int) -> list[Access]:
        return self.accesses(parameters, ranks, rank, parameters.read)

    def accesses(self, p: ChunkCacheParameters, ranks: int, rank: int, unit: Unit) -> list[Access]:
        """Return the calls of a rank that moves its own granules, one unit a call."""
        return [
            Access(spec, box)
            for spec in taking_part(self.arrays(p, ranks, rank), p, rank)
            for box in _boxes(p, spec, ranks, rank, unit)
        ]

    def cuts(self, parameters: ChunkCacheParameters, ranks: int) -> Cuts:
        whole = region(parameters, ranks, None)
        starts = {region(parameters, ranks, rank).start[0] for rank in range(ranks)}
        return (tuple(sorted(starts - {0, whole.shape[0]})), *(() for _ in whole.shape[1:]))

    def volume(self, parameters: ChunkCacheParameters, ranks: int) -> CaseTotals:
        p, nbytes = parameters, prod(granule_of(parameters)) * parameters.itemsize
        arrays = 1 if p.layout == "shared" else min(ranks, p.granules)
        return CaseTotals(arrays, p.granules * nbytes)

    def kinds(self, parameters: ChunkCacheParameters, ranks: int) -> list[ArraySpec]:
        if parameters.layout != "own":
            return self.arrays(parameters, ranks, 0)
        # The first ranks may have a granule more than the last ones.
        at_ends = {rank: region(parameters, ranks, rank) for rank in (0, ranks - 1)}
        regions = {own.shape: own for own in at_ends.values() if own.size}
        whole = region(parameters, ranks, None)
        return [make_granules(parameters, "granules", r, whole, 0, 0) for r in regions.values()]

    def largest_write(self, parameters: ChunkCacheParameters, ranks: int) -> int:
        return self.largest_call(parameters, ranks, "chunks")

    def largest_call(self, p: ChunkCacheParameters, ranks: int, unit: Unit) -> int:
        """Return the bytes of the longest call of any rank."""
        spec = self.kinds(p, ranks)[0]
        mine = region(p, ranks, 0).shape
        return prod(map(min, mine, unit_of(p, spec, unit))) * itemsize(spec.dtype)

    def run(self, repetition: Repetition) -> None:
        """Write granules, read them and count decodes."""
        decodes = Decodes(repetition)
        run_stages(
            repetition,
            lambda: write_store(repetition),
            lambda: read_store(repetition, look=decodes.after_reading),
            inspect=decodes.count,
        )

    def check(self, parameters: ChunkCacheParameters, ranks: int) -> str | None:
        p = parameters
        if p.shape is None:
            return "shape is missing (the shape of a granule, such as [4, 30, 9, 717])"
        if len(p.shape) < 2:
            return "shape needs 2 axes or more: rows go along the last one, granules the first"
        return illegal_chunks(p, stored_shape(p, ranks))


def granule_of(p: ChunkCacheParameters) -> Shape:
    """Return the shape of a granule, which has been checked."""
    assert p.shape is not None
    return p.shape


def region(p: ChunkCacheParameters, ranks: int, rank: int | None) -> Box:
    """Return where the granules of a rank, or of all ranks, lie in the dataset of all."""
    mine = range(p.granules) if rank is None else granules_of(p.granules, ranks, rank)
    return region_of(granule_of(p), mine)


def stored_shape(p: ChunkCacheParameters, ranks: int) -> Shape:
    """Return the shape of the largest dataset."""
    return region(p, ranks, None if p.layout == "shared" else 0).shape


def make_granules(
    p: ChunkCacheParameters, name: str, own: Box, whole: Box, owner: int | None, offset: int
) -> ArraySpec:
    """Return the specification of a dataset that has a part of the granules."""
    return make_spec(
        p,
        name,
        own.shape,
        number=0,
        offset=offset,
        owner=owner,
        block=granule_of(p),
        origin=own.start,
        logical_shape=whole.shape,
    )


def unit_of(p: ChunkCacheParameters, spec: ArraySpec, unit: Unit) -> Shape:
    """Return the largest box of one call."""
    chunks = spec.chunks if isinstance(spec.chunks, tuple) else granule_of(p)
    return unit_shape(spec.shape, chunks, unit)


def _boxes(
    p: ChunkCacheParameters, spec: ArraySpec, ranks: int, rank: int, unit: Unit
) -> list[Box]:
    """Return the boxes of an array that a rank moves, one a call."""
    shape = unit_of(p, spec, unit)
    if spec.owner is None:
        most = max(count(region(p, ranks, other), shape) for other in range(ranks))
        mine = cut(region(p, ranks, rank), shape)
    else:
        most = count(spec.whole, shape)
        mine = cut(spec.whole, shape) if spec.owner == rank else iter(())
    return with_empty(list(mine), most, spec)


def with_empty(boxes: list[Box], most: int, spec: ArraySpec) -> list[Box]:
    """Return as many boxes as other ranks have: those with less to move have empty ones at the end.

    All ranks call for a shared array, or in collective transfers, equally often.
    """
    empty = Box((0,) * len(spec.shape), (0,) * len(spec.shape))
    return boxes + [empty] * (most - len(boxes))
