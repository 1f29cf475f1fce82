"""The largest chunks that formats and codecs accept."""

from __future__ import annotations

import math

from pffbench.backends.array_spec import ArraySpec
from pffbench.geometry.box import Shape
from pffbench.units import Size

#: Bytes of the largest chunk that a codec compresses, whatever library calls it:
#: BLOSC_MAX_BUFFERSIZE of C-Blosc, and INT32_MAX in HDF5's filter for LZ4.
_MOST_BYTES = {"blosc": 2**31 - 1 - 16, "lz4": 2**31 - 1}


def refuse_codec(spec: ArraySpec) -> str | None:
    """Return that a chunk is too large for its codec, with a legal shape, or None."""
    most = _MOST_BYTES.get(spec.codec)
    return None if most is None else refuse_size(spec, most, f"a chunk of codec {spec.codec}")


def refuse_size(spec: ArraySpec, most: int, what: str) -> str | None:
    """Return that a chunk is too large, with a legal shape, or None.

    Parameters
    ----------
    spec : ArraySpec
        The array.
    most : int
        Bytes of the largest chunk, a little less than whole GiB.
    what : str
        The chunk, for the message.
    """
    if not isinstance(spec.chunks, tuple):
        return None
    nbytes = math.prod(spec.chunks) * spec.itemsize
    if nbytes <= most:
        return None
    legal = list(_smaller(spec.chunks, most // spec.itemsize))
    return (
        f"{what} must be smaller than {-(-most // 2**30)} GiB, {list(spec.chunks)} is "
        f"{Size(nbytes)}; a legal chunk shape is {legal}"
    )


def _smaller(chunks: Shape, most: int) -> Shape:
    """Halve the longest axis of a chunk until it has few enough elements."""
    while math.prod(chunks) > most:
        longest = chunks.index(max(chunks))
        chunks = tuple(-(-n // 2) if i == longest else n for i, n in enumerate(chunks))
    return chunks
