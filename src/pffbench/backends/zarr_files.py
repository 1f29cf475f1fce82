"""Where the chunks of a Zarr array lie, by its metadata alone and so whatever library is there."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pffbench.backends.tensorstore_spec import codecs_of
from pffbench.parallel.decomposition import Shape

#: Files that describe an array or a group; all others hold chunks.
DESCRIPTIONS = frozenset({"zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata"})


@dataclass(frozen=True)
class ZarrFiles:
    """How an array in a directory is cut into files.

    Parameters
    ----------
    chunks : tuple of int
        Shape of a chunk.
    grid : tuple of int
        Shape of what a file holds: a shard, or a chunk.
    key : callable
        Gives the name of the file at a place of that grid, relative to the array's directory.
    """

    chunks: Shape
    grid: Shape
    key: Callable[[Shape], str]

    @property
    def chunks_in_a_file(self) -> int:
        """Number of chunks that a file holds."""
        return math.prod(self.grid) // math.prod(self.chunks)


def metadata_of(path: str, name: str) -> dict[str, Any]:
    """Read what a store of format 2 or 3 says of an array."""
    directory = Path(path, name)
    told = directory / ".zarray"
    if not told.exists():
        told = directory / "zarr.json"
    found: dict[str, Any] = json.loads(told.read_text(encoding="utf-8"))
    return found


def files_of(path: str, name: str) -> ZarrFiles:
    """Find out where the chunks of an array of a store lie."""
    metadata = metadata_of(path, name)
    if metadata["zarr_format"] == 2:
        chunks = tuple(metadata["chunks"])
        return ZarrFiles(chunks, chunks, _joined(metadata.get("dimension_separator", ".")))
    grid = tuple(metadata["chunk_grid"]["configuration"]["chunk_shape"])
    return ZarrFiles(codecs_of(metadata)[1] or grid, grid, _key_3(metadata["chunk_key_encoding"]))


def usual_key(zarr_format: int) -> Callable[[Shape], str]:
    """Return the names of files of an array that was made without asking for other ones."""
    return _joined(".") if zarr_format == 2 else _key_3({"name": "default"})


def _key_3(encoding: Mapping[str, Any]) -> Callable[[Shape], str]:
    """Return the names of format 3, whose usual separator depends on the kind of name."""
    told = encoding.get("configuration", {})
    if encoding["name"] == "v2":
        return _joined(told.get("separator", "."))
    separator = told.get("separator", "/")
    return lambda place: separator.join(["c", *map(str, place)])


def _joined(separator: str) -> Callable[[Shape], str]:
    return lambda place: separator.join(map(str, place)) or "0"
