"""An array in an open store: prepares the transfer of a box, which is then timed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pffbench.backends.stored import Touched
from pffbench.parallel.decomposition import Box

if TYPE_CHECKING:
    from pffbench.backends.chunkcache import Chunking

Buffer = np.ndarray[Any, Any]
#: What is timed: moves the data. What may be returned is told at `Array.writer` and `Array.reader`.
Call = Callable[[], Any]


class Array(ABC):
    """An array in an open store."""

    @abstractmethod
    def writer(self, box: Box, buffer: Buffer, collective: bool) -> Call:
        """Prepare to write a box from a C-contiguous buffer and return the call that does it.

        With ``collective`` every rank of the store calls, those with an empty box too.

        The call may be the library's own, with nothing around it. It returns the number of bytes
        that it moved, as an int, where the library may move fewer and not call it an error; else
        anything but an int.
        """

    @abstractmethod
    def reader(self, box: Box, out: Buffer, collective: bool) -> Call:
        """Prepare to read a box and return the call that does it.

        The call returns the array that holds the data where that is not ``out``, since the
        library makes a new one; else what a call of `writer` may return. See `what_was_read`.
        """

    def missing(self, call: Call, returned: Any, nbytes: int) -> int:
        """Tell how many bytes a call did not move that the library raised no error for.

        Asked once of each call after a phase, so that no time is taken to look within it.

        Parameters
        ----------
        call : callable
            What `writer` or `reader` returned.
        returned : Any
            What the call returned.
        nbytes : int
            Bytes that it was to move.
        """
        return nbytes - returned if isinstance(returned, int) else 0

    def why_short(self, box: Box, buffer: Buffer) -> str:
        """Say what keeps a box from being written whole, after a call that wrote a part of it.

        Off the timer, by one rank alone; it may write. Empty where that is not known.
        """
        return ""

    def extender(self, length: int) -> Call:
        """Prepare to make the first axis so long; return the call that does it.

        By default nothing: the array grows when something is written beyond its end.
        """
        return _stay

    def touched(self, box: Box) -> Touched | None:
        """Tell what of the file a box lies in, off the timer; None where that is not known."""
        return None

    def chunking(self, collective: bool) -> Chunking | None:
        """Tell how the array is chunked and what keeps chunks between calls, after reading it.

        Off the timer. None of an array without chunks, and where it is not known.
        """
        return None


def what_was_read(returned: Any, out: Buffer) -> Buffer:
    """Return the array that holds what was read, of what a call of `Array.reader` returned."""
    return returned if isinstance(returned, np.ndarray) else out


def _stay() -> None:
    """Leave an array as long as it is."""
