"""Workload `chunk_cache`: chunks are written and read row by row, as in study 2."""

from __future__ import annotations

import shutil
from itertools import islice
from math import prod
from typing import ClassVar, Literal

from msgspec.structs import replace

from pffbench.backends.array_spec import ArraySpec, ByteOrder
from pffbench.backends.base import Backend, Cuts
from pffbench.backends.traits import Repacks
from pffbench.case import ArrayShape, ChunkShape, Count, Parameters, Transfer, itemsize
from pffbench.parallel.decomposition import Box, Shape
from pffbench.workloads.base import (
    CaseTotals,
    Workload,
    illegal_chunks,
    make_spec,
    taking_part,
)
from pffbench.workloads.decodes import Decodes, Unit, count, cut, granules_of, region_of, unit_shape
from pffbench.workloads.repack import note_storage, repack_by_library, repack_by_program
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.transfers import Access
from pffbench.workloads.write_read import read_store, run_stages, write_store


class ChunkCacheParameters(Parameters, frozen=True, kw_only=True, tag="chunk_cache"):
    """Parameters of the workload `chunk_cache`.

    Parameters
    ----------
    shape : list of int, optional
        Shape of a granule, one delivery of an instrument; with ``source: file`` that of the
        variable when not given.
    granules : int
        Number of granules of all ranks, one after the other along the first axis.
    write, read : {"rows", "chunks"}
        Unit of one call: one row along the last axis, or one chunk (one granule where there are no
        chunks, or the library chooses them).
    sharing : {"own", "interleaved"}
        Distribution of reads: each rank reads its own granules, or rank i modulo the number of
        ranks reads row (or chunk) i, so that all ranks need each chunk (layout ``shared`` only).
    read_transfer : {"independent", "collective"}, optional
        How ranks read in a file that they share; as they write when not given.
    byte_order : {"native", "big"}
        Byte order in the store; the libraries convert within the call.
    repack_chunks : list of int, optional
        Rewrite the store with this chunk shape, timed as the phase ``repack``, and read the new
        one.
    repack_with : {"library", "h5repack"}
        Rewrite granule by granule through the library, or by the program of HDF5.
    repack_codec : {"none", "gzip"}, optional
        Rewrite the store with this codec, ``none`` to remove compression; gzip has level 4 where
        the store had no codec with a level before.
    datasets : int
        Number of such datasets in a store, each with all granules and data of its own.
    repack_datasets : int, optional
        Number of datasets that one call of ``h5repack`` rewrites; it copies the others unchanged.
        All when not given.
    """

    shape: ArrayShape | None = None
    granules: Count
    write: Unit = "chunks"
    read: Unit = "rows"
    sharing: Literal["own", "interleaved"] = "own"
    read_transfer: Transfer | None = None
    byte_order: ByteOrder = "native"
    repack_chunks: ChunkShape | None = None
    repack_with: Literal["library", "h5repack"] = "library"
    repack_codec: Literal["none", "gzip"] | None = None
    datasets: Count = 1
    repack_datasets: Count | None = None

    ways: ClassVar[frozenset[str]] = Parameters.ways | {
        "read_transfer", "byte_order", "repack_chunks", "repack_with", "repack_codec",
        "repack_datasets",
    }  # fmt: skip

    @property
    def repacks(self) -> bool:
        """Whether the store is rewritten before it is read."""
        return self.repack_chunks is not None or self.repack_codec is not None

    def as_read(self) -> ChunkCacheParameters:
        """Return the parameters of the reads: transfer, and chunks and codec after repacking.

        Datasets that the program leaves unchanged are treated like the others: they are read in the
        same boxes.
        """
        return replace(
            self,
            transfer=self.transfer_of_reads,
            chunks=self.repack_chunks or self.chunks,
            codec=self.repack_codec or self.codec,
            read_transfer=None,
            repack_chunks=None,
            repack_codec=None,
        )


