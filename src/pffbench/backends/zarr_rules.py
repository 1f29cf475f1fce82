"""Which chunks and shards a Zarr store can have, whatever library writes it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from pffbench.backends.base import ArraySpec, Cuts
from pffbench.parallel.decomposition import Shape, nearest_aligned


def refuse_chunks(
    zarr_format: int, shards: Shape | None, specs: Sequence[ArraySpec], cuts: Cuts
) -> str | None:
    """Say which rule the chunks of a case break, or None.

    Parameters
    ----------
    zarr_format : {2, 3}
        Version of the format.
    shards : tuple of int or None
        Shape of a shard.
    specs, cuts
        As of `Backend.refuse`.
    """
    if shards is not None and zarr_format == 2:
        return "Zarr format 2 has no shards (format: 3)"
    for spec in specs:
        if spec.chunks == "contiguous":
            return "a Zarr array is always chunked; name a chunk shape, block or auto"
        if reason := _refuse_shards(shards, spec):
            return reason
        shared = spec.owner is None and any(cuts)
        if shared and (reason := _refuse_sharing(shards, spec, cuts)):
            return reason
    return None


def refuse_pipeline(pipeline: str, write_empty_chunks: bool | None) -> str | None:
    """Say that a codec pipeline is missing or cannot do what is asked, or None."""
    if pipeline == "library":
        return None
    if write_empty_chunks:
        return f"zarr.pipeline: {pipeline} does not write empty chunks, even when asked"
    if find_spec(pipeline) is not None:
        return None
    return (
        f"zarr.pipeline: {pipeline} needs the Python package {pipeline}, which is not installed "
        f"(pip install 'pffbench[{pipeline}]')"
    )


def _refuse_shards(shards: Shape | None, spec: ArraySpec) -> str | None:
    if shards is None:
        return None
    if not isinstance(spec.chunks, tuple):
        return "shards need a chunk shape (chunks: a list, or block)"
    if len(shards) != len(spec.chunks):
        return (
            f"shards {list(shards)} and chunks {list(spec.chunks)} differ in their number of axes"
        )
    if any(s % c for s, c in zip(shards, spec.chunks, strict=True)):
        return f"shards {list(shards)} are not multiples of the chunks {list(spec.chunks)}"
    return None


def _refuse_sharing(shards: Shape | None, spec: ArraySpec, cuts: Cuts) -> str | None:
    """Refuse chunks that two ranks would write to: each would undo the other's write unnoticed."""
    unit, what = (shards, "shard") if shards else (spec.chunks, "chunk")
    if unit == "library":
        legal = [nearest_aligned(n, n, list(c)) for n, c in zip(spec.shape, cuts, strict=True)]
        return (
            "Zarr's automatic chunks would be shared by ranks, which loses data; name chunks, "
            f"such as {legal}"
        )
    assert isinstance(unit, tuple)
    if all(cut % length == 0 for length, axis in zip(unit, cuts, strict=True) for cut in axis):
        return None
    legal = [
        nearest_aligned(length, n, list(axis))
        for length, n, axis in zip(unit, spec.shape, cuts, strict=True)
    ]
    return (
        f"Zarr {what}s of {list(unit)} would be shared by ranks, which loses data; "
        f"the nearest legal {what} shape is {legal}"
    )
