"""Generators of data: uniform numbers, small integers, a constant."""

from __future__ import annotations

import numpy as np

from pffbench.data import random
from pffbench.data.base import (
    Array,
    ElementType,
    Index,
    SeededSource,
    check_box,
    check_out,
)
from pffbench.data.random import Keyed, Words


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

    def __init__(self, dtype: ElementType, seed: int) -> None:
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

    def __init__(self, dtype: ElementType, seed: int) -> None:
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

    def __init__(self, dtype: ElementType, seed: int) -> None:
        super().__init__(dtype, seed, 4)
        self._drop = np.uint32(32 - 8 * dtype.itemsize)
        self._unsigned = np.dtype(f"u{dtype.itemsize}")

    def _values(self, words: Words, addends: Words, out: Array) -> None:
        np.right_shift(words, self._drop, out=words)
        np.bitwise_xor(words, addends >> self._drop, out=words)
        np.copyto(out.view(self._unsigned), words, casting="unsafe")


def uniform(dtype: ElementType, seed: int) -> Keyed:
    """Make the uniform source of a type; see the three classes."""
    if dtype.kind == "f":
        return UniformFloats(dtype, seed)
    return UniformWords(dtype, seed) if dtype.itemsize >= 4 else UniformNarrow(dtype, seed)


class Integers(Keyed):
    """Whole numbers uniform in 0 .. 999, or 0 .. 99 in types of one byte, in any dtype.

    The value is the high half of (16 random bits) x range, so some numbers come up to 1.5 % more
    often than others.
    """

    def __init__(self, dtype: ElementType, seed: int) -> None:
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


class Constant(SeededSource):
    """The same whole number in every element of an array.

    It lies in 1 .. 120 in types of one byte and in 1 .. 30000 in the others, so it is never 0,
    NaN, or a default fill value of HDF5, netCDF or Zarr, and unwritten data cannot pass for it.
    Consecutive arrays differ, and so, by the hash, do nearly all seeds.
    """

    def __init__(self, dtype: ElementType, seed: int) -> None:
        super().__init__(dtype, seed)
        self._range = 120 if dtype.itemsize == 1 else 30000
        self._offset = random.stream(seed) % self._range

    def fill(self, out: Array, array: int, start: Index, shape: Index) -> None:
        """Fill a box of a logical array; see `pffbench.data.base.Source`."""
        check_out(out, self.dtype)
        check_box(start, out.shape, shape)
        out.fill(1 + (self._offset + array) % self._range)
