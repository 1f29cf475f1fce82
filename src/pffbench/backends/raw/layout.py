"""Layout of raw files: offsets, order of elements, and complete writes."""

from __future__ import annotations

import math
import mmap
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from os import pwrite
from typing import TYPE_CHECKING, ClassVar, Literal, cast

import msgspec
import numpy as np

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Array, Backend, Buffer, Cuts, LazyArrays, Store
from pffbench.backends.inspection import Inspection, StoredAs, Touched
from pffbench.case import Options, Parameters, Settings
from pffbench.parallel.decomposition import Box, Shape
from pffbench.parallel.stretches import Stretches
from pffbench.units import Size, SmallSize

if TYPE_CHECKING:
    import numpy.typing as npt

#: Last index fastest; first index fastest; or the middle index slowest, the others as in C.
Order = Literal["C", "F", "M"]
#: Runs processed at a time, so that counting the pages of millions takes little memory.
_AT_ONCE = 2**20


class RawOptions(Options, frozen=True, kw_only=True):
    """Options of all raw files.

    Parameters
    ----------
    order : {"C", "F", "both", "three"}
        Order of the elements in the file: last index fastest, first index fastest, one copy of
        each, or a third one too, in which the middle index is slowest, so that a slice across any
        axis of a volume is in one piece. A read takes the copy that is in fewest pieces.
    header : Size
        Bytes before the data. `posix` and `mpiio` write them when they create a file and read them
        when they open it, as formats do with theirs: the kernel reads ahead from then on.
    call : Size, optional
        Most bytes that one call moves; each rank's part in one call when not given. Raw transfers
        that pffbench adds to cold reads have a header, and calls as large as the formats' chunks.
    """

    order: Literal["C", "F", "both", "three"] = "C"
    header: SmallSize = msgspec.field(default_factory=lambda: SmallSize(0))
    call: Size | None = None

    added: ClassVar[frozenset[str]] = frozenset({"call"})

    def __post_init__(self) -> None:
        if self.call is not None and self.call < mmap.PAGESIZE:
            raise ValueError(f"call: {self.call} is less than a page of {mmap.PAGESIZE} B")

    @property
    def orders(self) -> tuple[Order, ...]:
        """The order of each copy."""
        several: dict[str, tuple[Order, ...]] = {"both": ("C", "F"), "three": ("C", "F", "M")}
        return several.get(self.order) or (cast(Order, self.order),)


class RawBackend(Backend):
    """Arrays one after the other in a plain file."""

    suffix = ".raw"
    options_type: ClassVar[type[Options]] = RawOptions

    def __init__(self, options: Options, settings: Settings) -> None:
        super().__init__(options, settings)
        limits = (type(self).call_limit, self._options.call)
        self.call_limit = min(filter(None, limits), default=None)

    @classmethod
    def copies(cls, options: Options) -> int:
        assert isinstance(options, RawOptions)
        return len(options.orders)

    @classmethod
    def refuse(
        cls, parameters: Parameters, options: Options, specs: Sequence[ArraySpec], cuts: Cuts
    ) -> str | None:
        assert isinstance(options, RawOptions)
        if parameters.irregular and options.order != "C":
            return f"a decomposition map has its stretches in order C, here it is {options.order}"
        return refuse_order(options, specs)

    @property
    def inspection(self) -> RawInspection:
        return RawInspection(self._options)

    @property
    def _options(self) -> RawOptions:
        assert isinstance(self.options, RawOptions)
        return self.options


class RawStore(Store):
    """A plain file without metadata; the offsets of arrays follow from their specifications."""

    _path: str
    _options: RawOptions

    def files(self) -> set[str]:
        return {self._path}

    def define(self, specs: Sequence[ArraySpec]) -> Mapping[str, Array]:
        return self.arrays(specs)

    def arrays(self, specs: Iterable[ArraySpec]) -> Mapping[str, Array]:
        wanted = list(specs)
        return LazyArrays(lambda: {spec.name: self._array(spec) for spec in wanted})

    @abstractmethod
    def _array(self, spec: ArraySpec) -> Array:
        """Return an array; calls no library."""


class RawArray(Array):
    """An array of a plain file, or several copies of it in different orders."""

    _copies: Sequence[Copy]

    def touched(self, box: Box) -> Touched:
        return best_copy(self._copies, box).runs(box).touched()


