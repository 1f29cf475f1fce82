"""Raw bytes through POSIX calls: the file system's best performance, one call per run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from os import preadv, pwrite
from typing import TYPE_CHECKING, Any

from pffbench.backends.array_spec import EVERY_ARRAYS, ArraySpec, Capabilities
from pffbench.backends.base import Array, Buffer, Call, Store
from pffbench.backends.file_layout import (
    ArrayInFile,
    Runs,
    UnequalRuns,
    bytes_of,
    write_all,
    write_runs,
)
from pffbench.backends.raw.layout import RawArray, RawBackend, RawOptions, RawStore, place_of
from pffbench.geometry.box import Box
from pffbench.mpi.agreement import together

if TYPE_CHECKING:
    from mpi4py import MPI


#: Bytes up to which a transfer is the system call alone. An immediate check for a short transfer
#: would take a tenth of the time of the shortest; it is made after the phase, and fewer bytes are
#: an error. Longer transfers, which the kernel may split, are resumed.
_SHORT = 2**20


class Posix(RawBackend[RawOptions]):
    """Arrays one after the other in a plain file."""

    name = "posix"
    summary = "raw bytes, POSIX pwrite/pread, a call for each contiguous piece (roofline)"
    capabilities = Capabilities(arrays=EVERY_ARRAYS, raw=True, stretches=True)

    def create(self, path: str, comm: MPI.Intracomm | None) -> Store:
        """Create the file; if ranks share it, rank 0 creates it and the others open it."""

        def make() -> int | None:
            if comm is not None and comm.rank > 0:
                return None
            made = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            if self.options.header:
                write_all(made, memoryview(bytes(self.options.header)), 0)
            return made

        descriptor = make() if comm is None else together(comm, make)
        if descriptor is None:
            descriptor = os.open(path, os.O_RDWR)
        return PosixStore(path, descriptor, self.options)

    def open(self, path: str, comm: MPI.Intracomm | None) -> Store:
        descriptor = os.open(path, os.O_RDONLY)
        if self.options.header:
            os.pread(descriptor, self.options.header, 0)
        return PosixStore(path, descriptor, self.options)

    def reopen(self, path: str, comm: MPI.Intracomm | None) -> Store:
        return PosixStore(path, os.open(path, os.O_RDWR), self.options)


class PosixStore(RawStore):
    """A plain file, opened by each rank on its own."""

    collective_close = False

    def __init__(self, path: str, descriptor: int, options: RawOptions) -> None:
        self._descriptor = descriptor
        self._path = path
        self._options = options
        self._end = 0

    def wrap(self, specs: Sequence[ArraySpec], returned: Any) -> Mapping[str, Array]:
        return {
            spec.name: PosixArray(self._descriptor, place_of(spec, self._options), self._reaches)
            for spec in specs
        }

    def _reaches(self, end: int) -> None:
        """Note where a prepared write ends in the file."""
        self._end = max(self._end, end)

    def files(self) -> set[str]:
        nbytes = os.stat(self._path).st_size
        if nbytes < self._end:
            raise OSError(
                f"the file has {nbytes} bytes after closing, and writes reached to {self._end}: "
                "data were lost in writing"
            )
        return super().files()

    def flush(self) -> None:
        """Do nothing: POSIX calls keep nothing back in the process."""

    def close(self) -> None:
        os.close(self._descriptor)


class PosixArray(RawArray):
    """A piece of the file."""

    def __init__(self, descriptor: int, place: ArrayInFile, reaches: Callable[[int], None]) -> None:
        self._descriptor = descriptor
        self._place = place
        self._reaches = reaches

    def writer(self, box: Box, buffer: Buffer, collective: bool) -> Call:
        data, runs = bytes_of(buffer), self._place.runs(box)
        if data.nbytes:
            self._reaches(runs.end)
        if len(runs.offsets) == 1:
            write = pwrite if data.nbytes <= _SHORT else write_all
            return partial(write, self._descriptor, data, int(runs.offsets[0]))
        return partial(write_runs, self._descriptor, data, runs)

    def reader(self, box: Box, out: Buffer, collective: bool) -> Call:
        data, runs = bytes_of(out), self._place.runs(box)
        if len(runs.offsets) == 1:
            if data.nbytes <= _SHORT:
                return partial(preadv, self._descriptor, [data], int(runs.offsets[0]))
            return partial(_read, self._descriptor, data, int(runs.offsets[0]), out)
        return partial(_read_runs, self._descriptor, data, runs, out)


def _read(descriptor: int, data: memoryview, offset: int, out: Buffer) -> Buffer:
    done = preadv(descriptor, [data], offset)
    while done < data.nbytes:
        got = preadv(descriptor, [data[done:]], offset + done)
        if got == 0:
            raise EOFError(f"the file ends {len(data) - done} bytes early")
        done += got
    return out


def _read_runs(descriptor: int, data: memoryview, runs: Runs, out: Buffer) -> Buffer:
    if isinstance(runs, UnequalRuns):
        return _read_unequal_runs(descriptor, data, runs, out)
    length, begin = runs.length, 0
    for offset in runs.offsets.data:
        part = data[begin : begin + length]
        if preadv(descriptor, [part], offset) < length:
            _read(descriptor, part, offset, out)
        begin += length
    return out


def _read_unequal_runs(descriptor: int, data: memoryview, runs: UnequalRuns, out: Buffer) -> Buffer:
    begin = 0
    for offset, length in zip(runs.offsets.data, runs.lengths.data, strict=True):
        part = data[begin : begin + length]
        if preadv(descriptor, [part], offset) < length:
            _read(descriptor, part, offset, out)
        begin += length
    return out
