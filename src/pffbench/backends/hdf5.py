"""HDF5 through h5py, parallel (MPI-IO driver) or one file per process (default driver)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from pffbench.backends import filters
from pffbench.backends.base import (
    MPI_CALL_LIMIT,
    ArraySpec,
    Backend,
    Capabilities,
    Cuts,
    Store,
    StoredAs,
)
from pffbench.backends.chunkcache import MATCHED_CHUNK_CACHE, ChunkCache, StoredChunks
from pffbench.backends.hdf5_arrays import Api
from pffbench.backends.hdf5_chunks import (
    chunks_on_disk,
    h5repack,
    refuse_chunks,
    superblock_version,
)
from pffbench.backends.hdf5_store import Hdf5Store
from pffbench.backends.stored_parts import part_of_hdf5
from pffbench.case import Options, Parameters, Settings
from pffbench.parallel.decomposition import Box
from pffbench.units import CacheSize, SmallSize

if TYPE_CHECKING:
    from mpi4py import MPI


Libver = Literal["earliest", "v108", "v110", "v112", "v114", "latest"]
#: What h5py calls the bounds; those that the linked HDF5 does not know are missing there.
_BOUNDS: dict[Libver, str] = {
    "earliest": "LIBVER_EARLIEST",
    "v108": "LIBVER_V18",
    "v110": "LIBVER_V110",
    "v112": "LIBVER_V112",
    "v114": "LIBVER_V114",
    "latest": "LIBVER_LATEST",
}


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
    libver : {"earliest", "v108", "v110", "v112", "v114", "latest"}, optional
        Lowest version of the file format that is written (``H5Pset_libver_bounds``). The
        library's default is ``earliest`` before HDF5 2.0; ``matched`` takes ``v108``, which
        netCDF-C always sets.
    guess_chunks : bool
        Where the library is to choose, let h5py guess a chunk shape (``chunks=True``); a dataset
        of which nothing is said is contiguous.
    api : {"low_level", "high_level", "pread"}
        How data are moved: H5Dwrite and H5Dread with data spaces made beforehand; slices of
        ``h5py.Dataset``, as most programs do; or read with pread(2) from where a contiguous
        dataset lies in the file, so that what the layers above take can be told.
    """

    chunk_cache: CacheSize | None = None
    chunk_cache_slots: Annotated[int, msgspec.Meta(ge=1, le=10_000_000)] | None = None
    chunk_cache_w0: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    alignment: SmallSize | None = None
    file_locking: bool | None = None
    collective_metadata: bool | None = None
    libver: Libver | None = None
    guess_chunks: bool = False
    api: Api = "low_level"


