"""Stored HDF5 files, also those of netCDF-4: filters, chunks, sizes.

zlib and szip are built into HDF5, LZF into h5py; Blosc, Zstandard and LZ4 are plug-ins, registered
with The HDF Group (https://github.com/HDFGroup/hdf5_plugins), that the Python package hdf5plugin
brings. Filters of files that ranks share run in collective transfers only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import msgspec
from msgspec.structs import replace

from pffbench.backends.array_spec import EVERY_ARRAYS, EVERY_TRANSFER, ArraySpec, Capabilities
from pffbench.backends.base import MPI_CALL_LIMIT, Backend, Unsafe
from pffbench.backends.chunk_limits import refuse_codec, refuse_size
from pffbench.backends.file_layout import ArrayInFile
from pffbench.backends.hints import Hints, Striping, check_hints
from pffbench.backends.inspection import (
    MATCHED_CHUNK_CACHE,
    ChunkCacheSettings,
    Chunking,
    StoredChunks,
)
from pffbench.case import Options, Parameters
from pffbench.geometry.stretches import Stretches
from pffbench.units import CacheSize, SmallSize

if TYPE_CHECKING:
    from pffbench.data import Source

#: Numbers of the filters in files; the first four are HDF5's own.
DEFLATE, SHUFFLE, FLETCHER32, SZIP = 1, 2, 3, 4
LZF, BLOSC, LZ4, ZSTD = 32000, 32001, 32004, 32015
#: Pixels of a block of szip: 8, as in h5py, which suits any chunk of some size.
SZIP_BLOCK = 8
#: Bytes under which Blosc does not compress (BLOSC_MIN_BUFFERSIZE).
_BLOSC_LEAST = 128
#: Compressors that find repetitions only, which random numbers of a small range do not have.
_NO_ENTROPY = frozenset({"blosclz", "lz4", "lz4hc"})
#: Numbers of Blosc's compressors and shuffles in a filter's parameters.
_COMPRESSORS = ("blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd")
_SHUFFLES = ("none", "byte", "bit")
#: Values of the filter Blosc that name level, shuffle and compressor last, and what they are where
#: a file has fewer: the filter's own choice.
BLOSC_VALUES = 7
_BLOSC_USUAL = (0, 0, 0, 0, 5, 1, 0)


class Filter(msgspec.Struct, frozen=True):
    """A filter of a dataset."""

    #: Its registered number.
    number: int
    #: Its parameters.
    values: tuple[int, ...]


class Codec(msgspec.Struct, frozen=True, kw_only=True):
    """A codec of HDF5 files: its filter, its options, and what may go wrong with it."""

    #: Registered number of its filter.
    number: int
    #: The options of an array: parameters of the filter for plug-ins, otherwise those of h5py.
    options: Callable[[ArraySpec], Any] = lambda _: None
    #: Whether the filter is a plug-in, of the package hdf5plugin.
    plugin: bool = False
    #: Arguments of netCDF4's ``createVariable``, without the shuffle. Plug-ins need none. A
    #: built-in filter without them is one of h5py alone, which other programs lack.
    netcdf: Callable[[ArraySpec], dict[str, Any]] | None = None
    #: The shuffles that may precede it.
    shuffles: frozenset[str] = frozenset()
    #: Whether it leaves a chunk as it is if it cannot make it smaller.
    gives_up: bool = False
    #: Whether its first parameter in a file is the level.
    has_level: bool = False


def _blosc_values(spec: ArraySpec) -> tuple[int, ...]:
    """Return the filter's parameters; it sets the first four: versions, type and chunk size."""
    shuffle, compressor = _SHUFFLES.index(spec.shuffle), _COMPRESSORS.index(spec.compressor)
    return (0, 0, 0, 0, spec.level, shuffle, compressor)