class ChunkCache(Workload):
    """Granules of one dataset are written, then read in rows or in chunks.

    With ``shared`` all ranks have one dataset; with ``own`` and ``file_per_process`` each rank has
    one of its own granules. The first ranks have a granule more where they do not divide evenly;
    a rank without any has no dataset.
    """

    name = "chunk_cache"
    summary = "chunks read and written row by row or whole: what a chunk cache is worth"
    parameters_type = ChunkCacheParameters

    def arrays(self, parameters: ChunkCacheParameters, ranks: int, rank: int) -> list[ArraySpec]:
        p, whole = parameters, _region(parameters, ranks, None)
        places: list[tuple[str, Box, int | None]] = [("granules", whole, None)]
        if p.layout != "shared":
            owners = p.groups(ranks).members(rank)
            places = [(f"granules_rank_{r:06d}", _region(p, ranks, r), r) for r in owners]
        found: list[ArraySpec] = []
        offset = 0
        for number in range(p.datasets):
            for name, region, owner in places:
                if region.size:
                    own = f"{name}_{number}" if number else name
                    spec = _spec(p, own, region, whole, owner, offset, number)
                    found.append(spec)
                    offset += spec.nbytes
        return found

    def writes(self, parameters: ChunkCacheParameters, ranks: int, rank: int) -> list[Access]:
        return self._accesses(parameters, ranks, rank, parameters.write)

    def reads(self, parameters: ChunkCacheParameters, ranks: int, rank: int) -> list[Access]:
        p = parameters.as_read()
        return self._accesses(p, ranks, rank, p.read, interleaved=p.sharing == "interleaved")

    def _accesses(
        self, p: ChunkCacheParameters, ranks: int, rank: int, unit: Unit, interleaved: bool = False
    ) -> list[Access]:
        return [
            Access(spec, box)
            for spec in taking_part(self.arrays(p, ranks, rank), p, rank)
            for box in _boxes(p, spec, ranks, rank, unit, interleaved)
        ]

    def reads_elsewhere(self, parameters: ChunkCacheParameters) -> bool:
        return parameters.sharing == "interleaved"

    def makes_another(self, parameters: ChunkCacheParameters) -> bool:
        return parameters.repacks

    def cuts(self, parameters: ChunkCacheParameters, ranks: int) -> Cuts:
        whole = _region(parameters, ranks, None)
        starts = {_region(parameters, ranks, rank).start[0] for rank in range(ranks)}
        return (tuple(sorted(starts - {0, whole.shape[0]})), *(() for _ in whole.shape[1:]))

    def volume(self, parameters: ChunkCacheParameters, ranks: int) -> CaseTotals:
        p, nbytes = parameters, prod(_granule(parameters)) * parameters.itemsize
        arrays = 1 if p.layout == "shared" else min(ranks, p.granules)
        return CaseTotals(p.datasets * arrays, p.datasets * p.granules * nbytes)

    def kinds(self, parameters: ChunkCacheParameters, ranks: int) -> list[ArraySpec]:
        if parameters.layout != "own":
            return self.arrays(replace(parameters, datasets=1), ranks, 0)
        # The first ranks may have a granule more than the last ones.
        at_ends = {rank: _region(parameters, ranks, rank) for rank in (0, ranks - 1)}
        regions = {region.shape: region for region in at_ends.values() if region.size}
        whole = _region(parameters, ranks, None)
        return [
            _spec(parameters, "granules", region, whole, 0, 0, 0) for region in regions.values()
        ]

    def largest_write(self, parameters: ChunkCacheParameters, ranks: int) -> int:
        spec = self.kinds(parameters, ranks)[0]
        chunks = spec.chunks if isinstance(spec.chunks, tuple) else _granule(parameters)
        mine = _region(parameters, ranks, 0).shape
        unit = unit_shape(spec.shape, chunks, parameters.write)
        return prod(map(min, mine, unit)) * itemsize(spec.dtype)

    def run(self, repetition: Repetition) -> None:
        """Write granules, rewrite the store with other chunks, read it and count decodes.

        The store may be repacked after it has been written. The store that is read may differ from
        the written one, as may the transfer: it has a second `Repetition`.
        """
        anew = _as_read(repetition)
        decodes = Decodes(anew)

        def write() -> set[str]:
            written = write_store(repetition)
            return _repack(repetition, anew) if anew.label else written

        run_stages(
            repetition,
            write,
            lambda: read_store(anew, look=decodes.after_reading),
            inspect=decodes.count,
            reading=anew,
        )

    def check(self, parameters: ChunkCacheParameters, ranks: int) -> str | None:
        p = parameters
        if p.shape is None:
            return "shape is missing (the shape of a granule, such as [4, 30, 9, 717])"
        if len(p.shape) < 2:
            return "shape needs 2 axes or more: rows go along the last one, granules the first"
        stored = _region(p, ranks, None if p.layout == "shared" else 0).shape
        return illegal_chunks(p, stored) or _check_sharing(p) or _check_repacking(p, stored, ranks)

    def refuse(self, parameters: ChunkCacheParameters, backend: type[Backend]) -> str | None:
        p, can = parameters, backend.capabilities
        if not can.raw and p.byte_order not in can.byte_orders:
            return f"backend {p.backend} stores numbers in native byte order only"
        if not p.repacks:
            return None
        if can.raw:
            return f"backend {p.backend} stores raw bytes, which have no chunks to repack"
        if p.repack_with == "library":
            return None
        if not (issubclass(backend, Repacks) and _repacked_by(backend) == p.repack_with):
            return f"{p.repack_with} rewrites HDF5 files, which backend {p.backend} does not make"
        if p.codec not in ("auto", "none", "gzip") or p.shuffle not in (None, "none"):
            return f"repack_with: {p.repack_with} is for codec none or gzip without a shuffle"
        if not isinstance(p.as_read().chunks, tuple):
            return f"repack_with: {p.repack_with} needs a chunk shape (repack_chunks, or chunks)"
        if shutil.which(p.repack_with) is None:
            return f"{p.repack_with} is not in PATH; take repack_with: library"
        return None


