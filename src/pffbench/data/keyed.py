"""Random words for any box: a table of columns, and one key per segment.

A word is ``column * multiplier`` modulo the word size, where `column` is an entry of a table of
strong hashes (made once per source) and `multiplier` is odd and comes, like the `addend` that is
combined with the product by exclusive or, from a strong hash of the seed, the array number and
the number of the segment (see `pffbench.data.tiling`). One multiplication per element replaces a
whole hash function. The high bits of the product are good, the low ones repeat in many segments;
each kind of data states how it keeps the low bits out of its values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from pffbench.data import hashing
from pffbench.data.base import Array, check_out
from pffbench.data.hashing import Words
from pffbench.data.tiling import Tiling, batches

#: Bytes of the column table, and of each scratch buffer: two or three fit a second-level cache.
_BLOCK_BYTES = 256 * 1024
#: Segments whose keys are made in one go.
_KEYS = 4096


class Keyed(ABC):
    """A source whose values come from random words; a subclass turns words into values.

    Parameters
    ----------
    dtype : numpy.dtype
        Type of the values.
    seed : int
        Any integer; its low 64 bits count.
    word : {4, 8}
        Bytes of a random word; one word is spent on each element.
    """

    def __init__(self, dtype: np.dtype[Any], seed: int, word: int) -> None:
        self.dtype = dtype
        self._seed = seed
        self._word: np.dtype[Any] = np.dtype(f"u{word}")
        self._bits = 8 * word
        self._width = _BLOCK_BYTES // word
        hashes = hashing.counters(hashing.stream(seed), self._width)
        self._table: Words = (hashes >> np.uint64(64 - self._bits)).astype(self._word)
        self._scratch: Words = np.empty(self._width, dtype=self._word)
        self._values_memory: bytearray | None = None

    def fill(self, out: Array, array: int, start: tuple[int, ...], shape: tuple[int, ...]) -> None:
        """Fill a box of a logical array; see `pffbench.data.base.Source`."""
        check_out(out, self.dtype)
        for part, words, addends in self._walk(out, array, start, shape):
            self._values(words, addends, part)

    def matches(
        self, got: Array, array: int, start: tuple[int, ...], shape: tuple[int, ...]
    ) -> bool:
        """Tell whether a box holds exactly the bytes that `fill` would put there.

        The same as filling and comparing, but each block is compared while it is still in the
        cache. The parameters are those of `fill`, which also says when ValueError is raised.
        """
        check_out(got, self.dtype)
        if self._values_memory is None:
            # A bytearray, because its startswith is memcmp: twice as quick as comparing in numpy.
            self._values_memory = bytearray(self._width * self.dtype.itemsize)
        memory = self._values_memory
        expected = np.frombuffer(memory, dtype=self.dtype)
        unsigned = np.dtype(f"u{self.dtype.itemsize}")
        for part, words, addends in self._walk(got, array, start, shape):
            right = expected[: part.size].reshape(part.shape)
            self._values(words, addends, right)
            if part.flags.c_contiguous:
                if not memory.startswith(part.data):
                    return False
            elif (right.view(unsigned) != part.view(unsigned)).any():
                return False
        return True

    def _walk(
        self, box: Array, array: int, start: tuple[int, ...], shape: tuple[int, ...]
    ) -> Iterator[tuple[Array, Words, Words]]:
        """Cut a box into parts and multiply columns for each, as much as the scratch holds.

        Yields
        ------
        part : ndarray, shape (leading, groups, columns)
            A view of the box.
        words : ndarray, shape (leading, groups, columns)
            Products of columns and multipliers, in scratch memory.
        addends : ndarray, shape (leading, groups, 1)
            One word for each row.
        """
        tiling = Tiling.of(start, box.shape, shape, self._width)
        if box.size == 0:
            return
        state = hashing.stream(self._seed, array)
        for piece in tiling.pieces():
            rows = tiling.view(box, piece)
            columns = tiling.columns(self._table, piece)
            at_once = max(1, self._width // columns.size)
            for begin, end, first, last in batches(tiling.leading, piece.groups, _KEYS):
                segments = tiling.segments(begin, end, piece.first + first, piece.first + last)
                multipliers, addends = self._keys(segments, state)
                target = rows[begin:end, first:last]
                for row, stop, group, over in batches(end - begin, last - first, at_once):
                    part = target[row:stop, group:over]
                    words = self._scratch[: part.size].reshape(part.shape)
                    np.multiply(columns, multipliers[row:stop, group:over], out=words)
                    yield part, words, addends[row:stop, group:over]

    def _keys(self, segments: npt.NDArray[np.uint64], state: int) -> tuple[Words, Words]:
        """Multiplier (odd) and addend of each segment, shape (leading, groups, 1)."""
        segments *= np.uint64(hashing.GOLDEN)
        segments += np.uint64(state)
        keys = hashing.mix_array(segments)[..., np.newaxis]
        if self._bits == 64:
            addends = hashing.mix_array(keys + np.uint64(hashing.GOLDEN))
            return keys | np.uint64(1), addends
        halves = (keys >> np.uint64(32)).astype(self._word)
        return halves | np.uint32(1), keys.astype(self._word)

    @abstractmethod
    def _values(self, words: Words, addends: Words, out: Array) -> None:
        """Turn words into values.

        Parameters
        ----------
        words : ndarray, shape (leading, groups, columns)
            Products of columns and multipliers, C-contiguous; may be overwritten.
        addends : ndarray, shape (leading, groups, 1)
            One word for each row, to be combined by exclusive or.
        out : ndarray, shape (leading, groups, columns)
            Receives the values; not always contiguous.
        """