_BYTE = frozenset({"none", "byte"})
#: All codecs of HDF5 files, by the names that experiments use.
FILTERS: Mapping[str, Codec] = {
    "gzip": Codec(
        number=DEFLATE,
        options=lambda spec: spec.level,
        netcdf=lambda spec: {"compression": "zlib", "complevel": spec.level},
        shuffles=_BYTE,
        has_level=True,
    ),
    "szip": Codec(
        number=SZIP,
        options=lambda _: ("nn", SZIP_BLOCK),
        netcdf=lambda _: {
            "compression": "szip",
            "szip_coding": "nn",
            "szip_pixels_per_block": SZIP_BLOCK,
        },
        gives_up=True,
    ),
    "zstd": Codec(
        number=ZSTD,
        options=lambda spec: (spec.level,),
        plugin=True,
        shuffles=_BYTE,
        has_level=True,
    ),
    # Bytes of a block: the filter's own default.
    "lz4": Codec(number=LZ4, options=lambda _: (0,), plugin=True, shuffles=_BYTE),
    "lzf": Codec(number=LZF, shuffles=_BYTE, gives_up=True),
    "blosc": Codec(
        number=BLOSC,
        options=_blosc_values,
        plugin=True,
        shuffles=frozenset(_SHUFFLES),
        gives_up=True,
    ),
}
#: Support in HDF5 and in netCDF-4: codecs, the shuffles of each, Blosc's names of its compressors,
#: and the package that a codec needs.
CODECS = frozenset(
    {"none", *(name for name, codec in FILTERS.items() if codec.plugin or codec.netcdf)}
)
#: Additional codecs of h5py.
CODECS_OF_H5PY = frozenset(FILTERS) - CODECS
SHUFFLES = {name: codec.shuffles for name, codec in FILTERS.items() if codec.shuffles}
COMPRESSORS = frozenset({"blosclz", "lz4", "lz4hc", "zlib", "zstd"})
CODEC_LIBRARIES = {name: "hdf5plugin" for name, codec in FILTERS.items() if codec.plugin}
GIVE_UP = frozenset(name for name, codec in FILTERS.items() if codec.gives_up)


def plugin_filter(spec: ArraySpec) -> Filter | None:
    """Return the plug-in filter of a codec; None for built-in filters."""
    codec = FILTERS.get(spec.codec)
    if codec is None or not codec.plugin:
        return None
    return Filter(codec.number, codec.options(spec))


def refuse_filters(
    parameters: Parameters, specs: Sequence[ArraySpec], *, must_compress: bool = False
) -> str | None:
    """Return why data are refused that a filter gives up on, corrupting the file, or None.

    Parameters
    ----------
    parameters : Parameters
        The case.
    specs : sequence of ArraySpec
        The kinds of its arrays.
    must_compress : bool
        Whether writing fails where a filter of a plug-in gives up, in a file of one rank too.
    """
    if reason := next(filter(None, map(_refuse_small, specs)), None):
        return reason
    for spec in specs:
        harm = harm_of_left_chunks(parameters, spec, must_compress=must_compress)
        if harm and (reason := _gives_up(spec, parameters)):
            return Unsafe(reason + harm)
    return None


def _refuse_small(spec: ArraySpec) -> str | None:
    """Return that a filter compresses no chunk of so few elements, or None."""
    if not isinstance(spec.chunks, tuple):
        return None
    elements = math.prod(spec.chunks)
    if spec.codec == "szip" and elements < SZIP_BLOCK:
        return f"codec szip works on blocks of {SZIP_BLOCK} elements; a chunk has {elements}"
    if spec.codec == "blosc" and (size := elements * spec.itemsize) < _BLOSC_LEAST:
        return (
            f"codec blosc does not compress chunks of under {_BLOSC_LEAST} bytes ({size} here), "
            "which HDF5 stores uncompressed under the codec's name; use larger chunks"
        )
    return None


def harm_of_left_chunks(
    parameters: Parameters, spec: ArraySpec, *, must_compress: bool
) -> str | None:
    """Return what follows where a filter does not make a chunk smaller; None where it does no harm.

    Parameters
    ----------
    parameters, must_compress
        As of `refuse_filters`.
    spec : ArraySpec
        The array.
    """
    if spec.codec not in GIVE_UP:
        return None
    if parameters.shares_files:
        return (
            ", leaves such chunks as they are, and parallel HDF5 does not note that in the file, "
            "which cannot be read then (HDF5 1.10.8); use codec gzip, zstd or lz4"
        )
    if must_compress and plugin_filter(spec) is not None:
        return ", and netCDF then fails to write them; use codec gzip, zstd or lz4"
    return None


def _gives_up(spec: ArraySpec, parameters: Parameters) -> str | None:
    """Return why a filter does not make chunks smaller, if known; else None."""
    source = parameters.source
    if source == "file":
        from pffbench.backends import left_chunks  # it reads the data, which few cases need

        left = left_chunks.chunk_left_of_file(spec, parameters.file, parameters.variable)
        return None if left is None else left_chunks.chunk_text(spec, left)
    if source == "uniform":
        return f"codec {spec.codec} cannot make data of source: uniform smaller"
    if spec.codec != "blosc":
        return None
    if source == "integers" and spec.itemsize == 1 and spec.compressor in _NO_ENTROPY:
        return f"codec blosc with {spec.compressor} cannot make integers of one byte smaller"
    return None


