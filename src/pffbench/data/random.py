"""Reproducible random words for any box of an array, computed from hashes.

The only primitive is the finaliser of the SplitMix64 generator (Steele, Lea and Flood, "Fast
splittable pseudorandom number generators", OOPSLA 2014), with the multipliers of David Stafford's
variant 13. It is a bijection of 64-bit words in which every output bit depends on every input
bit, so counters may be hashed directly.

The trailing axes of an array are folded into *segments* of at most `width` elements: axis `split`
is cut into groups of `group` indices, and the columns of a segment are those indices times all
later axes. The remaining axes, those before `split`, and the number of the group number the
segments. Segments and columns depend on the global shape alone, and every box is at most three
pieces whose rows all have the same columns.

A word is ``column * multiplier`` modulo the word size, where `column` is an entry of a table of
strong hashes (made once per source) and `multiplier` is odd and comes, like the `addend` that is
combined with the product by exclusive or, from a strong hash of the seed, the array number and the
number of the segment. One multiplication per element replaces a whole hash function. The high bits
of the product are good, the low ones repeat in many segments; each kind of data states how it keeps
the low bits out of its values.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from pffbench.data.base import Array, ElementType, Index, SeededSource, check_box, check_out

if TYPE_CHECKING:
    import numpy.typing as npt

MASK = 2**64 - 1
#: 2**64 divided by the golden ratio: the increment that SplitMix64 steps its counter by.
GOLDEN = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB

Words = np.ndarray[Any, np.dtype[np.unsignedinteger[Any]]]


def mix(word: int) -> int:
    """Hash one integer; only its low 64 bits count.

    Returns
    -------
    int
        The hash, 0 <= hash < 2**64.
    """
    word &= MASK
    word = ((word ^ (word >> 30)) * _FIRST) & MASK
    word = ((word ^ (word >> 27)) * _SECOND) & MASK
    return word ^ (word >> 31)


def mix_array(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Hash every element, in place.

    Parameters
    ----------
    words : ndarray of uint64
        Any shape; overwritten with the hashes.

    Returns
    -------
    ndarray of uint64
        `words` itself.
    """
    shifted = words >> np.uint64(30)
    words ^= shifted
    words *= np.uint64(_FIRST)
    np.right_shift(words, np.uint64(27), out=shifted)
    words ^= shifted
    words *= np.uint64(_SECOND)
    np.right_shift(words, np.uint64(31), out=shifted)
    words ^= shifted
    return words


def stream(*numbers: int) -> int:
    """Hash a sequence of integers to one 64-bit word; the order counts."""
    state = 0
    for number in numbers:
        state = mix(state + GOLDEN + mix(number))
    return state


def counters(state: int, count: int) -> npt.NDArray[np.uint64]:
    """Hash the counters 0 .. `count` - 1 in the stream `state`.

    Returns
    -------
    ndarray of uint64, shape (count,)
    """
    words = np.arange(count, dtype=np.uint64)
    words *= np.uint64(GOLDEN)
    words += np.uint64(state)
    return mix_array(words)


class Piece(msgspec.Struct, frozen=True):
    """A part of a box: `leading` x `groups` rows of equal columns."""

    #: Numbers of the groups: ``first .. first + groups - 1``.
    first: int
    groups: int
    #: First and one past the last index within each group.
    inside: tuple[int, int]
    #: The same piece as indices along the split axis of the box.
    local: tuple[int, int]


