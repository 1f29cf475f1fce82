"""netCDF-4 through netCDF4-python: parallel, or one file per process."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from math import prod
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from pffbench.backends import hdf5_files as filters
from pffbench.backends.base import (
    MPI_CALL_LIMIT,
    Array,
    ArraySpec,
    Backend,
    Buffer,
    Call,
    Capabilities,
    Cuts,
    LazyArrays,
    Store,
    StoredAs,
    Touched,
)
from pffbench.backends.chunk_cache_model import (
    MATCHED_CHUNK_CACHE,
    ChunkCacheSettings,
    Chunking,
    StoredChunks,
)
from pffbench.backends.hdf5_files import (
    chunks_on_disk,
    h5repack,
    part_of_hdf5,
    refuse_chunks,
    superblock_version,
)
from pffbench.backends.inspection import touched_chunks
from pffbench.case import Options, Parameters, Settings
from pffbench.data.base import Source
from pffbench.data.generators import BitRounded
from pffbench.parallel.decomposition import Box
from pffbench.units import CacheSize, SmallSize

if TYPE_CHECKING:
    from mpi4py import MPI



#: Bits of the mantissa of each type that can be rounded.
_MANTISSAS = {"float32": 23, "float64": 52}


#: Bytes of a chunk that netCDF-C (4.9) chooses if no axis has a known length: for one axis, and for
#: several.
_UNLIMITED_CHUNK = (2**12, 2**24)


class NetCdf4Options(Options, frozen=True, kw_only=True):
    """Options of netCDF-4; every default but that of `enddef` is the library's own.

    Parameters
    ----------
    fill : bool, optional
        Whether variables are filled before data are written. The library's default is on;
        ``matched`` switches it off.
    chunk_cache : Size, optional
        Bytes of the chunk cache of each variable (``nc_set_var_chunk_cache``). The library's
        default is 16 MiB (4.9), and up to 64 MiB where a chunk is larger; ``matched`` gives all
        libraries that have one 1 MiB.
    chunk_cache_slots : int, optional
        Slots of the same cache.
    chunk_cache_w0 : float, optional
        Eviction: 0 the least recently used chunk first, 1 chunks wholly read or written first.
    alignment : Size, optional
        Objects of at least this size begin at multiples of it (``nc_set_alignment``).
    quantize : int, optional
        Bits of the mantissa that floating-point numbers keep (``nc_def_var_quantize``, BitRound),
        so that they compress better; data read are checked against numbers so rounded.
    dimensions : {"fixed", "unlimited_shared", "unlimited_private"}
        Dimensions of fixed length; or unlimited ones, shared by all variables of the same rank, or
        private to each variable. The library finds the length of an unlimited dimension by visiting
        all variables of the file at each access.
    enddef : {"explicit", "implicit"}
        ``explicit``: define mode is ended when all variables of a phase are defined, so that the
        phase holds their creation in the file. ``implicit``: it is left to the library, which
        creates them at the first access to data, as in a program that never calls ``nc_enddef``.
    """

    fill: bool | None = None
    chunk_cache: CacheSize | None = None
    chunk_cache_slots: Annotated[int, msgspec.Meta(ge=1, le=10_000_000)] | None = None
    chunk_cache_w0: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    alignment: SmallSize | None = None
    quantize: Annotated[int, msgspec.Meta(ge=1, le=52)] | None = None
    dimensions: Literal["fixed", "unlimited_shared", "unlimited_private"] = "fixed"
    enddef: Literal["explicit", "implicit"] = "explicit"

    @property
    def chunk_cache_settings(self) -> dict[str, Any]:
        """Arguments of ``set_var_chunk_cache``; empty when the cache is left alone."""
        size = None if self.chunk_cache is None else int(self.chunk_cache)
        told = {
            "size": size, "nelems": self.chunk_cache_slots, "preemption": self.chunk_cache_w0,
        }  # fmt: skip
        return {key: value for key, value in told.items() if value is not None}

    @property
    def unlimited(self) -> bool:
        """Whether dimensions are made without a length."""
        return self.dimensions != "fixed"


class NetCdf4(Backend):
    """Variables of a netCDF-4 file."""

    name = "netcdf4"
    summary = "netCDF-4 through netCDF4-python"
    suffix = ".nc"
    libraries = ("netCDF4",)
    capabilities = Capabilities(
        codecs=filters.CODECS,
        shuffles=filters.SHUFFLES,
        compressors=filters.COMPRESSORS,
        codec_libraries=filters.CODEC_LIBRARIES,
        byte_orders=frozenset({"native", "big"}),
        caller_buffer=False,
        changes=True,
    )
    options_type = NetCdf4Options
    call_limit = MPI_CALL_LIMIT
    mpi_io = "shared"
    needs_room = True
    repack_program = "h5repack"

    def __init__(self, options: Options, settings: Settings) -> None:
        super().__init__(options, settings)
        import netCDF4

        assert isinstance(options, NetCdf4Options)
        self._netcdf4 = netCDF4
        # The alignment holds for all files of the process, so each case sets its own.
        alignment = 1 if options.alignment is None else int(options.alignment)
        if netCDF4.__has_set_alignment__:
            netCDF4.set_alignment(alignment, alignment)
        # So does the cache that variables get when a file is created or opened.
        self._usual_cache = _library_default(netCDF4)
        cache = MATCHED_CHUNK_CACHE if settings == "matched" else self._usual_cache
        netCDF4.set_chunk_cache(cache.nbytes, cache.slots, cache.preemption)

    @classmethod
    def refuse(
        cls, parameters: Parameters, options: Options, specs: Sequence[ArraySpec], cuts: Cuts
    ) -> str | None:
        assert isinstance(options, NetCdf4Options)
        if reason := _refuse_rounding(options, specs):
            return reason
        growing = any(spec.growth for spec in specs)
        if (options.unlimited or growing) and any(spec.chunks == "contiguous" for spec in specs):
            return (
                "netCDF variables with unlimited dimensions are always chunked; take other chunks "
                "than contiguous, or what does not grow and netcdf4.dimensions: fixed"
            )
        if parameters.layout != "file_per_process" and parameters.transfer == "independent":
            if options.unlimited or growing:
                what = f"netcdf4.dimensions: {options.dimensions}" if options.unlimited else "this"
                return (
                    "netCDF extends variables of a file that ranks share in collective transfer "
                    f"only; {what} needs transfer: collective or layout: file_per_process"
                )
            if options.enddef == "implicit":
                return (
                    "all ranks of a shared netCDF file end define mode together, at the first "
                    "access to data; netcdf4.enddef: implicit needs transfer: collective or "
                    "layout: file_per_process"
                )
        if reason := refuse_chunks(parameters, specs):
            return reason
        if reason := filters.refuse_filters(parameters, specs, must_compress=True):
            return reason
        compressed = any(spec.codec not in ("none", "library") for spec in specs)
        shared = parameters.layout != "file_per_process"
        if compressed and shared and parameters.transfer_of_reads == "independent":
            return (
                "netCDF reads compressed data of a file that ranks share in collective calls only; "
                "read_transfer must be collective too"
            )
        return None

    @classmethod
    def padding(cls, spec: ArraySpec, options: Options) -> float:
        assert isinstance(options, NetCdf4Options)
        if not options.unlimited or spec.chunks != "library":
            return 1.0
        axes = len(spec.shape)
        edge = round((_UNLIMITED_CHUNK[axes > 1] / spec.itemsize) ** (1 / axes))
        return float(math.prod(-(-n // edge) * edge / n for n in spec.shape))

    def create(self, path: str, comm: MPI.Intracomm | None) -> Store:
        return self._store(path, "w", comm, clobber=False, format="NETCDF4")

    def open(self, path: str, comm: MPI.Intracomm | None) -> Store:
        return self._store(path, "r", comm)

    def reopen(self, path: str, comm: MPI.Intracomm | None) -> Store:
        return self._store(path, "r+", comm)

    def _store(
        self, path: str, mode: Literal["r", "w", "r+"], comm: MPI.Intracomm | None, **told: Any
    ) -> Store:
        from mpi4py import MPI

        if comm is not None:
            told.update(parallel=True, comm=comm, info=MPI.INFO_NULL)
        dataset = self._netcdf4.Dataset(path, mode, **told)
        assert isinstance(self.options, NetCdf4Options)
        return NetCdf4Store(dataset, path, comm, self.options, self.settings)

    def forget(self, overwrite: Callable[[], None]) -> None:
        from pffbench.backends.libhdf5 import garbage_collect

        garbage_collect()
        overwrite()

    def default_chunk_cache(self) -> ChunkCacheSettings:
        return self._usual_cache

    def stored_chunks(self, path: str, name: str) -> StoredChunks | None:
        return chunks_on_disk(path, name)

    def stored_part(self, path: str, name: str, box: Box) -> StoredChunks | None:
        return part_of_hdf5(path, name, box)

    @classmethod
    def repack_command(cls, source: str, target: str, specs: Sequence[ArraySpec]) -> list[str]:
        return h5repack(source, target, specs)

    def as_read(self, source: Source) -> Source:
        assert isinstance(self.options, NetCdf4Options)
        bits = self.options.quantize
        return source if bits is None else BitRounded(source, bits)

    def describe(self, path: str) -> StoredAs:
        from pffbench.backends.libnetcdf import filters_of, is_filled

        with self._netcdf4.Dataset(path) as dataset:
            variable = next(iter(dataset.variables.values()))
            chunking = variable.chunking()
            return StoredAs(
                chunks=None if chunking == "contiguous" else tuple(chunking),
                codec=filters.codec_name(filters_of(variable)),
                fill="always" if is_filled(variable) else "never",
                more={
                    **_dimensions(dataset),
                    **_rounding(variable),
                    "superblock": superblock_version(path),
                },
            )

    def notes(self) -> tuple[str, ...]:
        options = self.options
        assert isinstance(options, NetCdf4Options)
        usual = MATCHED_CHUNK_CACHE if self.settings == "matched" else self._usual_cache
        size, w0 = options.chunk_cache, options.chunk_cache_w0
        cache = ChunkCacheSettings(
            usual.nbytes if size is None else int(size),
            options.chunk_cache_slots or usual.slots,
            usual.preemption if w0 is None else w0,
        )
        more = "" if self.settings == "matched" else ", more where a chunk is larger"
        return ("reads return new arrays", f"chunk cache of each variable: {cache}{more}")


@cache
def _library_default(netcdf4: Any) -> ChunkCacheSettings:
    """Return the library's default chunk cache of a variable; before it is set."""
    return ChunkCacheSettings(*netcdf4.get_chunk_cache())


