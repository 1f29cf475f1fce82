"""Chunks, codecs and the other storage of arrays, from the keys that all workloads share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pffbench.backends.array_spec import ArraySpec
from pffbench.case import Parameters
from pffbench.errors import UserError
from pffbench.geometry.box import Shape

#: The level of a codec when an experiment names none: each library's own default, except that
#: gzip has the level 4 that netCDF and HDF5 use, in Zarr too.
DEFAULT_LEVELS = {"gzip": 4, "zstd": 3, "blosc": 5}


def own_chunks(
    parameters: Parameters, shape: Shape, block: Shape | None
) -> Shape | Literal["contiguous", "library"]:
    """Return the chunks of an array.

    Parameters
    ----------
    parameters : Parameters
        The case.
    shape : tuple of int
        Shape of the stored array.
    block : tuple of int, optional
        One chunk with ``chunks: rank_part``, such as a rank's part; None for no chunks.
    """
    asked = parameters.chunks
    if asked == "auto" and parameters.settings == "defaults":
        return "library"
    if asked in ("auto", "rank_part"):
        if block is None:
            return "contiguous"
        return tuple(min(b, n) for b, n in zip(block, shape, strict=True))
    if isinstance(asked, tuple):
        asked = (*(1,) * (len(shape) - len(asked)), *asked)
        return tuple(min(c, n) for c, n in zip(asked, shape, strict=True))
    return "contiguous"


def make_spec(
    parameters: Parameters,
    name: str,
    shape: Shape,
    *,
    number: int,
    offset: int,
    owner: int | None,
    block: Shape | None,
    origin: Shape | None = None,
    logical_shape: Shape | None = None,
    parts: tuple[int | Shape, ...] | None = None,
) -> ArraySpec:
    """Make an array's specification from the parameters that all workloads share.

    Parameters
    ----------
    parameters : Parameters
        The case.
    block : tuple of int, optional
        Of which `own_chunks` makes the chunks.
    name, shape, number, offset, owner, origin, logical_shape, parts
        As in `ArraySpec`; without an origin and a logical shape the array is the logical one.
    """
    codec = parameters.codec
    if codec == "auto":
        codec = "none" if parameters.settings == "matched" else "library"  # type: ignore[assignment]
    shuffle = parameters.shuffle or ("byte" if codec == "blosc" else "none")
    level = DEFAULT_LEVELS.get(codec, 0) if parameters.level is None else parameters.level
    chunks = own_chunks(parameters, shape, block)
    if isinstance(chunks, tuple) and 0 in chunks and 0 not in shape:
        raise UserError(
            f"array {name}: a chunk of shape {list(chunks)} has no elements; workload "
            f"{parameters.workload} must make it from the part of a rank that has one"
        )
    return ArraySpec(
        name=name,
        shape=shape,
        dtype=parameters.dtype or "float32",
        number=number,
        origin=origin or (0,) * len(shape),
        logical_shape=logical_shape or shape,
        offset=offset,
        owner=owner,
        chunks=chunks,
        codec=codec,  # type: ignore[arg-type]
        level=level,
        compressor=parameters.compressor or "lz4",
        shuffle=shuffle,
        fill="none" if parameters.settings == "matched" else "library",
        parts=parts,
    )


def illegal_chunks(
    parameters: Parameters, shape: Shape, what: str = "the array", axes: Sequence[int] = ()
) -> str | None:
    """Return why the chunk shape of a case cannot be that of an array, or None.

    Parameters
    ----------
    parameters : Parameters
        The case.
    shape : tuple of int
        Shape of the array, or of what else a chunk is part of.
    what : str
        That, in words.
    axes : sequence of int
        Numbers of axes that a chunk may have; that of the shape when not given.
    """
    chunks = parameters.chunks
    if not isinstance(chunks, tuple):
        return None
    if len(chunks) not in (allowed := axes or [len(shape)]):
        wanted = " or ".join(map(str, allowed))
        return f"chunks {list(chunks)} must have {wanted} axes, as the array has"
    inner = shape[len(shape) - len(chunks) :]
    if any(c > n for c, n in zip(chunks, inner, strict=True)):
        return f"chunks {list(chunks)} are larger than {what} {list(inner)}; make them smaller"
    return None
