"""The files of a format, and the system calls that a call of its library becomes.

What follows from the format and from our own calls is exact. What a library decides by itself is a
bound that holds, or unknown; each law says why.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any, Literal, NamedTuple

import msgspec

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.file_layout import ArrayInFile
from pffbench.backends.zarr.settings import ZarrOptions
from pffbench.backends.zarr.tensorstore import TensorStoreOptions
from pffbench.case import Options, Settings
from pffbench.geometry.box import Box, Shape
from pffbench.geometry.stretches import Stretches

Certainty = Literal["exact", "at least", "at most", "unknown"]

#: Most bytes that Linux moves in one call, and that MPI-IO moves in one (Open MPI's cycle buffer).
_KERNEL_MOST, _MPI_MOST = 2**31 - 4096, 2**29


#: Why the calls of a case are not known whose library leaves out chunks.
LEFT_OUT = "chunks that hold nothing but the fill value are left out"


class Amount(msgspec.Struct, frozen=True):
    """A number with what is known of it."""

    #: The number; None if unknown.
    value: int | None
    #: Whether it is the number, or a bound of it.
    certainty: Certainty = "exact"
    #: Why it is not exact.
    why: str = ""

    @property
    def kind(self) -> Literal["exact", "bound", "unknown"]:
        """What the tables call its certainty."""
        return self.certainty if self.certainty in ("exact", "unknown") else "bound"

    def plus(self, other: Amount) -> Amount:
        """Return the sum; no amount is negative, so that of an unknown one is a lower bound."""
        value = (self.value or 0) + (other.value or 0)
        why = self.why or other.why
        known: set[Certainty] = {self.certainty, other.certainty} - {"exact"}
        if not known:
            return Amount(value)
        if "at most" in known:
            return Amount(value, "at most", why) if len(known) == 1 else unknown(why)
        return Amount(value, "at least", why) if value else unknown(why)


def at_least(value: int, why: str) -> Amount:
    """Return a lower bound."""
    return Amount(value, "at least", why)


def at_most(value: int, why: str) -> Amount:
    """Return an upper bound."""
    return Amount(value, "at most", why)


def unknown(why: str) -> Amount:
    """Return that nothing is known."""
    return Amount(None, "unknown", why)


class Requests(msgspec.Struct, frozen=True):
    """System calls that move array data."""

    #: Number of calls by their bytes.
    sizes: Mapping[int, int] = msgspec.field(default_factory=dict)
    #: What is known of their number; at least the bytes of `sizes` are moved in any case.
    certainty: Literal["exact", "at least", "unknown"] = "exact"
    #: Whether the bytes are known: those of compressed chunks are not.
    sized: bool = True
    #: Whether the bytes are all that are moved.
    all_bytes: bool = True
    #: Why anything is not known.
    why: str = ""
    #: Number of calls that are sure, where not all of `sizes` are.
    fewest: int | None = None

    @property
    def sure(self) -> int:
        """Number of calls that are sure."""
        if self.fewest is not None:
            return self.fewest
        return 0 if self.certainty == "unknown" else sum(self.sizes.values())

    @property
    def number(self) -> Amount:
        """Number of calls."""
        if self.certainty == "unknown":
            return unknown(self.why)
        return Amount(self.sure, self.certainty, self.why * (not self.exact))

    @property
    def exact(self) -> bool:
        """Whether their number is exact."""
        return self.certainty == "exact"

    @property
    def nbytes(self) -> Amount:
        """Bytes that they move."""
        if not self.sized:
            return unknown(self.why)
        value = sum(size * count for size, count in self.sizes.items())
        return Amount(value) if self.all_bytes else at_least(value, self.why)

    def as_bound(self, certainty: Literal["at least", "unknown"], why: str) -> Requests:
        """Return them as a bound."""
        return Requests(self.sizes, certainty, self.sized, False, why)


def summed(parts: Iterable[tuple[Requests, int]]) -> Requests:
    """Return all requests together, each so many times."""
    sizes: Counter[int] = Counter()
    found: set[str] = set()
    sized = all_bytes = True
    fewest, why = 0, ""
    for one, times in parts:
        for size, count in one.sizes.items():
            sizes[size] += count * times
        found.add(one.certainty)
        fewest += one.sure * times
        sized, all_bytes, why = sized and one.sized, all_bytes and one.all_bytes, why or one.why
    certainty: Literal["exact", "at least", "unknown"] = "exact"
    if found - {"exact"}:
        certainty = "unknown" if found == {"unknown"} else "at least"
    return Requests(dict(sizes), certainty, sized, all_bytes, why, fewest)


def split_sizes(nbytes: int, count: int, most: int = _KERNEL_MOST) -> Counter[int]:
    """Return the sizes of the calls that move pieces of so many bytes, which are cut at a limit."""
    whole, rest = divmod(nbytes, most)
    return (
        Counter({most: whole * count, rest: count * (rest > 0)})
        if whole
        else Counter({nbytes: count})
    )


class TransferMode(NamedTuple):
    """How a case moves its data."""

    #: Options of the backend.
    options: Any
    #: As of the case.
    settings: Settings
    #: Whether one rank has the file open alone.
    alone: bool
    #: Whether the transfer is collective.
    collective: bool
    #: Whether each array is moved by one rank.
    owned: bool
    #: Whether a chunk may hold nothing but the fill value.
    zeros: bool = False


class Inodes(NamedTuple):
    """Files and directories."""

    files: int
    directories: int


class Totals(NamedTuple):
    """Counts of a case that laws of opening and naming files start from."""

    #: Ranks that open a store to write, and to read.
    writers: int
    readers: int
    #: Stores and arrays.
    stores: int
    arrays: int
    #: Files and directories that remain.
    inodes: Inodes
    #: Library calls that write something, of all ranks.
    write_calls: int
    #: System calls that read array data, at least.
    read_requests: int
    #: Arrays that ranks open to read, added up over the ranks.
    opened: int


class FileCalls(msgspec.Struct, frozen=True):
    """The law of a format; its methods are what holds if nothing more is known of a library."""

    #: Files and directories of a store without arrays.
    store: Inodes = Inodes(1, 0)

    def of_store(self, options: Any) -> Inodes:
        """Return the files and directories of a store without arrays."""
        return self.store

    def of_array(self, spec: ArraySpec, options: Options) -> Inodes | None:
        """Return the files and directories of an array; None where they are not known."""
        return Inodes(0, 0)

    def header(self, spec: ArraySpec | None, options: Options) -> int | None:
        """Return the bytes before an array, or of a store; None where they are not known."""
        return None

    def limit(self, options: Options) -> int | None:
        """Return the most bytes of one library call, as `Backend.call_limit`."""
        return None

    def leaves_out_chunks(self, way: TransferMode) -> bool:
        """Whether the library may leave out chunks that hold nothing but the fill value."""
        return False

    def write(self, spec: ArraySpec, box: Box, way: TransferMode) -> Requests:
        """Return the system calls of a library call that writes a box."""
        nbytes = box.size * spec.itemsize
        return Requests({nbytes: 1}, "unknown", spec.codec == "none", False, "the library's choice")

    def read(self, spec: ArraySpec, box: Box, way: TransferMode) -> Requests:
        """Return the system calls of a library call that reads a box."""
        return self.write(spec, box, way)

    def begins_at(self, spec: ArraySpec, options: Any, size: int) -> bool:
        """Whether each array, or each chunk, begins at a multiple of a size."""
        return False

    def rewritten(self, spec: ArraySpec, box: Box, way: TransferMode) -> Amount:
        """Return the bytes that are read to write a box, which only fills a part of chunks."""
        return unknown("the library's choice")

    def opens_to_write(self, totals: Totals, way: TransferMode) -> Amount:
        """Return how often files are opened until they are written."""
        return at_least(totals.inodes.files, "the library opens more")

    def opens_to_read(self, totals: Totals, way: TransferMode) -> Amount:
        """Return how often files are opened to be read."""
        return at_least(totals.opened, "the library opens more")

    def creates(self, totals: Totals, way: TransferMode) -> Amount:
        """Return how many files are created, those that go again included."""
        return at_least(totals.inodes.files, "the library makes files for a time")

    def renames(self, totals: Totals, way: TransferMode) -> Amount:
        """Return the calls that make directories, or rename or remove files."""
        return at_least(totals.inodes.directories, "the library tries, renames and removes")

    def flush_syncs(self, totals: Totals, way: TransferMode, *, flushes: bool) -> Amount:
        """Return the calls of fsync(2) by the library itself."""
        return Amount(0)


class RawCalls(FileCalls, frozen=True):
    """Plain files through POSIX calls: one call for each run of the file."""

    def header(self, spec: ArraySpec | None, options: Any) -> int | None:
        return int(options.header) if spec is None else 0

    def limit(self, options: Any) -> int | None:
        return int(options.call) if options.call is not None else None

    def write(self, spec: ArraySpec, box: Box, way: TransferMode) -> Requests:
        return _by_run(_place(spec, way.options), box)

    def read(self, spec: ArraySpec, box: Box, way: TransferMode) -> Requests:
        return _by_run(_place(spec, way.options), box)

    def rewritten(self, spec: ArraySpec, box: Box, way: TransferMode) -> Amount:
        return Amount(0)

    def opens_to_write(self, totals: Totals, way: TransferMode) -> Amount:
        return Amount(totals.writers)

    def opens_to_read(self, totals: Totals, way: TransferMode) -> Amount:
        return Amount(totals.readers)

    def creates(self, totals: Totals, way: TransferMode) -> Amount:
        return Amount(totals.stores)

    def renames(self, totals: Totals, way: TransferMode) -> Amount:
        return Amount(0)


_MPI = "MPI-IO opens files of its own and decides how it moves data"


class MpiIoCalls(RawCalls, frozen=True):
    """Plain files through MPI-IO."""

    def limit(self, options: Any) -> int | None:
        call = super().limit(options)
        return min(filter(None, (call, 2**31 - 1)))

    def write(self, spec: ArraySpec, box: Box, way: TransferMode) -> Requests:
        return _through_mpi(super().write(spec, box, way), spec, box, way)

    def read(self, spec: ArraySpec, box: Box, way: TransferMode) -> Requests:
        return _through_mpi(super().read(spec, box, way), spec, box, way)

    def rewritten(self, spec: ArraySpec, box: Box, way: TransferMode) -> Amount:
        one = sum(self.write(spec, box, way).sizes.values()) <= 1
        return Amount(0) if one and not way.collective else unknown(_MPI)

    def opens_to_write(self, totals: Totals, way: TransferMode) -> Amount:
        return at_least(totals.writers, _MPI)

    def opens_to_read(self, totals: Totals, way: TransferMode) -> Amount:
        return at_least(totals.readers, _MPI)

    def creates(self, totals: Totals, way: TransferMode) -> Amount:
        return at_least(totals.stores, _MPI)

    def renames(self, totals: Totals, way: TransferMode) -> Amount:
        return unknown(_MPI)

    def flush_syncs(self, totals: Totals, way: TransferMode, *, flushes: bool) -> Amount:
        return unknown(_MPI) if flushes else Amount(0)


class NpyCalls(RawCalls, frozen=True):
    """A directory of .npy files, written by POSIX calls and read through maps."""

    store: Inodes = Inodes(0, 1)

    def of_array(self, spec: ArraySpec, options: Options) -> Inodes:
        return Inodes(1, 0)

    def header(self, spec: ArraySpec | None, options: Any) -> int | None:
        if spec is None:
            return 0
        from pffbench.backends.npy import header_of

        return len(header_of(spec))

    def limit(self, options: Any) -> None:
        return None

    def write(self, spec: ArraySpec, box: Box, way: TransferMode) -> Requests:
        return _by_run(ArrayInFile(spec.shape, spec.itemsize, 0), box)

    def read(self, spec: ArraySpec, box: Box, way: TransferMode) -> Requests:
        return Requests()

    def opens_to_write(self, totals: Totals, way: TransferMode) -> Amount:
        return Amount(totals.arrays + totals.write_calls)

    def opens_to_read(self, totals: Totals, way: TransferMode) -> Amount:
        return at_least(totals.opened, "NumPy opens a file to look at it, and again to map it")

    def creates(self, totals: Totals, way: TransferMode) -> Amount:
        return Amount(totals.arrays)

    def renames(self, totals: Totals, way: TransferMode) -> Amount:
        return Amount(totals.stores)


_CACHED = "HDF5 keeps chunks and short pieces, and writes them later"
_METADATA = "HDF5 finds chunks by an index in the file"
_CONVERTS = "chunks pass filters, conversion or filling"
#: Bytes of HDF5's sieve buffer, in which shorter pieces of contiguous data are gathered.
_SIEVE = 2**16


class Hdf5Calls(MpiIoCalls, frozen=True):
    """HDF5 files, through any library."""

    def header(self, spec: ArraySpec | None, options: Options) -> None:
        return None

    def limit(self, options: Options) -> int:
        return 2**31 - 1

    def begins_at(self, spec: ArraySpec, options: Any, size: int) -> bool:
        if options.alignments is None:
            return False
        threshold, alignment = options.alignments
        placed = spec.nbytes if spec.chunks == "contiguous" else _bytes_of_chunk(spec)
        return placed is not None and placed >= threshold and alignment % size == 0

    def write(self, spec: ArraySpec, box: Box, way: TransferMode) -> Requests:
        return self._moved(spec, box, way, reads=False)

    def read(self, spec: ArraySpec, box: Box, way: TransferMode) -> Requests:
        return self._moved(spec, box, way, reads=True)

    def _moved(self, spec: ArraySpec, box: Box, way: TransferMode, *, reads: bool) -> Requests:
        """Return the calls of a transfer: one for each run, or each whole chunk, if it is sure."""
        nbytes = box.size * spec.itemsize
        plain = spec.codec == "none" and spec.byte_order == "native"
        if not plain or not (reads or spec.fill == "none"):
            return Requests({nbytes: 1}, "unknown", plain, False, _CONVERTS)
        if spec.chunks == "contiguous":
            made = _by_run(ArrayInFile(spec.shape, spec.itemsize, 0), box)
            if way.alone and any(size < _SIEVE for size in made.sizes):
                return made.as_bound("unknown", _CACHED)
            return _through_mpi(made, spec, box, way)
        chunk = _bytes_of_chunk(spec)
        if chunk is None or not _whole_units(spec, box, spec.chunks):
            return Requests({nbytes: 1}, "unknown", True, False, "parts of chunks")
        made = Requests(split_sizes(chunk, nbytes // chunk))
        if ArrayInFile(box.shape, spec.itemsize, 0).run_count(_first_chunk(spec)) > 1:
            return made.as_bound("unknown", "HDF5 moves a chunk by its pieces in memory")
        if way.alone and chunk <= _cache_bytes(way):
            return made.as_bound("unknown", _CACHED)
        if way.collective and not way.alone:
            return made.as_bound("unknown", _MPI)
        if reads or (chunk > _MPI_MOST and not way.alone):
            return made.as_bound("at least", _METADATA if reads else _MPI)
        return made

    def rewritten(self, spec: ArraySpec, box: Box, way: TransferMode) -> Amount:
        if way.collective or spec.codec != "none":
            return unknown(_MPI if way.collective else _CONVERTS)
        if spec.chunks == "contiguous" or _whole_units(spec, box, spec.chunks):
            return Amount(0)
        return unknown("HDF5 may read a chunk to change a part of it")

    def creates(self, totals: Totals, way: TransferMode) -> Amount:
        return Amount(totals.stores) if way.alone else super().creates(totals, way)

    def renames(self, totals: Totals, way: TransferMode) -> Amount:
        return Amount(0) if way.alone else super().renames(totals, way)

    def flush_syncs(self, totals: Totals, way: TransferMode, *, flushes: bool) -> Amount:
        return Amount(0) if way.alone else unknown("HDF5 and netCDF let MPI sync the file")


def _of_zarr(options: Options) -> ZarrOptions:
    """Return options of zarr-python, which are the usual ones if another library writes."""
    return options if isinstance(options, ZarrOptions) else ZarrOptions()


def is_rectilinear(options: Options) -> bool:
    """Whether the chunks of arrays are the parts of ranks."""
    return _of_zarr(options).chunk_grid == "rectilinear"


class ZarrCalls(FileCalls, frozen=True):
    """A directory of chunk files, or of shards."""

    store: Inodes = Inodes(1, 1)
    #: Whether a file is read until a call returns nothing, as Python reads one.
    reads_to_the_end: bool = False
    #: Files that describe a group or an array, in formats 2 and 3.
    described: tuple[int, int] = (1, 1)

    def of_store(self, options: Any) -> Inodes:
        more = _of_zarr(options).consolidated and options.format == 2
        return Inodes(self.described[options.format - 2] + more, 1)

    def of_array(self, spec: ArraySpec, options: Any) -> Inodes | None:
        grid = self._grid(spec, options)
        if grid is None:
            return None
        described = self.described[options.format - 2]
        if options.format == 2:  # names such as 0.3.1
            return Inodes(described + math.prod(grid), 1)
        # Names such as c/0/3/1: a directory for the array, one for c, and those of the outer axes.
        nested = sum(math.prod(grid[:axis]) for axis in range(len(grid)))
        return Inodes(described + math.prod(grid), 1 + nested)

    def flush_syncs(self, totals: Totals, way: TransferMode, *, flushes: bool) -> Amount:
        syncs = isinstance(way.options, TensorStoreOptions) and way.options.file_io_sync
        if syncs is False or (syncs is None and way.settings == "matched"):
            return Amount(0)
        of_arrays = totals.inodes.files - totals.stores * self.of_store(way.options).files
        why = "a file is synced with its directory each time that it is written"
        return at_least(2 * of_arrays, why)

    def leaves_out_chunks(self, way: TransferMode) -> bool:
        options = way.options
        assert isinstance(options, ZarrOptions | TensorStoreOptions)
        wanted = options.write_empty_chunks
        zarrs = _of_zarr(options).pipeline == "zarrs"
        empty = zarrs or not (way.settings == "matched" if wanted is None else wanted)
        return way.zeros and empty

    def _grid(self, spec: ArraySpec, options: Any) -> Shape | None:
        """Return the number of chunk files along each axis."""
        if is_rectilinear(options):
            lengths = spec.parts or ()
            return tuple(
                len(part) if isinstance(part, tuple) else -(-n // part)
                for part, n in zip(lengths, spec.shape, strict=True)
            )
        unit = self._unit(spec, options)
        if unit is None:
            return None
        return tuple(-(-n // c) for n, c in zip(spec.shape, unit, strict=True))

    @staticmethod
    def _unit(spec: ArraySpec, options: Any) -> Shape | None:
        unit = options.shards or spec.chunks
        return unit if isinstance(unit, tuple) else None

    def write(self, spec: ArraySpec, box: Box, way: TransferMode) -> Requests:
        return self._by_unit(spec, box, way)

    def opens_to_read(self, totals: Totals, way: TransferMode) -> Amount:
        described = _of_zarr(way.options).consolidated  # all arrays in one file
        opened = totals.readers if described else totals.opened
        return at_least(opened + totals.read_requests, "the library opens more")

    def read(self, spec: ArraySpec, box: Box, way: TransferMode) -> Requests:
        made = self._by_unit(spec, box, way)
        unit = self._unit(spec, way.options)
        parts = way.options.shards and not (unit and _whole_units(spec, box, unit))
        if parts:
            return made.as_bound("unknown", "chunks are read out of shards")
        if isinstance(way.options, TensorStoreOptions) and way.options.cache_pool:
            return Requests(made.sizes, "unknown", False, False, "the pool of chunks spares reads")
        if not self.reads_to_the_end or made.certainty == "unknown":
            return made
        return Requests(
            made.sizes, "at least", made.sized, made.all_bytes, "Python reads to the end"
        )

    def _by_unit(self, spec: ArraySpec, box: Box, way: TransferMode) -> Requests:
        """Return a call for each chunk file that holds a part of a box."""
        unit, options = self._unit(spec, way.options), way.options
        if unit is None or is_rectilinear(options):
            return super().write(spec, box, way)
        sizes = (
            _shards(spec, box, unit)
            if options.shards
            else Counter({math.prod(unit) * spec.itemsize: math.prod(_touched_along(box, unit))})
        )
        if self.leaves_out_chunks(way):
            return Requests(sizes, "unknown", False, False, LEFT_OUT)
        why = "" if spec.codec == "none" else "chunks are compressed"
        if options.shards and not _whole_units(spec, box, unit, to_the_end=True):
            why = why or "a shard holds the chunks that were written"
        if why:
            return Requests(sizes, sized=False, why=why)
        return Requests(sum((split_sizes(n, count) for n, count in sizes.items()), Counter()))

    def rewritten(self, spec: ArraySpec, box: Box, way: TransferMode) -> Amount:
        unit = self._unit(spec, way.options)
        if unit is not None and _whole_units(spec, box, unit, to_the_end=True):
            return Amount(0)
        return unknown("a chunk that is there is read before a part of it is written")


class Blosc2Calls(FileCalls, frozen=True):
    """A directory of .b2nd files."""

    store: Inodes = Inodes(0, 1)

    def of_array(self, spec: ArraySpec, options: Options) -> Inodes:
        return Inodes(1, 0)


def _place(spec: ArraySpec, options: Any) -> ArrayInFile:
    from pffbench.backends.raw.layout import place_of

    return place_of(spec, options)


def _by_run(place: ArrayInFile, box: Box) -> Requests:
    """Return one call for each run of the file."""
    if isinstance(box, Stretches):
        sizes = Counter[int]()
        for length, count in Counter((box.lengths * place.itemsize).tolist()).items():
            sizes += split_sizes(length, count)
        return Requests(sizes)
    count = place.run_count(box)
    return Requests(split_sizes(box.size * place.itemsize // count, count) if count else {})


def _through_mpi(made: Requests, spec: ArraySpec, box: Box, way: TransferMode) -> Requests:
    """Return calls of POSIX as MPI-IO makes them: a contiguous piece by one call."""
    if way.collective and not way.alone:
        return made.as_bound("unknown", _MPI)
    several = sum(made.sizes.values()) > 1
    if several or any(size > _MPI_MOST for size in made.sizes):
        return made.as_bound("unknown" if several else "at least", _MPI)
    return made


def _bytes_of_chunk(spec: ArraySpec) -> int | None:
    return math.prod(spec.chunks) * spec.itemsize if isinstance(spec.chunks, tuple) else None


def _first_chunk(spec: ArraySpec) -> Box:
    assert isinstance(spec.chunks, tuple)
    return Box((0,) * len(spec.chunks), spec.chunks)


def _cache_bytes(way: TransferMode) -> float:
    """Return the bytes of the chunk cache; no number where the library chooses it."""
    from pffbench.backends.inspection import MATCHED_CHUNK_CACHE

    asked = way.options.chunk_cache
    if asked is not None:
        return int(asked)
    return MATCHED_CHUNK_CACHE.nbytes if way.settings == "matched" else math.inf


def _touched_along(box: Box, unit: Shape) -> list[int]:
    """Return the number of units along each axis that hold a part of a box."""
    return [
        -(-stop // n) - start // n if length else 0
        for start, stop, length, n in zip(box.start, box.stop, box.shape, unit, strict=True)
    ]


def _shards(spec: ArraySpec, box: Box, unit: Shape) -> Counter[int]:
    """Return the bytes of the shards that a box touches; chunks past the array's end are in none.

    The number of shards by their bytes.
    """
    from pffbench.backends.zarr.format import index_bytes

    assert isinstance(spec.chunks, tuple)
    along = [
        Counter(
            -(-(min((at + 1) * n, end) - at * n) // chunk)
            for at in range(start // n, -(-stop // n) if stop > start else 0)
        )
        for start, stop, n, chunk, end in zip(
            box.start, box.stop, unit, spec.chunks, spec.shape, strict=True
        )
    ]
    chunk, sizes = math.prod(spec.chunks) * spec.itemsize, Counter[int]()
    for found in product(*(axis.items() for axis in along)):
        chunks, count = (math.prod(numbers) for numbers in zip(*found, strict=True))
        sizes[chunks * chunk + index_bytes(unit, spec.chunks)] += count
    return sizes


def _whole_units(spec: ArraySpec, box: Box, unit: Any, *, to_the_end: bool = False) -> bool:
    """Whether a box consists of whole chunks; those that the array's end cuts count if asked."""
    if not isinstance(unit, tuple) or isinstance(box, Stretches) or box.stride:
        return False
    axes = zip(box.start, box.stop, unit, spec.shape, strict=True)
    return all(a % c == 0 and (b % c == 0 or (to_the_end and b == n)) for a, b, c, n in axes)


_HDF5 = Hdf5Calls()
#: The law of each backend that has one.
LAWS: Mapping[str, FileCalls] = {
    "posix": RawCalls(),
    "mpiio": MpiIoCalls(),
    "npy": NpyCalls(),
    "hdf5": _HDF5,
    "netcdf4": _HDF5,
    "zarr": ZarrCalls(reads_to_the_end=True, described=(2, 1)),
    "tensorstore": ZarrCalls(),
    "blosc2": Blosc2Calls(),
}