def _refuse_rounding(options: NetCdf4Options, specs: Sequence[ArraySpec]) -> str | None:
    for spec in specs if options.quantize is not None else ():
        if spec.dtype not in _MANTISSAS:
            return f"netcdf4.quantize rounds floating-point numbers, not {spec.dtype}"
        if options.quantize is not None and options.quantize > _MANTISSAS[spec.dtype]:
            return f"netcdf4.quantize: a {spec.dtype} has {_MANTISSAS[spec.dtype]} bits to keep"
    return None


def _dimensions(dataset: Any) -> dict[str, str]:
    """Return the number of unlimited dimensions of a file, if any."""
    unlimited = sum(dimension.isunlimited() for dimension in dataset.dimensions.values())
    if not unlimited:
        return {}
    of = f"{len(dataset.variables)} variables"
    return {"dimensions": f"{unlimited} unlimited for {of}"}


def _rounding(variable: Any) -> dict[str, str]:
    """Return the number of mantissa bits kept, if a variable is rounded."""
    told = variable.quantization()
    return {} if told is None else {"rounded": f"{told[1]} to {told[0]} bits"}


@dataclass(frozen=True, slots=True)
class _Definition:
    """Definition of a variable, as passed to the library.

    Parameters
    ----------
    dimensions : dict of str to int or None
        Its dimensions and their lengths; None for an unlimited one.
    names : tuple of str
        Names of the dimensions.
    dtype : numpy.dtype
        Element type in the file.
    settings : dict
        Further arguments of ``createVariable``.
    filter : Filter or None
        The compression filter, if it is a plug-in of HDF5.
    shuffle : bool
        Whether HDF5's byte shuffle comes before it.
    """

    dimensions: dict[str, int | None]
    names: tuple[str, ...]
    dtype: Any
    settings: dict[str, Any]
    filter: filters.Filter | None
    shuffle: bool