class Hdf5(Backend):
    """Datasets of an HDF5 file; data move through h5py's low-level interface (H5Dwrite)."""

    name = "hdf5"
    summary = "HDF5 through h5py"
    suffix = ".h5"
    libraries = ("h5py",)
    capabilities = Capabilities(
        codecs=filters.CODECS | filters.CODECS_OF_H5PY,
        shuffles=filters.SHUFFLES,
        compressors=filters.COMPRESSORS,
        codec_libraries=filters.CODEC_LIBRARIES,
        byte_orders=frozenset({"native", "big"}),
        changes=True,
    )
    options_type = Hdf5Options
    call_limit = MPI_CALL_LIMIT
    mpi_io = "shared"
    needs_room = True
    repack_program = "h5repack"

    def __init__(self, options: Options, settings: Settings) -> None:
        super().__init__(options, settings)
        import h5py

        assert isinstance(options, Hdf5Options)
        self._h5py = h5py
        wanted = options.collective_metadata
        self._collective_metadata = settings == "matched" if wanted is None else wanted
        self._libver: Libver | None = options.libver
        if settings == "matched" and options.libver is None:
            self._libver = "v108"

    @classmethod
    def refuse(
        cls, parameters: Parameters, options: Options, specs: Sequence[ArraySpec], cuts: Cuts
    ) -> str | None:
        assert isinstance(options, Hdf5Options)
        return (
            refuse_chunks(parameters, specs)
            or filters.refuse_filters(parameters, specs)
            or _refuse_api(options, parameters, specs)
            or _refuse_libver(options)
        )

    def create(self, path: str, comm: MPI.Intracomm | None) -> Store:
        h5f = self._h5py.h5f
        handle = h5f.create(path.encode(), h5f.ACC_EXCL, fapl=self._access(comm))
        return self._store(handle, path, comm)

    def open(self, path: str, comm: MPI.Intracomm | None) -> Store:
        h5f = self._h5py.h5f
        handle = h5f.open(path.encode(), h5f.ACC_RDONLY, fapl=self._access(comm))
        return self._store(handle, path, comm)

    def reopen(self, path: str, comm: MPI.Intracomm | None) -> Store:
        h5f = self._h5py.h5f
        handle = h5f.open(path.encode(), h5f.ACC_RDWR, fapl=self._access(comm))
        return self._store(handle, path, comm)

    def _store(self, handle: Any, path: str, comm: MPI.Intracomm | None) -> Store:
        everywhere = comm is not None and self._collective_metadata
        assert isinstance(self.options, Hdf5Options)
        return Hdf5Store(self._h5py, self._h5py.File(handle), path, comm, everywhere, self.options)

    def _access(self, comm: MPI.Intracomm | None) -> Any:
        """Return a file access property list; h5py.File cannot set all that is wanted here."""
        from mpi4py import MPI

        options = self.options
        assert isinstance(options, Hdf5Options)
        h5p, h5f = self._h5py.h5p, self._h5py.h5f
        access = h5p.create(h5p.FILE_ACCESS)
        access.set_fclose_degree(h5f.CLOSE_STRONG)
        if self._libver is not None:
            access.set_libver_bounds(getattr(h5f, _BOUNDS[self._libver]), h5f.LIBVER_LATEST)
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
        """Return the chunk cache that datasets are to have."""
        options = self.options
        usual = MATCHED_CHUNK_CACHE if self.settings == "matched" else self.default_chunk_cache()
        assert isinstance(options, Hdf5Options)
        nbytes, w0 = options.chunk_cache, options.chunk_cache_w0
        return ChunkCache(
            nbytes=usual.nbytes if nbytes is None else int(nbytes),
            slots=options.chunk_cache_slots or usual.slots,
            preemption=usual.preemption if w0 is None else w0,
        )

    def forget(self, overwrite: Callable[[], None]) -> None:
        from pffbench.backends.libhdf5 import garbage_collect

        garbage_collect()
        overwrite()

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
            more = {"superblock": superblock_version(path)}
            return StoredAs(chunks=dataset.chunks, codec=codec, fill=fill, more=more)

    def notes(self) -> tuple[str, ...]:
        metadata = ("collective metadata on, as netCDF-C has it",) * self._collective_metadata
        return (*metadata, f"chunk cache of each dataset: {self._chunk_cache()}")


def _refuse_libver(options: Hdf5Options) -> str | None:
    """Say that the linked HDF5 does not know a version of the file format, or None."""
    if options.libver in (None, "earliest", "latest"):
        return None
    import h5py

    known = [name for name, constant in _BOUNDS.items() if hasattr(h5py.h5f, constant)]
    if options.libver in known:
        return None
    return (
        f"hdf5.libver: {options.libver} is not known to HDF5 {h5py.version.hdf5_version} "
        f"(it knows: {', '.join(known)})"
    )


def _refuse_api(
    options: Hdf5Options, parameters: Parameters, specs: Sequence[ArraySpec]
) -> str | None:
    """Say why bytes cannot be read past the library, or None."""
    if options.api != "pread":
        return None
    if parameters.transfer == "collective":
        return "hdf5.api: pread is a call of one rank, so transfer must be independent"
    chunked = any(isinstance(spec.chunks, tuple) for spec in specs)
    if chunked or options.guess_chunks or any(spec.byte_order != "native" for spec in specs):
        return "hdf5.api: pread finds contiguous data of native byte order; name chunks: contiguous"
    return None
