"""Small random integers: data that compress moderately, like counts or quantised readings."""

from __future__ import annotations

from typing import Any

import numpy as np

from pffbench.data.base import Array
from pffbench.data.hashing import Words
from pffbench.data.keyed import Keyed


class Integers(Keyed):
    """Whole numbers uniform in 0 .. 999, or 0 .. 99 in types of one byte, in any dtype.

    The value is the high half of (16 random bits) x range, so some numbers come up to 1.5 % more
    often than others.

    Parameters
    ----------
    dtype : numpy.dtype
        Any supported type.
    seed : int
        Any integer; its low 64 bits count.
    """

    def __init__(self, dtype: np.dtype[Any], seed: int) -> None:
        super().__init__(dtype, seed, 4)
        self._range = np.uint32(100 if dtype.itemsize == 1 else 1000)
        self._half = np.uint32(16)

    def _values(self, words: Words, addends: Words, out: Array) -> None:
        np.right_shift(words, self._half, out=words)
        np.bitwise_xor(words, addends >> self._half, out=words)
        np.multiply(words, self._range, out=words)
        np.right_shift(words, self._half, out=words)
        # The numbers are small, and converting signed words to floats is quicker.
        np.copyto(out, words.view(np.int32), casting="unsafe")