class NetCdf4Store(Store):
    """A netCDF-4 file, shared by ranks or open on one rank."""

    def __init__(
        self,
        dataset: Any,
        path: str,
        comm: MPI.Intracomm | None,
        options: NetCdf4Options,
        settings: Settings,
    ) -> None:
        self._dataset = dataset
        self._path = path
        self._shared = comm is not None
        self._options = options
        self._settings = settings
        self._cache = options.chunk_cache_settings
        self._matches_cache = settings == "matched" and comm is None
        self._prepared: Mapping[str, _Definition] = {}
        # With a cache of its own a variable is opened once more, which is collective.
        self.collective_lookup = self._shared and bool(self._cache)

    def files(self) -> set[str]:
        return {self._path}

    def prepare(self, specs: Sequence[ArraySpec]) -> None:
        self._prepared = {spec.name: self._definition(spec) for spec in specs}

    def define(self, specs: Sequence[ArraySpec]) -> Mapping[str, Array]:
        """Define all variables on every rank, then leave define mode.

        netCDF-C creates the HDF5 datasets when define mode ends, implicitly at the first access to
        data; ended here, the cost counts as definition and not as writing. netCDF4-python can end
        it only through ``sync``, which also writes everything out.
        """
        made = [(spec, self._create(spec)) for spec in specs]
        if self._options.enddef == "explicit":
            self._dataset._enddef()
        if self._cache or self._matches_cache:
            # After the end of define mode, which may set the cache of a variable by its chunks.
            self._set_caches(made)
        return LazyArrays(partial(self._arrays, made))

    def _definition(self, spec: ArraySpec) -> _Definition:
        """Return the definition of a variable, as passed to the library."""
        axes = range(len(spec.shape))
        if self._options.dimensions == "fixed":
            lengths: dict[str, int | None] = {"records": None} if spec.growth else {}
            fixed = list(enumerate(spec.shape))[len(lengths) :]
            lengths |= {f"axis{i}_{n}": n for i, n in fixed}
        elif self._options.dimensions == "unlimited_shared":
            lengths = {f"axis{i}": None for i in axes}
        else:
            lengths = {f"axis{i}_{spec.name}": None for i in axes}
        return _Definition(
            lengths,
            tuple(lengths),
            spec.stored_dtype,
            self._creation(spec),
            filters.plugin_filter(spec),
            filters.shuffles_before(spec),
        )

    def _create(self, spec: ArraySpec) -> Any:
        dataset, told = self._dataset, self._prepared.get(spec.name) or self._definition(spec)
        for name, length in told.dimensions.items():
            if name not in dataset.dimensions:
                dataset.createDimension(name, length)
        variable = dataset.createVariable(spec.name, told.dtype, told.names, **told.settings)
        if told.filter is not None:
            from pffbench.backends.libnetcdf import add_filter

            add_filter(variable, told.filter, shuffle=told.shuffle)
        return variable

    def _creation(self, spec: ArraySpec) -> dict[str, Any]:
        told: dict[str, Any] = {}
        if isinstance(spec.chunks, tuple):
            told["chunksizes"] = spec.chunks
        elif spec.chunks == "contiguous":
            told["contiguous"] = True
        if spec.codec == "gzip":
            shuffle = filters.shuffles_before(spec)
            told.update(compression="zlib", complevel=spec.level, shuffle=shuffle)
        elif spec.codec == "szip":
            told.update(
                compression="szip", szip_coding="nn", szip_pixels_per_block=filters.SZIP_BLOCK
            )
        if self._options.quantize is not None:
            told.update(significant_digits=self._options.quantize, quantize_mode="BitRound")
        fill = self._options.fill
        if fill is False or (fill is None and spec.fill == "none"):
            told["fill_value"] = False
        if spec.byte_order == "big":
            told["endian"] = "big"
        return told

    def arrays(self, specs: Iterable[ArraySpec]) -> Mapping[str, Array]:
        wanted = list(specs)
        return self.opened(wanted, self.opener(wanted)())

    def opener(self, specs: Sequence[ArraySpec]) -> Call:
        """Look up variables by name, which opens them in netCDF4-python."""
        dataset = self._dataset
        if not specs:
            return tuple
        if self._cache or any(map(self._may_be_enlarged, specs)):
            return partial(self._with_caches, specs)
        named = itemgetter(*(spec.name for spec in specs))
        return lambda: named(dataset.variables)

    def opened(self, specs: Sequence[ArraySpec], returned: Any) -> Mapping[str, Array]:
        variables = returned if isinstance(returned, tuple) else (returned,)
        return self._arrays(zip(specs, variables, strict=True))

    def _with_caches(self, specs: Sequence[ArraySpec]) -> tuple[Any, ...]:
        found = tuple(self._dataset.variables[spec.name] for spec in specs)
        self._set_caches(zip(specs, found, strict=True))
        return found

    def _set_caches(self, found: Iterable[tuple[ArraySpec, Any]]) -> None:
        """Set the chunk caches of variables, which is the library's work and so on the timer."""
        wanted = MATCHED_CHUNK_CACHE
        for spec, variable in found:
            if self._may_be_enlarged(spec) and variable.get_var_chunk_cache()[0] > wanted.nbytes:
                variable.set_var_chunk_cache(wanted.nbytes, wanted.slots, wanted.preemption)
            if self._cache and variable.chunking() != "contiguous":
                variable.set_var_chunk_cache(**self._cache)

    def _may_be_enlarged(self, spec: ArraySpec) -> bool:
        """Whether netCDF-C may have enlarged a cache, against ``matched``, to hold a large chunk.

        It does so for files of one process only, and not in all versions.
        """
        if not self._matches_cache or not isinstance(spec.chunks, tuple):
            return False
        return prod(spec.chunks) * spec.itemsize > MATCHED_CHUNK_CACHE.nbytes

    def _arrays(self, found: Iterable[tuple[ArraySpec, Any]]) -> Mapping[str, Array]:
        """Wrap the library's variables in `NetCdf4Array`."""
        arrays: dict[str, Array] = {}
        for spec, variable in found:
            if self._settings == "matched":
                variable.set_auto_maskandscale(False)
            arrays[spec.name] = NetCdf4Array(variable, self._shared)
        return arrays

    def flush(self) -> None:
        """Write everything out (``nc_sync``); with MPI this syncs the file too."""
        self._dataset.sync()

    def close(self) -> None:
        self._dataset.close()


