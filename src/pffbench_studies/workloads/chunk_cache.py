"""Workload `study_chunk_cache`: `chunk_cache` with what study 2 did, and more of its kind."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any, Literal

from msgspec.structs import replace

from pffbench.backends.array_spec import ArraySpec, ByteOrder
from pffbench.backends.base import Backend
from pffbench.case import ChunkShape, Count, DataSize, Transfer, Way
from pffbench.geometry.box import Box
from pffbench.geometry.cut import Everything, Grid
from pffbench.workloads.arrays import CaseArrays
from pffbench.workloads.base import Impossible, PhaseColumn
from pffbench.workloads.chunk_cache import (
    ChunkCache,
    ChunkCacheParameters,
    empty_boxes,
    granule_of,
    granules_of,
    in_units,
    unit_of,
)
from pffbench.workloads.decodes import Decodes, Unit, count, cut
from pffbench.workloads.refusals import unfit_chunks
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.write_read import read_store, run_stages, write_store
from pffbench_studies.workloads.repack import (
    PROGRAM,
    note_storage,
    repack_by_library,
    repack_by_program,
)


class StudyChunkCacheParameters(
    ChunkCacheParameters, frozen=True, kw_only=True, tag="study_chunk_cache"
):
    """Parameters of the workload `study_chunk_cache`: those of `chunk_cache`, and more."""

    #: Unit of one call of writing.
    write: Unit = "chunks"
    #: Distribution of reads: each rank reads its own granules, or rank i modulo the number of ranks
    #: reads row (or chunk) i, so that all ranks need each chunk (only with ``files: one`` and
    #: ``arrays: shared``).
    sharing: Literal["own", "interleaved"] = "own"
    #: Transfer of reads in a file that ranks share (default: the transfer of writes).
    read_transfer: Way[Transfer | None] = None
    #: Byte order in the store. The libraries convert within the call.
    byte_order: Way[ByteOrder] = "native"
    #: Rewrite the store with this chunk shape, timed as the phase ``repack``, and read the new one.
    repack_chunks: Way[ChunkShape | None] = None
    #: Rewrite granule by granule through the library, or by the program of HDF5.
    repack_with: Way[Literal["library", "h5repack"]] = "library"
    #: Rewrite the store with this codec, or ``none`` to remove compression. gzip has level 4 if the
    #: store had no codec with a level before.
    repack_codec: Way[Literal["none", "gzip"] | None] = None
    #: Number of such datasets in a store, each with all granules and separate data.
    datasets: DataSize[Count] = 1
    #: Number of datasets that one call of ``h5repack`` rewrites. It copies the others unchanged.
    #: Default: all.
    repack_datasets: Way[Count | None] = None

    @property
    def transfer_of_reads(self) -> Transfer:
        """How ranks read in a file that they share."""
        return self.read_transfer or self.transfer

    @property
    def repacks(self) -> bool:
        """Whether the store is rewritten before it is read."""
        return self.repack_chunks is not None or self.repack_codec is not None

    def as_read(self) -> StudyChunkCacheParameters:
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


class StudyChunkCache(ChunkCache):
    """As `chunk_cache`, with several datasets, other byte order and a store that is rewritten."""

    name = "study_chunk_cache"
    summary = "chunk_cache with rows written, shared reads, big-endian data and repacking (study 2)"
    parameters_type = StudyChunkCacheParameters
    columns = (PhaseColumn("repack", "write", "repack"),)

    def arrays(self, parameters: Any, ranks: int) -> CaseArrays:
        p: StudyChunkCacheParameters = parameters
        one = granules_of(p, ranks)
        granules = one.cut
        assert isinstance(granules, Grid)
        family = replace(
            one,
            name=_name,
            count=p.datasets,
            byte_order=p.byte_order,
            write=partial(in_units, p, granules, p.write),
        )
        if p.sharing == "interleaved":
            every_nth = partial(_every_nth_unit, p, ranks)
            family = replace(family, read=every_nth, reading=(Everything(),))
        return CaseArrays((family,), second_store=p.repacks)

    def run(self, repetition: Repetition) -> None:
        """Write granules, rewrite the store with other chunks, read it and count decodes.

        The store that is read may differ from the written one, as may the transfer: it has a second
        `Repetition`.
        """
        p = _parameters(repetition)
        reading = repetition.with_parameters(p.as_read())
        reading = reading.of(store_suffix="-repacked" if p.repacks else "")
        decodes = Decodes(reading)

        def write() -> set[str]:
            written = write_store(repetition)
            return _repack(repetition, reading) if p.repacks else written

        run_stages(
            repetition,
            write,
            lambda: read_store(replace(reading, observers=(decodes.observe,))),
            inspect=decodes.count,
            reading=reading,
        )

    def refuse(self, parameters: Any, ranks: int, backend: type[Backend]) -> str | None:
        p: StudyChunkCacheParameters = parameters
        if reason := super().refuse(p, ranks, backend):
            return reason
        if reason := _check_sharing(p) or _check_repacking(p, ranks):
            return reason
        beyond = _beyond(p, backend)
        return None if beyond is None else Impossible(beyond)


def _beyond(p: StudyChunkCacheParameters, backend: type[Backend]) -> str | None:
    """Return why a backend, or the program that rewrites its files, cannot do the case, or None."""
    can = backend.capabilities
    if not can.raw and p.byte_order not in can.byte_orders:
        return f"backend {p.backend} stores numbers in native byte order only"
    if not p.repacks:
        return None
    if can.raw:
        return f"backend {p.backend} stores raw bytes, which have no chunks to repack"
    if p.repack_with == "library":
        return None
    if p.backend not in ("hdf5", "netcdf4"):
        return f"{PROGRAM} rewrites HDF5 files, which backend {p.backend} does not make"
    if p.codec not in ("auto", "none", "gzip") or p.shuffle not in (None, "none"):
        return f"repack_with: {PROGRAM} is for codec none or gzip without a shuffle"
    if not isinstance(p.as_read().chunks, tuple):
        return f"repack_with: {PROGRAM} needs a chunk shape (repack_chunks, or chunks)"
    if shutil.which(PROGRAM) is None:
        return f"{PROGRAM} is not in PATH; take repack_with: library"
    return None


def _name(index: int, owner: int | None) -> str:
    first = "granules" if owner is None else f"granules_rank_{owner:06d}"
    return f"{first}_{index}" if index else first


def _every_nth_unit(
    p: StudyChunkCacheParameters, ranks: int, spec: ArraySpec, part: Box, rank: int
) -> Iterator[Box]:
    """Yield each unit whose number is the rank modulo the number of ranks."""
    unit = unit_of(p, spec, p.read)
    yield from islice(cut(part, unit), rank, None, ranks)
    units = count(part, unit)
    yield from empty_boxes(spec, -(-units // ranks) - len(range(rank, units, ranks)))


def _check_sharing(p: StudyChunkCacheParameters) -> str | None:
    if p.alone and p.read_transfer == "collective":
        return "read_transfer: collective needs a file that ranks share (files: one)"
    if p.sharing == "own":
        return None
    if p.files != "one" or not p.shares_arrays:
        return (
            "sharing: interleaved needs files: one and arrays: shared, where all ranks read one "
            "dataset"
        )
    if p.cache == "shifted":
        return "cache: shifted reads the partner's part; with sharing: interleaved all read all"
    return None


def _check_repacking(p: StudyChunkCacheParameters, ranks: int) -> str | None:
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
        return "repack_codec: gzip needs files: per_rank, a file that one rank rewrites"
    if p.repack_codec == "gzip" and p.codec not in ("auto", "none", "gzip"):
        return f"repack_codec: gzip is for codec none or gzip, which is {p.codec} here"
    if reason := unfit_chunks(granules_of(p.as_read(), ranks)):
        return f"repack_{reason}"
    if p.exchanges:
        return f"a store is rewritten by each rank; rearranger: {p.rearranger} is not possible"
    granule = granule_of(p)
    if p.repack_chunks is None:
        return None
    if p.shares_arrays and ranks > 1 and granule[0] % p.repack_chunks[0]:
        return (
            f"repack_chunks {list(p.repack_chunks)}: ranks rewrite their own granules, so along "
            f"the first axis whole chunks must make a granule of {granule[0]}"
        )
    return None


def _repack(repetition: Repetition, reading: Repetition) -> set[str]:
    p, team = _parameters(repetition), repetition.place.team
    if p.repack_with == "library":
        granules = replace(p, chunks=p.shape, write="chunks")
        copies = repetition.subject.workload.arrays(granules, team.size).writes(team.rank)
        written = repack_by_library(repetition, reading, copies)
    else:
        written = repack_by_program(repetition, reading, p.repack_datasets)
    note_storage(reading)
    return written


def _parameters(repetition: Repetition) -> StudyChunkCacheParameters:
    p = repetition.subject.parameters
    assert isinstance(p, StudyChunkCacheParameters)
    return p
