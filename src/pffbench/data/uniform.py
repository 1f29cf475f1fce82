"""The default data: random numbers that no compressor shrinks by more than their type allows."""

from __future__ import annotations

from typing import Any

import numpy as np

from pffbench.data.base import Array
from pffbench.data.hashing import Words
from pffbench.data.keyed import Keyed


class UniformFloats(Keyed):
    """Floating-point numbers uniform in [0, 1), multiples of 2**-23 or 2**-52.

    The high bits of each word become the mantissa of a number in [1, 2), from which 1 is
    subtracted: exact arithmetic, so all machines agree. The low bits of the word are dropped.

    Parameters
    ----------
    dtype : numpy.dtype
        float32 or float64.
    seed : int
        Any integer; its low 64 bits count.
    """

    def __init__(self, dtype: np.dtype[Any], seed: int) -> None:
        super().__init__(dtype, seed, dtype.itemsize)
        mantissa = np.finfo(dtype).nmant
        self._drop = self._word.type(self._bits - mantissa)
        self._one = np.ones((), dtype).view(self._word)[()]
        self._unit = dtype.type(1)

    def _values(self, words: Words, addends: Words, out: Array) -> None:
        np.right_shift(words, self._drop, out=words)
        np.bitwise_xor(words, (addends >> self._drop) | self._one, out=words)
        np.subtract(words.view(self.dtype), self._unit, out=out)


class UniformWords(Keyed):
    """Integers of 4 or 8 bytes, uniform over all bit patterns.

    The high half of each product is folded into the low half, whose own bits repeat too often.

    Parameters
    ----------
    dtype : numpy.dtype
        An integer type of 4 or 8 bytes.
    seed : int
        Any integer; its low 64 bits count.
    """

    def __init__(self, dtype: np.dtype[Any], seed: int) -> None:
        super().__init__(dtype, seed, dtype.itemsize)
        self._half = self._word.type(self._bits // 2)
        self._high: Words = np.empty_like(self._scratch)

    def _values(self, words: Words, addends: Words, out: Array) -> None:
        high = self._high[: words.size].reshape(words.shape)
        np.right_shift(words, self._half, out=high)
        np.bitwise_xor(words, high, out=words)
        np.bitwise_xor(words, addends, out=out.view(self._word))


class UniformNarrow(Keyed):
    """Integers of 1 or 2 bytes, uniform over all bit patterns: the high bits of 4-byte words.

    Parameters
    ----------
    dtype : numpy.dtype
        An integer type of 1 or 2 bytes.
    seed : int
        Any integer; its low 64 bits count.
    """

    def __init__(self, dtype: np.dtype[Any], seed: int) -> None:
        super().__init__(dtype, seed, 4)
        self._drop = np.uint32(32 - 8 * dtype.itemsize)
        self._unsigned = np.dtype(f"u{dtype.itemsize}")

    def _values(self, words: Words, addends: Words, out: Array) -> None:
        np.right_shift(words, self._drop, out=words)
        np.bitwise_xor(words, addends >> self._drop, out=words)
        np.copyto(out.view(self._unsigned), words, casting="unsafe")


def uniform(dtype: np.dtype[Any], seed: int) -> Keyed:
    """Make the uniform source of a type; see the three classes."""
    if dtype.kind == "f":
        return UniformFloats(dtype, seed)
    return UniformWords(dtype, seed) if dtype.itemsize >= 4 else UniformNarrow(dtype, seed)
