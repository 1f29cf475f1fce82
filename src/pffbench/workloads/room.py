"""Memory for what is moved, kept from one repetition to the next."""

from __future__ import annotations

import mmap

import numpy as np

from pffbench.backends.base import Buffer


class Room:
    """Hands out memory for all that a rank moves at a time.

    The kernel clears each page that it gives to a process, which takes about as long as writing
    it: with the same memory in each repetition that is done once. There is never more of it than
    was asked for last, so that no repetition's peak memory holds what another one needed.
    """

    def __init__(self) -> None:
        self._memory = _aligned(0)

    def take(self, nbytes: int) -> Buffer:
        """Return memory of so many bytes with anything in it; what was taken before is over."""
        if self._memory.nbytes != nbytes:
            self.leave()  # first, so that there are never both
            self._memory = _aligned(nbytes)
        return self._memory

    def fill(self, value: int) -> None:
        """Overwrite every byte."""
        self._memory.fill(value)

    def leave(self) -> None:
        """Keep nothing: what is taken next takes no room until it is touched."""
        self._memory = _aligned(0)


def _aligned(nbytes: int) -> Buffer:
    """Return memory that begins at a page.

    numpy's own memory begins 16 bytes behind one, where the kernel copies about a tenth slower.
    """
    memory = np.empty(nbytes + mmap.PAGESIZE, dtype=np.uint8)
    begin = -memory.ctypes.data % mmap.PAGESIZE
    return memory[begin : begin + nbytes]
