"""HDF5 through h5py, parallel (MPI-IO driver) or one file per process (default driver)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from pffbench.backends import filters
from pffbench.backends.base import (
    MPI_CALL_LIMIT,
    Array,
    ArraySpec,
    Backend,
    Buffer,
    Call,
    Capabilities,
    Cuts,
    Store,
    StoredAs,
    Touched,
)
from pffbench.backends.chunkcache import ChunkCache, Chunking, StoredChunks
from pffbench.backends.hdf5_chunks import chunking_of, chunks_on_disk, h5repack, refuse_chunks
from pffbench.backends.hdf5_touched import touched
from pffbench.backends.stored_parts import part_of_hdf5
from pffbench.case import Options, Parameters, Settings
from pffbench.parallel.decomposition import Box
from pffbench.units import Size

if TYPE_CHECKING:
    from mpi4py import MPI


class Hdf5Options(Options, frozen=True, kw_only=True):
    """Options of HDF5; every default is what the library does by itself.

    Parameters
    ----------
    chunk_cache : Size, optional
        Bytes of the raw data chunk cache of each dataset (``H5Pset_cache``).
    chunk_cache_slots : int, optional
        Slots of the same cache.
    chunk_cache_w0 : float, optional
        What it evicts first: 0 what was used longest ago, 1 what is wholly read or written.
    alignment : Size, optional
        Objects of at least this size begin at multiples of it (``H5Pset_alignment``).
    file_locking : bool, optional
        Whether a file is locked (only without MPI; with it HDF5 never locks).
    collective_metadata : bool, optional
        Metadata is read and written collectively (``H5Pset_all_coll_metadata_ops``,
        ``H5Pset_coll_metadata_write``). The library's default is off; ``matched`` switches it
        on, because netCDF-C always does.
    libver : {"earliest", "latest"}
        Bounds of the file format version.
    guess_chunks : bool
        Where the library is to choose, let h5py guess a chunk shape (``chunks=True``); a dataset
        of which nothing is said is contiguous.
    """

    chunk_cache: Size | None = None
    chunk_cache_slots: Annotated[int, msgspec.Meta(ge=1)] | None = None
    chunk_cache_w0: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    alignment: Size | None = None
    file_locking: bool | None = None
    collective_metadata: bool | None = None
    libver: Literal["earliest", "latest"] = "earliest"
    guess_chunks: bool = False


class Hdf5(Backend):
    """Datasets of an HDF5 file; data move through h5py's low-level interface (H5Dwrite)."""

    name = "hdf5"
    summary = "HDF5 through h5py"
    suffix = ".h5"
    libraries = ("h5py",)
    capabilities = Capabilities(
        codecs=filters.CODECS,
        shuffles=filters.SHUFFLES,
        compressors=filters.COMPRESSORS,
        codec_libraries=filters.CODEC_LIBRARIES,
        byte_orders=frozenset({"native", "big"}),
    )
    options_type = Hdf5Options
    call_limit = MPI_CALL_LIMIT
    repack_program = "h5repack"

    def __init__(self, options: Options, settings: Settings) -> None:
        super().__init__(options, settings)
        import h5py

        assert isinstance(options, Hdf5Options)
        self._h5py = h5py
        wanted = options.collective_metadata
        self._collective_metadata = settings == "matched" if wanted is None else wanted

    @classmethod
    def refuse(
        cls, parameters: Parameters, options: Options, specs: Sequence[ArraySpec], cuts: Cuts
    ) -> str | None:
        return refuse_chunks(parameters, specs) or filters.refuse_filters(parameters, specs)

    def create(self, path: str, comm: MPI.Intracomm | None) -> Store:
        h5f = self._h5py.h5f
        handle = h5f.create(path.encode(), h5f.ACC_EXCL, fapl=self._access(comm))
        return self._store(handle, path, comm)

    def open(self, path: str, comm: MPI.Intracomm | None) -> Store:
        h5f = self._h5py.h5f
        handle = h5f.open(path.encode(), h5f.ACC_RDONLY, fapl=self._access(comm))
        return self._store(handle, path, comm)

    def _store(self, handle: Any, path: str, comm: MPI.Intracomm | None) -> Store:
        everywhere = comm is not None and self._collective_metadata
        assert isinstance(self.options, Hdf5Options)
        guess = self.options.guess_chunks
        return Hdf5Store(self._h5py, self._h5py.File(handle), path, comm, everywhere, guess)

    def _access(self, comm: MPI.Intracomm | None) -> Any:
        """Return a file access property list; h5py.File cannot set all that is wanted here."""
        from mpi4py import MPI

        options = self.options
        assert isinstance(options, Hdf5Options)
        h5p, h5f = self._h5py.h5p, self._h5py.h5f
        access = h5p.create(h5p.FILE_ACCESS)
        access.set_fclose_degree(h5f.CLOSE_STRONG)
        lowest = h5f.LIBVER_EARLIEST if options.libver == "earliest" else h5f.LIBVER_LATEST
        access.set_libver_bounds(lowest, h5f.LIBVER_LATEST)
        cache = self._chunk_cache()
        access.set_cache(0, cache.slots, cache.nbytes, cache.preemption)
        if options.alignment is not None:
            access.set_alignment(int(options.alignment), int(options.alignment))
        if comm is None:
            if options.file_locking is not None:
                access.set_file_locking(options.file_locking, True)
            return access
        access.set_fapl_mpio(comm, MPI.Info.Create())
        if self._collective_metadata:
            from pffbench.backends.libhdf5 import set_collective_metadata

            set_collective_metadata(access.id)
        return access

    def _chunk_cache(self) -> ChunkCache:
        """Return the chunk cache that datasets are to have: the library's but for the options."""
        options, usual = self.options, self.default_chunk_cache()
        assert isinstance(options, Hdf5Options)
        nbytes, w0 = options.chunk_cache, options.chunk_cache_w0
        return ChunkCache(
            nbytes=usual.nbytes if nbytes is None else int(nbytes),
            slots=options.chunk_cache_slots or usual.slots,
            preemption=usual.preemption if w0 is None else w0,
        )

    def default_chunk_cache(self) -> ChunkCache:
        h5p = self._h5py.h5p
        _, slots, nbytes, preemption = h5p.create(h5p.FILE_ACCESS).get_cache()
        return ChunkCache(nbytes, slots, preemption)

    def stored_chunks(self, path: str, name: str) -> StoredChunks | None:
        return chunks_on_disk(path, name)

    def stored_part(self, path: str, name: str, box: Box) -> StoredChunks | None:
        return part_of_hdf5(path, name, box)

    @classmethod
    def repack_command(cls, source: str, target: str, specs: Sequence[ArraySpec]) -> list[str]:
        return h5repack(source, target, specs)

    def describe(self, path: str) -> StoredAs:
        with self._h5py.File(path, "r") as file:
            dataset = file[next(iter(file))]
            times = {0: "at allocation", 1: "never", 2: "if set"}
            creation = dataset.id.get_create_plist()
            fill = times[creation.get_fill_time()]
            used = (creation.get_filter(i) for i in range(creation.get_nfilters()))
            codec = filters.codec_name((number, values) for number, _, values, _ in used)
            return StoredAs(chunks=dataset.chunks, codec=codec, fill=fill)

    def notes(self) -> tuple[str, ...]:
        if self._collective_metadata:
            return ("collective metadata on, as netCDF-C has it",)
        return ()


