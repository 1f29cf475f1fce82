"""HDF5 through h5py: parallel with the MPI-IO driver, or one file per process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from msgspec.structs import replace

from pffbench.backends import hdf5_files as filters
from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Array, Buffer, Call, Edges, NotInstalled, Store
from pffbench.backends.hdf5_files import (
    Hdf5FileOptions,
    Hdf5Format,
    layout_of,
    refuse_chunks,
    refuse_independent,
    select_union,
    superblock_version,
)
from pffbench.backends.hints import FileHints, hints_of_one_writer, info_of, refuse_hints
from pffbench.backends.inspection import (
    ChunkCacheSettings,
    StoredAs,
    StoredLayout,
)
from pffbench.backends.mapped_attributes import MappedAttributes
from pffbench.backends.registry import missing_library
from pffbench.backends.traits import Inquiry
from pffbench.case import Parameters, Settings
from pffbench.geometry.box import Box
from pffbench.geometry.stretches import Stretches
from pffbench.interpreter import ask_no_processor

if TYPE_CHECKING:
    from mpi4py import MPI


Libver = Literal["earliest", "v108", "v110", "v112", "v114", "latest"]
#: h5py's names of the bounds; those that the linked HDF5 does not know are missing there.
_BOUNDS: dict[Libver, str] = {
    "earliest": "LIBVER_EARLIEST",
    "v108": "LIBVER_V18",
    "v110": "LIBVER_V110",
    "v112": "LIBVER_V112",
    "v114": "LIBVER_V114",
    "latest": "LIBVER_LATEST",
}


class Hdf5Options(Hdf5FileOptions, frozen=True, kw_only=True):
    """Options of HDF5; every default is the library's own."""

    #: Metadata is read and written collectively (``H5Pset_all_coll_metadata_ops``,
    #: ``H5Pset_coll_metadata_write``). The library's default is off. ``matched`` switches it on,
    #: because netCDF-C always does.
    collective_metadata: bool | None = None
    #: Lowest version of the file format that is written (``H5Pset_libver_bounds``). The library's
    #: default is ``earliest`` before HDF5 2.0. ``matched`` uses ``v108``, which netCDF-C always
    #: sets.
    libver: Libver | None = None
    #: Calls that move the data: slices of ``h5py.Dataset``, as in most programs, or H5Dwrite and
    #: H5Dread with data spaces made in advance and reads into the caller's memory, to measure the
    #: cost of slices. Stretches of a decomposition map always use ``low_level``, because slices
    #: have no unions.
    api: Api = "high_level"
    #: Whether a new file is switched to single writer, multiple readers (``H5Fstart_swmr_write``)
    #: once its datasets are defined. It needs a file for each rank, and ``libver: latest``.
    swmr: bool = False


