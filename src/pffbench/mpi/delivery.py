"""Delivery of data that some ranks have read into the memory of the others."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pffbench.mpi.single import mpi_of
from pffbench.units import Size

if TYPE_CHECKING:
    from mpi4py import MPI

    Memory = np.ndarray[Any, np.dtype[np.uint8]]

#: Most bytes of one broadcast: counts are C ints.
_LIMIT = 2**31 - 1
#: Where MPI libraries make windows, and bytes that must be left there: a page that has no memory
#: any more kills the rank that touches it, or MPI leaves the others waiting.
SHARED_MEMORY = "/dev/shm"
_SPARE = 2**20


class Delivery:
    """Nothing is delivered: every rank reads for itself. The base of the other ways."""

    #: Whether this rank reads.
    reads: bool = True
    #: Whether it delivers to others; equal on all ranks of the job.
    delivers: bool = False
    #: Whether data are read into memory of this delivery, see `share`.
    shares: bool = False

    def require(self, nbytes: int) -> None:
        """Check that there is memory for so many bytes to `share`; collective, off the timer.

        Raises
        ------
        OSError
            There is not enough, on all ranks that would share it.
        """

    def share(self, nbytes: int, text: int) -> Memory:
        """Make memory for the data that all see, and for a text of so many bytes behind it."""
        raise NotImplementedError

    def deliver(self, text: bytes, data: Memory) -> bytes:  # noqa: ARG002 -- other ways need it
        """Deliver text and data, which this rank has if it reads; return the text.

        Other ranks have the data in the same memory afterwards.
        """
        return text

    def end(self) -> None:
        """Release the memory; collective over the ranks of the delivery."""


class Broadcast(Delivery):
    """The first rank of a communicator reads and broadcasts, as plain bytes."""

    delivers = True

    def __init__(self, comm: MPI.Comm) -> None:
        self._comm = comm
        self.reads = comm.rank == 0

    def deliver(self, text: bytes, data: Memory) -> bytes:
        """Broadcast the length of the text, the text and the data."""
        length = np.array([len(text)], dtype=np.int64)
        self._send(length.view(np.uint8))
        told = np.frombuffer(text, np.uint8) if self.reads else np.empty(length[0], np.uint8)
        self._send(told)
        self._send(data)
        return told.tobytes()

    def _send(self, data: Memory) -> None:
        if self._comm.size == 1:
            return
        for begin in range(0, data.size, _LIMIT):
            self._comm.Bcast([data[begin : begin + _LIMIT], mpi_of(self._comm).BYTE], root=0)


class SharedMemory(Delivery):
    """The first rank of a node reads into memory that the others of the node map.

    The data have one place in the memory of a node, however many ranks it has. A rank alone on its
    node needs no window, nor does a process without MPI.
    """

    delivers = shares = True

    def __init__(self, node: MPI.Comm) -> None:
        self._node = node
        self.reads = node.rank == 0
        self._window: MPI.Win | None = None
        self._text: Memory = np.empty(0, np.uint8)

    def require(self, nbytes: int) -> None:
        """Compare the bytes of the window, which the reader gives, with those that are left."""
        first, place = self._node.rank == 0, SHARED_MEMORY
        there = os.statvfs(place) if first and Path(place).is_dir() else None
        free = None if there is None else there.f_bavail * there.f_frsize
        nbytes, free = self._node.bcast((nbytes, free))
        if self._node.size > 1 and free is not None and nbytes + _SPARE > free:
            raise OSError(
                errno.ENOSPC,
                f"{place} has {Size(free)} left for a window of {Size(nbytes)}; make it larger "
                "(mount -o remount,size=…, docker run --shm-size), or use another strategy",
            )

    def share(self, nbytes: int, text: int) -> Memory:
        """Make the window, which has the length that the reader gives."""
        self.end()
        memory = self._map(nbytes + text)
        self._text = memory[nbytes:]
        return memory[:nbytes]

    def _map(self, nbytes: int) -> Memory:
        if self._node.size == 1:
            return np.empty(nbytes, np.uint8)
        mpi = mpi_of(self._node)
        mine = nbytes if self.reads else 0
        self._window = mpi.Win.Allocate_shared(mine, 1, mpi.INFO_NULL, self._node)
        memory: Any = self._window.Shared_query(0)[0]
        self._window.Fence()
        return np.frombuffer(memory, np.uint8)

    def deliver(self, text: bytes, data: Memory) -> bytes:  # noqa: ARG002 -- data are shared
        """Wait until all ranks of the node see what the first one wrote; cut a longer text."""
        if self.reads:
            told = np.frombuffer(text, np.uint8)[: self._text.size]
            self._text[: told.size] = told
        if self._window is not None:
            self._window.Fence()
        return self._text.tobytes()

    def end(self) -> None:
        """Free the window."""
        if self._window is not None:
            self._window.Free()
            self._window = None