class Hdf5Store(Store):
    """An HDF5 file that ranks have open together, or one rank alone."""

    def __init__(
        self,
        h5py: Any,
        file: Any,
        path: str,
        comm: MPI.Intracomm | None,
        collective_lookup: bool,
        guess_chunks: bool,
    ) -> None:
        self._h5py = h5py
        self._file = file
        self._rank = None if comm is None else comm.rank
        self.collective_lookup = collective_lookup
        self._path = path
        self._guess_chunks = guess_chunks
        self._transfers: dict[bool, Any] = {}

    def define(self, specs: Sequence[ArraySpec]) -> Mapping[str, Array]:
        """Create all datasets on every rank: in parallel HDF5 the definition is collective."""
        return {spec.name: Hdf5Array(self, self._create(spec), self._h5py) for spec in specs}

    def _create(self, spec: ArraySpec) -> Any:
        told = _creation(spec)
        if spec.chunks == "library" and self._guess_chunks:
            told["chunks"] = True
        return self._file.create_dataset(spec.name, spec.shape, spec.stored_dtype, **told)

    def arrays(self, specs: Iterable[ArraySpec]) -> Mapping[str, Array]:
        return {spec.name: Hdf5Array(self, self._file[spec.name], self._h5py) for spec in specs}

    def files(self) -> set[str]:
        return {self._path}

    def flush(self) -> None:
        """Flush the file; with MPI this syncs it too (``MPI_File_sync``)."""
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def transfer_list(self, collective: bool) -> Any:
        """Return the transfer property list, one for each mode."""
        if collective not in self._transfers:
            h5p, h5fd = self._h5py.h5p, self._h5py.h5fd
            transfer = h5p.create(h5p.DATASET_XFER)
            if self._rank is not None:
                mode = h5fd.MPIO_COLLECTIVE if collective else h5fd.MPIO_INDEPENDENT
                transfer.set_dxpl_mpio(mode)
            self._transfers[collective] = transfer
        return self._transfers[collective]

    def moved_collectively(self, collective: bool) -> bool:
        """Whether the last transfer really was collective, which passes the chunk cache by."""
        if self._rank is None or not collective:
            return False
        from pffbench.backends.libhdf5 import actual_io_mode

        return actual_io_mode(self.transfer_list(True).id) != "independent"

    def transfer_facts(self) -> dict[str, str]:
        """Tell the mode that the last transfer used and why it was not collective."""
        if self._rank is None:
            return {}
        from pffbench.backends.libhdf5 import actual_io_mode, no_collective_cause

        facts = {}
        for collective, transfer in self._transfers.items():
            facts["hdf5_io_mode"] = actual_io_mode(transfer.id)
            if collective and (causes := no_collective_cause(transfer.id)):
                facts["hdf5_no_collective_cause"] = causes
        return facts