class Hdf5(Hdf5Format[Hdf5Options]):
    """Datasets of an HDF5 file; data move by slices of h5py, or below them."""

    name = "hdf5"
    title = "HDF5"
    summary = "HDF5 through h5py"
    suffix = ".h5"
    libraries = ("h5py",)
    capabilities = replace(
        Hdf5Format.capabilities,
        codecs=filters.CODECS | filters.CODECS_OF_H5PY,
        new_arrays=frozenset({"independent"}),
    )

    def __init__(self, options: Hdf5Options, settings: Settings) -> None:
        super().__init__(options, settings)
        ask_no_processor()
        import h5py

        self._h5py = h5py
        wanted = options.collective_metadata
        self._collective_metadata = settings == "matched" if wanted is None else wanted
        self._libver: Libver | None = options.libver
        if settings == "matched" and options.libver is None:
            self._libver = "v108"
        _, slots, nbytes, preemption = h5py.h5p.create(h5py.h5p.FILE_ACCESS).get_cache()
        common = self.common_cache(ChunkCacheSettings(nbytes, slots, preemption))
        self._chunk_cache = options.cache(common)
        metadata = ("collective metadata on, as netCDF-C has it",) * self._collective_metadata
        self.notes = (*metadata, f"chunk cache of each dataset: {self._chunk_cache}")

    @property
    def new_arrays(self) -> frozenset[str]:
        return super().new_arrays if self.options.api == "high_level" else frozenset()

    @classmethod
    def refuse(
        cls, parameters: Parameters, options: Hdf5Options, specs: Sequence[ArraySpec], edges: Edges
    ) -> str | None:
        return (
            refuse_hints(options, parameters)
            or refuse_chunks(parameters, specs)
            or _refuse_szip(specs)
            or _refuse_libver(options)
            or _refuse_swmr(parameters, options)
            or filters.refuse_filters(parameters, specs)
            or refuse_independent(parameters, specs)
        )

    def create(self, path: str, comm: MPI.Intracomm | None) -> Store:
        h5f = self._h5py.h5f
        handle = h5f.create(path.encode(), h5f.ACC_EXCL, fapl=self._access(comm))
        return self._store(handle, path, comm)

    def open(self, path: str, comm: MPI.Intracomm | None) -> Store:
        return self._open(path, comm, self._h5py.h5f.ACC_RDONLY)

    def reopen(self, path: str, comm: MPI.Intracomm | None) -> Store:
        return self._open(path, comm, self._h5py.h5f.ACC_RDWR)

    def _open(self, path: str, comm: MPI.Intracomm | None, flags: int) -> Store:
        handle = self._h5py.h5f.open(path.encode(), flags, fapl=self._access(comm))
        return self._store(handle, path, comm)

    def _store(self, handle: Any, path: str, comm: MPI.Intracomm | None) -> Store:
        everywhere = comm is not None and self._collective_metadata
        return Hdf5Store(self._h5py, self._h5py.File(handle), path, comm, everywhere, self.options)

    def _access(self, comm: MPI.Intracomm | None) -> Any:
        """Return a file access property list; h5py.File cannot set all its properties."""
        options = self.options
        h5p, h5f = self._h5py.h5p, self._h5py.h5f
        access = h5p.create(h5p.FILE_ACCESS)
        access.set_fclose_degree(h5f.CLOSE_STRONG)
        if self._libver is not None:
            access.set_libver_bounds(getattr(h5f, _BOUNDS[self._libver]), h5f.LIBVER_LATEST)
        cache = self._chunk_cache
        access.set_cache(0, cache.slots, cache.nbytes, cache.preemption)
        if options.alignments is not None:
            access.set_alignment(*options.alignments)
        if comm is None:
            return access
        from mpi4py import MPI

        with info_of(options, MPI.INFO_NULL) as info:
            access.set_fapl_mpio(comm, info)
        if self._collective_metadata:
            from pffbench.backends.libhdf5 import set_collective_metadata

            set_collective_metadata(access.id)
        return access

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


def _refuse_szip(specs: Sequence[ArraySpec]) -> str | None:
    """Return that the linked HDF5 does not compress by szip, which is optional in it, or None."""
    if all(spec.codec != "szip" for spec in specs) or missing_library(Hdf5):
        return None
    from h5py import h5z, version

    encodes = h5z.filter_avail(h5z.FILTER_SZIP) and (
        h5z.get_filter_info(h5z.FILTER_SZIP) & h5z.FILTER_CONFIG_ENCODE_ENABLED
    )
    return None if encodes else NotInstalled(f"HDF5 {version.hdf5_version} is built without szip")


def _refuse_libver(options: Hdf5Options) -> str | None:
    """Return that the linked HDF5 does not know a version of the file format, or None."""
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


def _refuse_swmr(parameters: Parameters, options: Hdf5Options) -> str | None:
    """Return why a file cannot have a single writer and multiple readers, or None."""
    if not options.swmr:
        return None
    if parameters.shares_files:
        return "hdf5.swmr: a file has a single writer, so files must be per_rank"
    if options.libver in (None, "earliest", "v108"):
        return "hdf5.swmr needs a newer format of the file: hdf5.libver: latest"
    return None