def filter_arguments(spec: ArraySpec) -> dict[str, Any]:
    """Return the arguments of h5py's ``create_dataset`` that name the filters of a dataset."""
    told: dict[str, Any] = {}
    if codec := FILTERS.get(spec.codec):
        told["compression"] = codec.number if codec.plugin else spec.codec
        if (options := codec.options(spec)) is not None:
            told["compression_opts"] = options
    if spec.shuffled_before:
        told["shuffle"] = True
    return told


def codec_name(filters: Iterable[tuple[int, Sequence[int]]]) -> str:
    """Return the codec of a dataset with level and shuffle, from the filters in its file."""
    shuffled, found = "", "none"
    for number, values in filters:
        if number == SHUFFLE:
            shuffled = " byte"
        elif number != FLETCHER32:
            found = _named(number, values)
    return found + shuffled


def _named(number: int, values: Sequence[int]) -> str:
    name = next((name for name, codec in FILTERS.items() if codec.number == number), None)
    if name is None:
        return f"filter {number}"
    if number == BLOSC:
        return _blosc_name(values)
    if not FILTERS[name].has_level or not values:
        return name
    level = values[0] - 2**32 if values[0] >= 2**31 else values[0]  # it has a sign
    return f"{name} {level}"


def _blosc_name(values: Sequence[int]) -> str:
    *_, level, shuffle, compressor = (*values, *_BLOSC_USUAL[len(values) :])[:BLOSC_VALUES]
    if shuffle >= len(_SHUFFLES) or compressor >= len(_COMPRESSORS):
        return f"filter {BLOSC}"
    shuffled = "" if shuffle == 0 else f" {_SHUFFLES[shuffle]}"
    return f"blosc-{_COMPRESSORS[compressor]} {level}{shuffled}"


#: A chunk must be smaller than 4 GiB: its size is kept in 32 bits (HDF5 file format).
CHUNK_LIMIT = 2**32 - 1
_SIGNATURE = b"\x89HDF\r\n\x1a\n"


def refuse_chunks(parameters: Parameters, specs: Sequence[ArraySpec]) -> str | None:
    """Return which of HDF5's rules for chunks and filters a case breaks, or None."""
    shared = parameters.shares_files
    for spec in specs:
        compressed = spec.codec not in ("none", "library")
        if compressed and shared and spec.byte_order != "native":
            return (
                "HDF5 gives up collective transfer where it converts types, and compressed data go "
                "into a shared file only by it; big-endian data need files: per_rank"
            )
        if spec.growth and spec.chunks == "contiguous":
            return "HDF5 appends to chunked data only; name a chunk shape instead of contiguous"
        if compressed and spec.chunks == "contiguous":
            return "HDF5 compresses chunked data only; name a chunk shape instead of contiguous"
        too_large = refuse_size(spec, CHUNK_LIMIT, "an HDF5 chunk") or refuse_codec(spec)
        if too_large:
            return too_large
    return None


def refuse_independent(parameters: Parameters, specs: Sequence[ArraySpec]) -> Unsafe | None:
    """Return that HDF5 compresses no data that ranks write independently to one file, or None."""
    compressed = any(spec.codec not in ("none", "library") for spec in specs)
    if compressed and parameters.shares_files and parameters.transfer == "independent":
        return Unsafe("compressed data go into a shared HDF5 file only with transfer: collective")
    return None


def superblock_version(path: str) -> str:
    """Return the version of a file's superblock, which follows the signature of the format."""
    with open(path, "rb") as file:
        head = file.read(len(_SIGNATURE) + 1)
    return str(head[-1]) if head.startswith(_SIGNATURE) else "unknown"


def layout_of(dataset: Any, *, cached: bool) -> Chunking | ArrayInFile | None:
    """Return where the elements of a dataset lie.

    Parameters
    ----------
    dataset : h5py.h5d.DatasetID
        An open dataset.
    cached : bool
        Whether calls go through its chunk cache.

    Returns
    -------
    Chunking or ArrayInFile or None
        Chunks, with the actual chunk cache, or one contiguous piece; None if unknown, as for a
        compact dataset or one not yet allocated in the file.
    """
    from h5py import h5d

    itemsize = int(dataset.dtype.itemsize)
    creation = dataset.get_create_plist()
    if creation.get_layout() != h5d.CHUNKED:
        begin = dataset.get_offset()
        return None if begin is None else ArrayInFile(dataset.shape, itemsize, begin)
    slots, nbytes, preemption = dataset.get_access_plist().get_chunk_cache()
    return Chunking(
        chunks=creation.get_chunk(),
        itemsize=itemsize,
        compressed=creation.get_nfilters() > 0,
        cache=ChunkCacheSettings(nbytes, slots, preemption) if cached else None,
    )