def _creation(spec: ArraySpec) -> dict[str, Any]:
    """Return what ``create_dataset`` is told beyond name, shape and type."""
    told: dict[str, Any] = {}
    if isinstance(spec.chunks, tuple):
        told["chunks"] = spec.chunks
    if spec.fill == "none":
        told["fill_time"] = "never"
    if spec.codec == "gzip":
        told.update(compression="gzip", compression_opts=spec.level)
    elif spec.codec == "szip":
        told.update(compression="szip", compression_opts=("nn", filters.SZIP_BLOCK))
    elif plugin := filters.plugin_filter(spec):
        told.update(compression=plugin.number, compression_opts=plugin.values)
    if filters.shuffles_before(spec):
        told["shuffle"] = True
    return told


class Hdf5Array(Array):
    """A dataset. Data spaces are made beforehand, so that H5Dwrite/H5Dread alone is timed."""

    def __init__(self, store: Hdf5Store, dataset: Any, h5py: Any) -> None:
        self._store = store
        self._id = dataset.id
        self._h5s = h5py.h5s
        self._py_create = h5py.h5t.py_create

    def writer(self, box: Box, buffer: Buffer, collective: bool) -> Call:
        memory, file = self._spaces(box)
        transfer = self._store.transfer_list(collective)
        kind = self._py_create(buffer.dtype)
        return partial(self._id.write, memory, file, buffer, kind, transfer)

    def reader(self, box: Box, out: Buffer, collective: bool) -> Call:
        memory, file = self._spaces(box)
        transfer = self._store.transfer_list(collective)
        read, kind = self._id.read, self._py_create(out.dtype)

        def call() -> Buffer:
            read(memory, file, out, kind, transfer)
            return out

        return call

    def touched(self, box: Box) -> Touched | None:
        return touched(self._id, box)

    def chunking(self, collective: bool) -> Chunking | None:
        return chunking_of(self._id, cached=not self._store.moved_collectively(collective))

    def _spaces(self, box: Box) -> tuple[Any, Any]:
        file = self._id.get_space()
        if box.size == 0:
            memory = self._h5s.create_simple((1,))
            memory.select_none()
            file.select_none()
            return memory, file
        file.select_hyperslab(box.start, box.shape)
        return self._h5s.create_simple(box.shape), file