class NetCdf4Array(Array):
    """A variable. Slicing one reads into a new array: the library offers no other way."""

    def __init__(self, variable: Any, shared: bool) -> None:
        self._variable = variable
        self._shared = shared

    def writer(self, box: Box, buffer: Buffer, collective: bool) -> Call:
        self._set_mode(collective)
        if box.size == 0:
            return self._take_part("put") if collective else _nothing
        return partial(self._variable.__setitem__, box.slices, buffer)

    def reader(self, box: Box, out: Buffer, collective: bool) -> Call:
        self._set_mode(collective)
        if box.size == 0:
            return self._take_part("get") if collective else _nothing
        return partial(self._variable.__getitem__, box.slices)

    def touched(self, box: Box) -> Touched | None:
        """Return the chunks; the library does not report the offset of a contiguous variable."""
        chunks = self._variable.chunking()
        if chunks == "contiguous":
            return None
        nbytes = prod(chunks) * int(self._variable.dtype.itemsize)
        return touched_chunks(box, tuple(chunks), None if self._compressed else nbytes)

    @property
    def _compressed(self) -> bool:
        from pffbench.backends.libnetcdf import filters_of

        return bool(filters_of(self._variable))

    def chunking(self, collective: bool) -> Chunking | None:
        """Return the chunking; collective transfers bypass the cache, as in HDF5."""
        chunks = self._variable.chunking()
        if chunks == "contiguous":
            return None
        cached = not (self._shared and collective)
        return Chunking(
            shape=self._variable.shape,
            chunks=tuple(chunks),
            itemsize=int(self._variable.dtype.itemsize),
            compressed=self._compressed,
            cache=ChunkCacheSettings(*self._variable.get_var_chunk_cache()) if cached else None,
        )

    def _set_mode(self, collective: bool) -> None:
        if self._shared:
            self._variable.set_collective(collective)

    def _take_part(self, direction: str) -> Call:
        """Return a call that moves nothing: netCDF4-python would skip it and block the others."""
        from pffbench.backends.libnetcdf import empty_transfer

        return empty_transfer(self._variable, direction)


def _nothing() -> None:
    """Move nothing: outside collective transfers an empty box needs no call."""
