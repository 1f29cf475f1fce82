"""Options of Zarr through zarr-python 3."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from pffbench.backends.zarr_directory import FormatOptions


class ZarrOptions(FormatOptions, frozen=True, kw_only=True):
    """Options of Zarr; every default is what zarr-python does by itself.

    Beside `format` and `shards`:

    Parameters
    ----------
    concurrency : int, optional
        Most chunks that one call has under way at a time (``async.concurrency``), each encoded in
        a thread of its own. The library's default is 10; ``matched`` gives a rank one.
    pipeline : {"library", "zarrs"}
        What encodes, decodes, reads and writes chunks: zarr-python itself, or the Rust library
        zarrs (package zarrs), with one thread in ``matched`` and one a core otherwise.
    write_empty_chunks : bool, optional
        Whether chunks that hold nothing but the fill value are written. The library's default
        is no, which compares every chunk with the fill value; ``matched`` writes them, but with
        ``pipeline: zarrs``, which does not write them even when asked (version 0.2.3).
    """

    concurrency: Annotated[int, msgspec.Meta(ge=1, le=10_000)] | None = None
    pipeline: Literal["library", "zarrs"] = "library"
    write_empty_chunks: bool | None = None
