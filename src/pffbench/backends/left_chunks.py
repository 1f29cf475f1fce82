"""Chunks that an HDF5 filter leaves as they are, found before anything is written.

szip, LZF and Blosc give up on a chunk that does not become smaller. In a file that ranks share, the
write then fails on one rank while the others wait for it, or the file cannot be read. So the chunks
are encoded in memory first, each by one rank.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
from msgspec.structs import replace

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.hdf5_files import CODEC_LIBRARIES, GIVE_UP, filter_arguments
from pffbench.data import Source, file_source
from pffbench.geometry.box import Shape
from pffbench.job.launcher import mpi_unstarted

#: Most bytes of an array of a user's file that is encoded when a run is planned.
_PLANNED = 2**24


def chunk_left(spec: ArraySpec, source: Source, part: int = 0, parts: int = 1) -> Shape | None:
    """Return the place of a chunk that a filter leaves as it is; None where there is none.

    Parameters
    ----------
    spec : ArraySpec
        The array.
    source : Source
        Its data.
    part, parts : int
        Which of the chunks are looked at: every `parts`-th from number `part` on.
    """
    if spec.codec not in GIVE_UP or not isinstance(spec.chunks, tuple) or 0 in spec.shape:
        return None
    if library := CODEC_LIBRARIES.get(spec.codec):
        import_module(library)
    with mpi_unstarted():
        import h5py
    with h5py.File("left-chunks", "w", driver="core", backing_store=False) as file:
        try:
            encoded = file.create_dataset(
                "chunk", spec.chunks, spec.stored_dtype, chunks=spec.chunks,
                **filter_arguments(spec),
            )  # fmt: skip
        except (OSError, ValueError):  # which the definition of the array reports
            return None
        for start in itertools.islice(_starts(spec.shape, spec.chunks), part, None, parts):
            if _is_left(encoded, _data(spec, source, start)):
                return start
    return None


def _starts(shape: Shape, chunks: Shape) -> Iterator[Shape]:
    return itertools.product(*(range(0, n, c) for n, c in zip(shape, chunks, strict=True)))


def _data(spec: ArraySpec, source: Source, start: Shape) -> np.ndarray[Any, Any]:
    """Return the data of a chunk, with zeros beyond the edge of the array."""
    assert isinstance(spec.chunks, tuple)
    inside = [min(c, n - s) for c, n, s in zip(spec.chunks, spec.shape, start, strict=True)]
    found = np.empty(inside, spec.dtype)
    begin = tuple(o + s for o, s in zip(spec.origin, start, strict=True))
    source.fill(found, spec.number, begin, spec.logical_shape)
    return np.pad(found, [(0, c - n) for c, n in zip(spec.chunks, inside, strict=True)])


def _is_left(encoded: Any, data: np.ndarray[Any, Any]) -> bool:
    encoded[...] = data
    encoded.flush()
    return bool(encoded.id.get_chunk_info(0).filter_mask)


def chunk_left_of_file(spec: ArraySpec, file: str | None, variable: str | None) -> Shape | None:
    """Return the same for data of a user's file that are few enough to plan with."""
    spec = _with_all_parts(spec)
    if file is None or spec.nbytes > _PLANNED:
        return None
    return _chunk_left_of_file(spec, file, variable)


def _with_all_parts(spec: ArraySpec) -> ArraySpec:
    """Return a rank's part with those of the others, if their chunks are those of the whole array.

    Only one part of each shape is planned with, and it has other data than the others.
    """
    if spec.owner is None or not isinstance(spec.chunks, tuple):
        return spec
    axes = zip(spec.shape, spec.logical_shape, spec.chunks, strict=True)
    if not all(part in (whole, part // c * c) for part, whole, c in axes):
        return spec
    nowhere = (0,) * len(spec.shape)
    return replace(spec, shape=spec.logical_shape, origin=nowhere, owner=None)


@lru_cache(maxsize=1024)
def _chunk_left_of_file(spec: ArraySpec, file: str, variable: str | None) -> Shape | None:
    source = file_source(file, variable, spec.dtype)
    try:
        if len(source.shape) != len(spec.logical_shape):  # in the order of a map: the run looks
            return None
        return chunk_left(spec, source)
    except ImportError:  # which the run reports
        return None
    finally:
        source.close()


def chunk_text(spec: ArraySpec, start: Shape) -> str:
    """Return in words what a filter leaves as it is."""
    assert isinstance(spec.chunks, tuple)
    size = math.prod(spec.chunks) * spec.itemsize
    return f"codec {spec.codec} cannot make the chunk of {size} bytes at {list(start)} smaller"
