"""Where the elements of an array lie in a file that holds it in one piece."""

from __future__ import annotations

import math
import mmap
from os import pwrite
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from pffbench.backends.base import Buffer
from pffbench.backends.inspection import Touched
from pffbench.geometry.box import Box, Shape
from pffbench.geometry.stretches import Stretches

if TYPE_CHECKING:
    import numpy.typing as npt

#: Runs processed at a time, so that counting the pages of millions takes little memory.
_AT_ONCE = 2**20


class Runs(msgspec.Struct, frozen=True):
    """The runs of a file that make up a box: equally long, in the order of the file."""

    #: Where each begins, in bytes.
    offsets: npt.NDArray[np.int64]
    #: Bytes of each.
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
    """The runs of a file that make up stretches of an array, in the order of the file."""

    #: Bytes of each; `length` is their sum.
    lengths: npt.NDArray[np.int64]

    @classmethod
    def of(cls, stretches: Stretches, itemsize: int, begin: int) -> UnequalRuns:
        """Return the runs of stretches in a file in which the array begins at a byte."""
        lengths = stretches.lengths * itemsize
        return cls(begin + stretches.offsets * itemsize, int(lengths.sum()), lengths)

    def _lengths_of(self, begin: int) -> npt.NDArray[np.int64]:
        return self.lengths[begin : begin + _AT_ONCE]


class ArrayInFile(msgspec.Struct, frozen=True):
    """An array that lies in a file in one piece, in the order of C."""

    #: Shape of the array.
    shape: Shape
    #: Bytes of an element.
    itemsize: int
    #: Bytes before the first element.
    begin: int

    def runs(self, box: Box) -> Runs:
        """Return the fewest runs that make up a box."""
        if isinstance(box, Stretches):
            return UnequalRuns.of(box, self.itemsize, self.begin)
        if box.size == 0:
            return Runs(np.empty(0, np.int64), 0)
        strides = [
            step * self.itemsize * math.prod(self.shape[axis + 1 :])
            for axis, step in enumerate(box.steps)
        ]
        outer = _outer_axes(self.shape, box.shape, box.steps)
        offsets = np.array(self.first_byte(box), np.int64)
        for axis in range(outer):
            along = np.arange(box.shape[axis], dtype=np.int64) * strides[axis]
            offsets = np.add.outer(offsets, along)
        return Runs(offsets.reshape(-1), math.prod(box.shape[outer:]) * self.itemsize)

    def first_byte(self, box: Box) -> int:
        """Return the offset in the file of a box's first element."""
        if isinstance(box, Stretches):
            return self.begin + int(box.offsets[0]) * self.itemsize
        index = 0
        for first, n in zip(box.start, self.shape, strict=True):
            index = index * n + first
        return self.begin + index * self.itemsize

    def run_count(self, box: Box) -> int:
        """Return the number of runs without listing them."""
        if isinstance(box, Stretches):
            return len(box.offsets)
        outer = _outer_axes(self.shape, box.shape, box.steps)
        return math.prod(box.shape[:outer]) if box.size else 0

    def touched(self, box: Box) -> Touched:
        """Return the runs of a box, and the bytes of their pages."""
        return self.runs(box).touched()


def _outer_axes(shape: Shape, box: Shape, steps: Shape) -> int:
    """Return how many of the slowest axes separate runs: the faster ones are contiguous."""
    axis = len(shape)
    while axis and box[axis - 1] == shape[axis - 1]:
        axis -= 1
    apart = axis and steps[axis - 1] > 1 and box[axis - 1] > 1
    return axis if apart else max(0, axis - 1)


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


def diagnose_short_write(path: str, array: ArrayInFile, box: Box, buffer: Buffer) -> str:
    """Write a box of an array; return the system's error, empty if there is none.

    MPI-IO need not report the reason of a failure; POSIX calls do.
    """
    try:
        with open(path, "r+b", buffering=0) as opened:
            write_runs(opened.fileno(), bytes_of(buffer), array.runs(box))
    except OSError as error:
        return error.strerror or str(error)
    return ""