class Tiling(msgspec.Struct, frozen=True):
    """Decomposition of a box of an array into rows."""

    #: First global index and extents of the box; the global shape. All of length 1 or more.
    start: Index
    extent: Index
    shape: Index
    #: The axis that is cut into groups, and how many of its indices make a group.
    split: int
    group: int

    @classmethod
    def of(cls, start: Index, extent: Index, shape: Index, width: int) -> Tiling:
        """Fold for segments of at most `width` elements.

        Raises
        ------
        ValueError
            The box does not lie inside the shape, or there is no axis.
        """
        check_box(start, extent, shape)
        split = len(shape) - 1
        inner = 1
        while split and inner * shape[split] <= width:
            inner *= shape[split]
            split -= 1
        return cls(start, extent, shape, split, max(1, width // max(1, inner)))

    @property
    def leading(self) -> int:
        """Number of box indices over all axes before the split axis."""
        return math.prod(self.extent[: self.split])

    def pieces(self) -> Iterator[Piece]:
        """Yield the cut head, the whole groups in the middle, and the cut tail."""
        group = self.group
        begin = self.start[self.split]
        end = begin + self.extent[self.split]
        at = begin
        if at % group or end - at < group:
            stop = min(end, (at // group + 1) * group)
            inside = (at % group, at % group + stop - at)
            yield Piece(at // group, 1, inside, (0, stop - begin))
            at = stop
        whole = (end - at) // group
        if whole:
            stop = at + whole * group
            yield Piece(at // group, whole, (0, group), (at - begin, stop - begin))
            at = stop
        if at < end:
            yield Piece(at // group, 1, (0, end - at), (at - begin, end - begin))

    def view(self, out: Array, piece: Piece) -> Array:
        """View a piece of a C-contiguous box as (leading, groups, columns)."""
        inner = math.prod(self.extent[self.split + 1 :])
        begin, end = piece.local
        rows = out.reshape(self.leading, -1)[:, begin * inner : end * inner]
        return rows.reshape(self.leading, piece.groups, -1)

    def columns(self, table: Array, piece: Piece) -> Array:
        """Pick the table entries of a piece's columns, shape (columns,), contiguous."""
        tail = self.shape[self.split + 1 :]
        folded = table[: self.group * math.prod(tail)].reshape(self.group, *tail)
        box = [slice(*piece.inside)]
        box += [
            slice(first, first + count)
            for first, count in zip(
                self.start[self.split + 1 :], self.extent[self.split + 1 :], strict=True
            )
        ]
        return folded[tuple(box)].reshape(-1)

    def segments(self, begin: int, end: int, first: int, last: int) -> npt.NDArray[np.uint64]:
        """Give segments their global numbers.

        Parameters
        ----------
        begin, end : int
            Range of the leading box indices, in C order over the axes before the split axis.
        first, last : int
            Range of the groups.

        Returns
        -------
        ndarray of uint64, shape (end - begin, last - first)
        """
        stride = -(-self.shape[self.split] // self.group)
        numbers = np.zeros(end - begin, dtype=np.uint64)
        rest = np.arange(begin, end, dtype=np.uint64)
        for axis in reversed(range(self.split)):
            if axis:
                rest, index = np.divmod(rest, np.uint64(self.extent[axis]))
            else:
                index = rest
            numbers += (index + np.uint64(self.start[axis])) * np.uint64(stride)
            stride *= self.shape[axis]
        groups = np.arange(first, last, dtype=np.uint64)
        return np.add.outer(numbers, groups)


def batches(leading: int, groups: int, limit: int) -> Iterator[tuple[int, int, int, int]]:
    """Cut a `leading` x `groups` grid into blocks of at most `limit` (at least 1) cells.

    Yields
    ------
    tuple of int
        Begin and end of the first index, begin and end of the second.
    """
    if groups >= limit:
        for row in range(leading):
            for begin in range(0, groups, limit):
                yield row, row + 1, begin, min(begin + limit, groups)
    elif groups:
        step = limit // groups
        for begin in range(0, leading, step):
            yield begin, min(begin + step, leading), 0, groups


#: Bytes of the column table, and of each scratch buffer: two or three fit a second-level cache.
_BLOCK_BYTES = 256 * 1024
#: Segments whose keys are made at a time.
_KEYS = 4096


class Keyed(SeededSource, ABC):
    """A source whose values come from random words; a subclass turns words into values.

    Parameters
    ----------
    dtype, seed
        As of `SeededSource`.
    word : {4, 8}
        Bytes of a random word; one word is spent on each element.
    """

    def __init__(self, dtype: ElementType, seed: int, word: int) -> None:
        super().__init__(dtype, seed)
        self._word: ElementType = np.dtype(f"u{word}")
        self._bits = 8 * word
        self._width = _BLOCK_BYTES // word
        hashes = counters(stream(seed), self._width)
        self._table: Words = (hashes >> np.uint64(64 - self._bits)).astype(self._word)
        self._scratch: Words = np.empty(self._width, dtype=self._word)
        self._values_memory: bytearray | None = None

    def fill(self, out: Array, array: int, start: Index, shape: Index) -> None:
        """Fill a box of a logical array; see `pffbench.data.base.Source`."""
        check_out(out, self.dtype)
        for part, words, addends in self._walk(out, array, start, shape):
            self._values(words, addends, part)

    def matches(self, got: Array, array: int, start: Index, shape: Index) -> bool:
        """Return whether a box holds exactly the bytes that `fill` would put there.

        Equivalent to filling and comparing, but each block is compared while it is still in the
        cache. Parameters and errors are those of `fill`.
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
        self, box: Array, array: int, start: Index, shape: Index
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
        state = stream(self._seed, array)
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
        segments *= np.uint64(GOLDEN)
        segments += np.uint64(state)
        keys = mix_array(segments)[..., np.newaxis]
        if self._bits == 64:
            addends = mix_array(keys + np.uint64(GOLDEN))
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
