"""Strong 64-bit hashing of small integers: the randomness behind the generated data.

The only primitive is the finaliser of the SplitMix64 generator (Steele, Lea and Flood, "Fast
splittable pseudorandom number generators", OOPSLA 2014), with the multipliers of David Stafford's
variant 13. It is a bijection of 64-bit words in which every output bit depends on every input
bit, so counters may be hashed directly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

MASK = 2**64 - 1
#: 2**64 divided by the golden ratio: the increment that SplitMix64 steps its counter by.
GOLDEN = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB

Words = npt.NDArray[np.unsignedinteger[Any]]


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