class Hdf5Store(MappedAttributes, Store):
    """An HDF5 file, shared by ranks or open on one rank."""

    def __init__(
        self,
        h5py: Any,
        file: Any,
        path: str,
        comm: MPI.Intracomm | None,
        collective_lookup: bool,
        options: Hdf5Options,
    ) -> None:
        self._h5py = h5py
        self._file = file
        self._rank = None if comm is None else comm.rank
        self.collective_lookup = collective_lookup
        # H5Dset_extent and H5Acreate change metadata, which all ranks do together.
        self.collective_growth = self.collective_attributes = comm is not None
        self._path = path
        self._options = options
        self._transfers: dict[bool, Any] = {}
        #: The transfer property list of the last transfer in each mode.
        self.transferred: dict[bool, Any] = {}
        self._memory: dict[tuple[Any, Any], tuple[Any, Any]] = {}
        # Kept with the store: after a failed close HDF5 crashes when a dataset is released.
        self._datasets: list[Any] = []

    def definer(self, specs: Sequence[ArraySpec]) -> Call:
        """Create all datasets on every rank: in parallel HDF5 the definition is collective."""
        told = [(spec.name, spec.shape, spec.stored_dtype, _creation(spec)) for spec in specs]

        def create() -> list[Any]:
            make = self._file.create_dataset
            self._datasets = [make(name, shape, kind, **how) for name, shape, kind, how in told]
            if self._options.swmr:
                self._file.swmr_mode = True
            return self._datasets

        return create

    def opener(self, specs: Sequence[ArraySpec]) -> Call:
        names = [spec.name for spec in specs]

        def find() -> list[Any]:
            self._datasets = [self._file[name] for name in names]
            return self._datasets

        return find

    def wrap(self, specs: Sequence[ArraySpec], returned: Any) -> Mapping[str, Array]:
        kind = ARRAYS[self._options.api]
        self._datasets = returned
        found = zip(specs, returned, strict=True)
        return {spec.name: kind(self, dataset) for spec, dataset in found}

    def inquire(self) -> Inquiry:
        return {name: (found, found.shape, found.dtype) for name, found in self._file.items()}

    def files(self) -> set[str]:
        return {self._path}

    def flush(self) -> None:
        """Flush the file; with MPI this syncs it too (``MPI_File_sync``)."""
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def abandon(self) -> None:
        from pffbench.backends.libhdf5 import forget

        forget(one.id.id for one in (*self._datasets, self._file))

    def transfer_list(self, collective: bool) -> Any:
        """Return the transfer property list, one for each mode."""
        if collective not in self._transfers:
            h5p, h5fd = self._h5py.h5p, self._h5py.h5fd
            transfer = h5p.create(h5p.DATASET_XFER)
            if self._rank is not None:
                mode = h5fd.MPIO_COLLECTIVE if collective else h5fd.MPIO_INDEPENDENT
                transfer.set_dxpl_mpio(mode)
            self._transfers[collective] = transfer
        self.transferred[collective] = self._transfers[collective]
        return self._transfers[collective]

    def memory(self, buffer: Buffer) -> tuple[Any, Any]:
        """Return the data space and type of memory, one of each for all transfers like it.

        A data space takes some KiB: a thousand of them do not stay in the processor's cache.
        """
        like = buffer.shape, buffer.dtype
        if like not in self._memory:
            space = self._h5py.h5s.create_simple(buffer.shape)
            self._memory[like] = space, self._h5py.h5t.py_create(buffer.dtype)
        return self._memory[like]

    def moved_collectively(self, collective: bool) -> bool:
        """Whether the last transfer really was collective, which bypasses the chunk cache."""
        if self._rank is None or not collective or True not in self.transferred:
            return False
        from pffbench.backends.libhdf5 import actual_io_mode

        return actual_io_mode(self.transferred[True].id) != "independent"

    def transfer_facts(self) -> dict[str, str]:
        """Return the mode of the last transfer and why it was not collective."""
        if self._rank is None:
            return {}
        from pffbench.backends.libhdf5 import actual_io_mode, no_collective_cause

        facts = {}
        for collective, transfer in self.transferred.items():
            facts["hdf5_io_mode"] = actual_io_mode(transfer.id)
            if collective and (causes := no_collective_cause(transfer.id)):
                facts["hdf5_no_collective_cause"] = causes
        return facts

    def file_hints(self) -> FileHints | None:
        if self._rank is None:
            return hints_of_one_writer(self._options)
        if self._rank > 0:
            return None
        from pffbench.backends.libhdf5 import file_hints

        return file_hints(self._path, self._options)