def _repacked_by(backend: type[Repacks]) -> str:
    """Return the name of the program that rewrites the stores of a backend."""
    return backend.repack_command("", "", [])[0]


def _granule(p: ChunkCacheParameters) -> Shape:
    assert p.shape is not None
    return p.shape


def _region(p: ChunkCacheParameters, ranks: int, rank: int | None) -> Box:
    """Return where the granules of a rank, or of all ranks, lie in the dataset of all."""
    mine = range(p.granules) if rank is None else granules_of(p.granules, ranks, rank)
    return region_of(_granule(p), mine)


def _spec(
    p: ChunkCacheParameters,
    name: str,
    region: Box,
    whole: Box,
    owner: int | None,
    offset: int,
    number: int,
) -> ArraySpec:
    spec = make_spec(
        p,
        name,
        region.shape,
        number=number,
        offset=offset,
        owner=owner,
        block=_granule(p),
        origin=region.start,
        logical_shape=whole.shape,
    )
    return replace(spec, byte_order=p.byte_order)


def _boxes(
    p: ChunkCacheParameters, spec: ArraySpec, ranks: int, rank: int, unit: Unit, interleaved: bool
) -> list[Box]:
    """Return the boxes of an array that a rank moves, one a call.

    For a shared array, or in collective transfers, all ranks have the same number of calls; those
    with less to move have empty ones at the end.
    """
    chunks = spec.chunks if isinstance(spec.chunks, tuple) else _granule(p)
    shape = unit_shape(spec.shape, chunks, unit)
    if spec.owner is not None:
        most = count(spec.whole, shape)
        mine = cut(spec.whole, shape) if spec.owner == rank else iter(())
    elif interleaved:
        most = -(-count(spec.whole, shape) // ranks)
        mine = islice(cut(spec.whole, shape), rank, None, ranks)
    else:
        most = max(count(_region(p, ranks, other), shape) for other in range(ranks))
        mine = cut(_region(p, ranks, rank), shape)
    found = list(mine)
    empty = Box((0,) * len(spec.shape), (0,) * len(spec.shape))
    return found + [empty] * (most - len(found))


def _check_sharing(p: ChunkCacheParameters) -> str | None:
    if p.alone and p.read_transfer == "collective":
        return "read_transfer: collective needs a file that ranks share (layout: shared or own)"
    if p.sharing == "own":
        return None
    if p.layout != "shared":
        return "sharing: interleaved needs layout: shared, where all ranks read one dataset"
    if p.cache == "shifted":
        return "cache: shifted reads the partner's part; with sharing: interleaved all read all"
    return None


def _check_repacking(p: ChunkCacheParameters, stored: Shape, ranks: int) -> str | None:
    if not p.repacks:
        if p.repack_with != "library":
            return f"repack_with: {p.repack_with} needs repack_chunks or repack_codec, what to make"
        if p.repack_datasets is not None:
            return "repack_datasets needs repack_chunks or repack_codec, what to make of them"
        return None
    if p.repack_datasets is not None and p.repack_with == "library":
        return "repack_datasets is for repack_with: h5repack; the library rewrites all datasets"
    if p.repack_datasets is not None and p.repack_datasets > p.datasets:
        return f"repack_datasets is {p.repack_datasets}, and there are {p.datasets} datasets"
    if p.repack_codec == "gzip" and not p.alone:
        return "repack_codec: gzip needs layout: file_per_process, a file that one rank rewrites"
    if p.repack_codec == "gzip" and p.codec not in ("auto", "none", "gzip"):
        return f"repack_codec: gzip is for codec none or gzip, which is {p.codec} here"
    anew = p.as_read()
    if reason := illegal_chunks(anew, stored):
        return f"repack_{reason}"
    granule = _granule(p)
    if p.repack_chunks is None:
        return None
    if p.layout == "shared" and ranks > 1 and granule[0] % p.repack_chunks[0]:
        return (
            f"repack_chunks {list(p.repack_chunks)}: ranks rewrite their own granules, so along "
            f"the first axis whole chunks must make a granule of {granule[0]}"
        )
    return None


def _as_read(repetition: Repetition) -> Repetition:
    """Return the same repetition with the store and the parameters of the reads."""
    p = _parameters(repetition)
    anew = repetition.with_parameters(p.as_read())
    return replace(anew, label="-repacked" if p.repacks else "")


def _repack(repetition: Repetition, anew: Repetition) -> set[str]:
    p, team = _parameters(repetition), repetition.team
    if p.repack_with == "library":
        granules = replace(p, chunks=p.shape, write="chunks")
        copies = repetition.workload.writes(granules, team.size, team.rank)
        written = repack_by_library(repetition, anew, copies)
    else:
        written = repack_by_program(repetition, anew, p.repack_datasets)
    note_storage(anew)
    return written


def _parameters(repetition: Repetition) -> ChunkCacheParameters:
    p = repetition.case.parameters
    assert isinstance(p, ChunkCacheParameters)
    return p