def select_union(space: Any, stretches: Stretches) -> None:
    """Select the union of the boxes of stretches in a data space, which has their order.

    In increasing order HDF5 adds each to the end of its tree, so that thousands take milliseconds.
    """
    from h5py import h5s

    space.select_none()
    for box in stretches.boxes():
        space.select_hyperslab(box.start, box.shape, op=h5s.SELECT_OR)


class Hdf5FileOptions(Options, frozen=True, kw_only=True):
    """Options of HDF5 files, through any library."""

    #: Bytes of the chunk cache of each array (``H5Pset_cache``, ``nc_set_var_chunk_cache``). The
    #: default is the library's own: in netCDF 4.9 it is 16 MiB, and up to 64 MiB for larger chunks.
    #: ``matched`` sets 1 MiB in all libraries that have a chunk cache.
    chunk_cache: CacheSize | None = None
    #: Objects of at least this size begin at multiples of it (``H5Pset_alignment``,
    #: ``nc_set_alignment``).
    alignment: SmallSize | None = None
    #: With ``alignment``: the smallest size of objects that are aligned (default: the alignment).
    alignment_threshold: SmallSize | None = None
    #: MPI-IO hints for files that ranks share, such as ``{cb_nodes: 4, romio_ds_write: disable}``.
    #: The hints in force are read back into `run.json`. A hint without effect causes a warning.
    hints: Hints = {}  # noqa: RUF012 -- msgspec copies a mutable default
    #: Stripes of new files that ranks share, on Lustre: ``count`` servers (-1 for all), ``size``
    #: bytes on each.
    striping: Striping | None = None

    def __post_init__(self) -> None:
        check_hints(self)
        if self.alignment_threshold is not None and self.alignment is None:
            raise ValueError("alignment_threshold: it goes with alignment, which is missing")

    def cache(self, usual: ChunkCacheSettings) -> ChunkCacheSettings:
        """Return a chunk cache with what these options say of it."""
        return usual if self.chunk_cache is None else replace(usual, nbytes=int(self.chunk_cache))

    @property
    def alignments(self) -> tuple[int, int] | None:
        """Size from which on objects are aligned, and at multiples of what; None for neither."""
        if self.alignment is None:
            return None
        threshold = self.alignment_threshold
        return int(self.alignment if threshold is None else threshold), int(self.alignment)


Hdf5OptionsT = TypeVar("Hdf5OptionsT", bound=Hdf5FileOptions)


class Hdf5Format(Backend[Hdf5OptionsT]):
    """HDF5 files, through any library: what HDF5 itself requires and offers."""

    capabilities = Capabilities(
        arrays=EVERY_ARRAYS,
        transfers=EVERY_TRANSFER,
        codecs=CODECS,
        shuffles=SHUFFLES,
        compressors=COMPRESSORS,
        codec_libraries=CODEC_LIBRARIES,
        byte_orders=frozenset({"native", "big"}),
        attributes=True,
        stretches=True,
    )
    call_limit = MPI_CALL_LIMIT
    mpi_io = "shared"
    deadlocks_when_full = True
    #: Whether writing fails where a filter of a plug-in gives up, in a file of one rank too.
    must_compress: ClassVar[bool] = False

    def common_cache(self, usual: ChunkCacheSettings) -> ChunkCacheSettings:
        """Note the usual chunk cache of the library; return that of arrays without options."""
        self.usual_chunk_cache = usual
        return MATCHED_CHUNK_CACHE if self.settings == "matched" else usual

    def forget(self, overwrite: Callable[[], None]) -> None:
        from pffbench.backends.libhdf5 import garbage_collect

        garbage_collect()
        overwrite()

    def stored_chunks(self, path: str, names: Sequence[str]) -> list[StoredChunks]:
        import h5py

        with h5py.File(path, "r") as file:
            chunked = [file[name].id for name in names if file[name].chunks is not None]
            return [StoredChunks(one.get_num_chunks(), one.get_storage_size()) for one in chunked]

    def refuse_data(
        self, parameters: Parameters, spec: ArraySpec, source: Source, part: int, parts: int
    ) -> str | None:
        harm = harm_of_left_chunks(parameters, spec, must_compress=self.must_compress)
        if harm is None:
            return None
        from pffbench.backends import left_chunks
        from pffbench.backends.libhdf5 import garbage_collect

        left = left_chunks.chunk_left(spec, source, part, parts)
        garbage_collect()  # of the memory that the write would find otherwise
        return None if left is None else left_chunks.chunk_text(spec, left) + harm