def _creation(spec: ArraySpec) -> dict[str, Any]:
    """Return the arguments of ``create_dataset`` other than name, shape and type."""
    told: dict[str, Any] = {}
    if isinstance(spec.chunks, tuple):
        told["chunks"] = spec.chunks
    if spec.growth:
        told["maxshape"] = (None, *spec.shape[1:])
    if spec.fill == "none":
        told["fill_time"] = "never"
    return told | filters.filter_arguments(spec)


Api = Literal["low_level", "high_level"]


class Hdf5Array(Array):
    """A dataset. Data spaces are made beforehand, so that H5Dwrite/H5Dread alone is timed."""

    def __init__(self, store: Hdf5Store, dataset: Any) -> None:
        from h5py import h5s

        self._store = store
        self.dataset = dataset
        self._id = dataset.id
        self._h5s = h5s

    @property
    def attributes(self) -> Any:
        """The library's mapping of attributes."""
        return self.dataset.attrs

    def writer(self, box: Box, buffer: Buffer, collective: bool) -> Call:
        memory, file, kind = self._described(box, buffer)
        transfer = self._store.transfer_list(collective)
        return partial(self._id.write, memory, file, buffer, kind, transfer)

    def reader(self, box: Box, out: Buffer, collective: bool) -> Call:
        memory, file, kind = self._described(box, out)
        transfer = self._store.transfer_list(collective)
        return partial(self._id.read, memory, file, out, kind, transfer)

    def resizer(self, length: int) -> Call:
        return partial(self._id.set_extent, (length, *self._id.shape[1:]))

    def layout(self, collective: bool) -> StoredLayout | None:
        return layout_of(self._id, cached=not self._store.moved_collectively(collective))

    def _described(self, box: Box, buffer: Buffer) -> tuple[Any, Any, Any]:
        """Return the data spaces of the memory and of the file, and the type of the memory."""
        file, (memory, kind) = self._id.get_space(), self._store.memory(buffer)
        if box.size == 0:
            memory = self._h5s.create_simple((1,))
            memory.select_none()
            file.select_none()
            return memory, file, kind
        if isinstance(box, Stretches):
            select_union(file, box)
        elif box.shape == self._id.shape:  # H5S_ALL takes the library a third less than a selection
            return self._h5s.ALL, self._h5s.ALL, kind
        else:
            file.select_hyperslab(box.start, box.shape, box.stride or None)
        return memory, file, kind


class HighLevelArray(Hdf5Array):
    """A dataset accessed as in most programs, ``dataset[a:b]``: h5py's overhead is timed.

    A read returns a new array. In a collective transfer it is ``read_direct`` into the caller's:
    ``dataset[a:b]`` reads numbers independently, also within ``dataset.collective`` (h5py 3.16;
    its fast reader knows no transfer properties). Ranks with nothing to move make the low-level
    call, because h5py leaves out empty selections and the other ranks would wait for ever.
    """

    def _dataset_in(self, collective: bool) -> Any:
        """Return the dataset, having noted its own property list, which says what HDF5 did."""
        self._store.transferred[collective] = self.dataset._dxpl
        return self.dataset

    def writer(self, box: Box, buffer: Buffer, collective: bool) -> Call:
        if box.size == 0 or isinstance(box, Stretches):
            return super().writer(box, buffer, collective)
        dataset, slices = self._dataset_in(collective), box.slices

        def call() -> None:
            if collective:
                with dataset.collective:
                    dataset[slices] = buffer
            else:
                dataset[slices] = buffer

        return call

    def reader(self, box: Box, out: Buffer, collective: bool) -> Call:
        if box.size == 0 or isinstance(box, Stretches):
            return super().reader(box, out, collective)
        dataset, slices = self._dataset_in(collective), box.slices

        def call() -> Any:
            if not collective:
                return dataset[slices]
            with dataset.collective:
                dataset.read_direct(out, slices)
            return None

        return call


ARRAYS: dict[Api, type[Hdf5Array]] = {
    "low_level": Hdf5Array,
    "high_level": HighLevelArray,
}