class RawInspection(Inspection):
    """A raw file describes nothing: the options say how arrays lie in it, if not in C order."""

    def __init__(self, options: RawOptions) -> None:
        self._options = options

    def describe(self, path: str) -> StoredAs:
        order, header = self._options.order, self._options.header
        more = {} if order == "C" else {"order": str(order)}
        return StoredAs(more=more | ({"header": str(header)} if header else {}))


class Runs(msgspec.Struct, frozen=True):
    """The runs of a file that make up a box: equally long, in the order of the file.

    Parameters
    ----------
    offsets : array of int64
        Where each begins, in bytes.
    length : int
        Bytes of each.
    """

    offsets: npt.NDArray[np.int64]
    length: int

    @property
    def end(self) -> int:
        """Where the last one ends in the file."""
        return int(self.offsets[-1] + np.atleast_1d(self._lengths_of(len(self.offsets) - 1))[-1])

    def touched(self, page: int = mmap.PAGESIZE) -> Touched:
        """Count the pages that the runs lie in, each page once."""
        pages, before = 0, -1
        for begin in range(0, len(self.offsets), _AT_ONCE):
            some = self.offsets[begin : begin + _AT_ONCE]
            last = (some + (self._lengths_of(begin) - 1)) // page
            previous = np.concatenate(([before], last[:-1]))
            pages += int((last - np.maximum(some // page, previous + 1) + 1).sum())
            before = int(last[-1])
        return Touched("runs", len(self.offsets), pages * page)

    def _lengths_of(self, begin: int) -> int | npt.NDArray[np.int64]:
        """Return the length of the runs that are processed from `begin` on."""
        return self.length


class UnequalRuns(Runs, frozen=True):
    """The runs of a file that make up stretches of an array, in the order of the file.

    Parameters
    ----------
    lengths : array of int64
        Bytes of each; `length` is their sum.
    """

    lengths: npt.NDArray[np.int64]

    @classmethod
    def of(cls, stretches: Stretches, itemsize: int, begin: int) -> UnequalRuns:
        """Return the runs of stretches in a file in which the array begins at a byte."""
        lengths = stretches.lengths * itemsize
        return cls(begin + stretches.offsets * itemsize, int(lengths.sum()), lengths)

    def _lengths_of(self, begin: int) -> npt.NDArray[np.int64]:
        return self.lengths[begin : begin + _AT_ONCE]


class Copy(msgspec.Struct, frozen=True):
    """One copy of an array in a raw file.

    Parameters
    ----------
    shape : tuple of int
        Shape of the array.
    itemsize : int
        Bytes of an element.
    order : {"C", "F", "M"}
        Order of the axes in the file.
    begin : int
        Bytes before the first element.
    """

    shape: Shape
    itemsize: int
    order: Order
    begin: int

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes of the array, the slowest first."""
        in_order = tuple(range(len(self.shape)))
        if self.order == "M":
            middle = len(in_order) // 2
            return (middle, *(axis for axis in in_order if axis != middle))
        return in_order if self.order == "C" else in_order[::-1]

    @property
    def shape_in_file(self) -> Shape:
        """The shape with the slowest axis first."""
        return tuple(self.shape[axis] for axis in self.axes)

    def runs(self, box: Box) -> Runs:
        """Return the fewest runs that make up a box."""
        if isinstance(box, Stretches):  # of an array in order C
            return UnequalRuns.of(box, self.itemsize, self.begin)
        if box.size == 0:
            return Runs(np.empty(0, np.int64), 0)
        shape, _, extent, steps = self._slowest_first(box)
        strides = [
            step * self.itemsize * math.prod(shape[axis + 1 :]) for axis, step in enumerate(steps)
        ]
        outer = _outer_axes(shape, extent, steps)
        offsets = np.array(self.first_byte(box), np.int64)
        for axis in range(outer):
            along = np.arange(extent[axis], dtype=np.int64) * strides[axis]
            offsets = np.add.outer(offsets, along)
        return Runs(offsets.reshape(-1), math.prod(extent[outer:]) * self.itemsize)

    def first_byte(self, box: Box) -> int:
        """Return the offset in the file of a box's first element."""
        if isinstance(box, Stretches):
            return self.begin + int(box.offsets[0]) * self.itemsize
        shape, start, *_ = self._slowest_first(box)
        index = 0
        for first, n in zip(start, shape, strict=True):
            index = index * n + first
        return self.begin + index * self.itemsize

    def run_count(self, box: Box) -> int:
        """Return the number of runs without listing them."""
        if isinstance(box, Stretches):
            return len(box.offsets)
        shape, _, extent, steps = self._slowest_first(box)
        return math.prod(extent[: _outer_axes(shape, extent, steps)]) if box.size else 0

    def from_memory(self, buffer: Buffer) -> Buffer:
        """Return a C-ordered buffer's elements in the order of the file; a copy but for order C."""
        return buffer if self.order == "C" else np.ascontiguousarray(buffer.transpose(self.axes))

    def to_memory(self, out: Buffer) -> Buffer:
        """View a buffer, filled in the order of the file, as its box."""
        if self.order == "C":
            return out
        return self.as_array(out.reshape(-1).reshape([out.shape[axis] for axis in self.axes]))

    def as_array(self, stored: Buffer) -> Buffer:
        """View data with the axes of the file as the array, or as a box of it."""
        return stored.transpose(np.argsort(self.axes))

    def _slowest_first(self, box: Box) -> tuple[Shape, Shape, Shape, Shape]:
        whole, start, extent, steps = (
            tuple(lengths[axis] for axis in self.axes)
            for lengths in (self.shape, box.start, box.shape, box.steps)
        )
        return whole, start, extent, steps


def _outer_axes(shape: Shape, extent: Shape, steps: Shape) -> int:
    """Return how many of the slowest axes separate runs: the faster ones are contiguous."""
    axis = len(shape)
    while axis and extent[axis - 1] == shape[axis - 1]:
        axis -= 1
    apart = axis and steps[axis - 1] > 1 and extent[axis - 1] > 1
    return axis if apart else max(0, axis - 1)


def refuse_order(options: RawOptions, specs: Sequence[ArraySpec]) -> str | None:
    """Return why arrays cannot be in that order, or None."""
    if options.order != "C" and any(spec.growth for spec in specs):
        return f"rows are appended to raw files of order C only, here it is {options.order}"
    if options.order == "three" and any(len(spec.shape) < 3 for spec in specs):
        return "order: three is for arrays of 3 axes or more; with fewer, both has all orders"
    return None


def copies_of(spec: ArraySpec, options: RawOptions) -> list[Copy]:
    """Return the copies of an array: one after the other, after those of preceding arrays."""
    orders = options.orders
    begin = int(options.header) + len(orders) * spec.offset
    shape = (spec.shape[0] + spec.growth, *spec.shape[1:])
    return [
        Copy(shape, spec.itemsize, order, begin + number * spec.nbytes)
        for number, order in enumerate(orders)
    ]


def best_copy(copies: Sequence[Copy], box: Box) -> Copy:
    """Return the copy in which a box is in fewest pieces; the first of equals."""
    return min(copies, key=lambda copy: copy.run_count(box))


def bytes_of(buffer: Buffer) -> memoryview:
    """View a C-contiguous buffer as bytes."""
    return buffer.reshape(-1).view("u1").data


def write_all(descriptor: int, data: memoryview, offset: int) -> int:
    """Write all bytes; the kernel may take fewer than given, 2 GiB - 4 KiB at most."""
    done = pwrite(descriptor, data, offset)
    while done < data.nbytes:
        done += pwrite(descriptor, data[done:], offset + done)
    return done


def write_runs(descriptor: int, data: memoryview, runs: Runs) -> int:
    """Write the bytes of a box, run by run."""
    if isinstance(runs, UnequalRuns):
        return _write_unequal_runs(descriptor, data, runs)
    length, begin = runs.length, 0
    for offset in runs.offsets.data:
        part = data[begin : begin + length]
        if pwrite(descriptor, part, offset) < length:
            write_all(descriptor, part, offset)
        begin += length
    return begin


def _write_unequal_runs(descriptor: int, data: memoryview, runs: UnequalRuns) -> int:
    begin = 0
    for offset, length in zip(runs.offsets.data, runs.lengths.data, strict=True):
        part = data[begin : begin + length]
        if pwrite(descriptor, part, offset) < length:
            write_all(descriptor, part, offset)
        begin += length
    return begin


def diagnose_short_write(file: str | int, copies: Sequence[Copy], box: Box, buffer: Buffer) -> str:
    """Write a box into each copy of its array; return the system's error at its last byte.

    The file is given by its path or as a descriptor, which stays open.
    """
    try:
        with open(file, "r+b", buffering=0, closefd=isinstance(file, str)) as opened:
            for copy in copies:
                data = bytes_of(copy.from_memory(buffer))
                write_runs(opened.fileno(), data, copy.runs(box))
    except OSError as error:
        return error.strerror or str(error)
    except MemoryError:  # for a copy in the order of the file; the error stays unknown
        return ""
    return ""
