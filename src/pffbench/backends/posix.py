"""Raw bytes through POSIX calls, one file per process: what the file system gives at best."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from pffbench.backends.base import Array, ArraySpec, Backend, Buffer, Call, Capabilities, Store
from pffbench.parallel.decomposition import Box

if TYPE_CHECKING:
    from mpi4py import MPI


class Posix(Backend):
    """Arrays one behind the other in a plain file."""

    name = "posix"
    summary = "raw bytes, POSIX pwrite/pread, a file per process (roofline)"
    suffix = ".raw"
    capabilities = Capabilities(
        layouts=frozenset({"file_per_process"}),
        transfers=frozenset({"independent"}),
        formatted=False,
    )

    def create(self, path: str, comm: MPI.Intracomm | None) -> Store:
        return PosixStore(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)

    def open(self, path: str, comm: MPI.Intracomm | None) -> Store:
        return PosixStore(path, os.O_RDONLY)


class PosixStore(Store):
    """A plain file; it describes nothing, so arrays lie in the order of their definition."""

    def __init__(self, path: str, flags: int) -> None:
        self._descriptor = os.open(path, flags, 0o600)
        self._path = path

    def define(self, specs: Sequence[ArraySpec]) -> Mapping[str, Array]:
        return self.arrays(specs)

    def arrays(self, specs: Iterable[ArraySpec]) -> Mapping[str, Array]:
        return {spec.name: PosixArray(self._descriptor, spec) for spec in specs}

    def files(self) -> set[str]:
        return {self._path}

    def flush(self) -> None:
        """Do nothing: POSIX calls keep nothing back in the process."""

    def close(self) -> None:
        os.close(self._descriptor)


class PosixArray(Array):
    """A stretch of the file."""

    def __init__(self, descriptor: int, spec: ArraySpec) -> None:
        self._descriptor = descriptor
        self._spec = spec

    def writer(self, box: Box, buffer: Buffer, collective: bool) -> Call:
        return partial(_write, self._descriptor, _bytes(buffer), self._place(box))

    def reader(self, box: Box, out: Buffer, collective: bool) -> Call:
        return partial(_read, self._descriptor, _bytes(out), self._place(box), out)

    def _place(self, box: Box) -> int:
        assert self._spec.is_contiguous(box), "a file per process is moved in contiguous pieces"
        return self._spec.offset + self._spec.byte_offset(box)


def _bytes(buffer: Buffer) -> memoryview:
    return buffer.reshape(-1).view("u1").data


def _write(descriptor: int, data: memoryview, offset: int) -> None:
    """Write all bytes; the kernel may take fewer than given, 2 GiB - 4 KiB at most."""
    done = os.pwrite(descriptor, data, offset)
    while done < len(data):
        done += os.pwrite(descriptor, data[done:], offset + done)


def _read(descriptor: int, data: memoryview, offset: int, out: Buffer) -> Buffer:
    done = os.preadv(descriptor, [data], offset)
    while done < len(data):
        got = os.preadv(descriptor, [data[done:]], offset + done)
        if got == 0:
            raise EOFError(f"the file ends {len(data) - done} bytes early")
        done += got
    return out
