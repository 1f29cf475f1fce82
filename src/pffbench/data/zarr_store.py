"""The arrays of a Zarr hierarchy in a directory.

Metadata are read from each array's own file: consolidated metadata are an index that may be older.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from zarr import Array, open_array
from zarr.storage import LocalStore

from pffbench.data.contents import FAILURES, MOST_NAMES, Contents, reason_of, shown_name
from pffbench.regular_files import check_regular, read_regular

if TYPE_CHECKING:
    from zarr.abc.store import ByteRequest
    from zarr.core.buffer import Buffer, BufferPrototype

#: Files that make a directory a member of a hierarchy, and of what kind if the name says it.
METADATA: Mapping[str, str] = {"zarr.json": "", ".zarray": "array", ".zgroup": "group"}
#: Maximum bytes of one of them; it may hold the consolidated metadata of very many arrays.
_MOST_BYTES = 2**28
#: Codecs of format 2 and of numcodecs, and those of format 3. All others are refused: Zarr names
#: codecs in the data, and some of them, such as pickle, run code from the data.
_HARMLESS = frozenset(
    {
        "adler32", "astype", "bitround", "blosc", "bz2", "crc32", "crc32c", "delta",
        "fixedscaleoffset", "fletcher32", "gzip", "jenkins_lookup3", "lz4", "lzma", "packbits",
        "pcodec", "quantize", "shuffle", "vlen-bytes", "vlen-utf8", "zfpy", "zlib", "zstd",
        "bytes", "transpose", "sharding_indexed",
    }
)  # fmt: skip
#: Codecs of numcodecs that need a package of the same name.
_OWN_PACKAGES = frozenset({"pcodec", "zfpy"})
#: First part of a chunk's name, by any of the rules of the formats.
_CHUNK = re.compile(r"c|(?:c\.)?\d+(?:\.\d+)*")


class _RegularFiles(LocalStore):  # type: ignore[misc]
    """A directory of which only regular files are read: a FIFO would block."""

    async def get(
        self,
        key: str,
        prototype: BufferPrototype | None = None,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        path = self.root / key
        if path.exists() and not path.is_dir():
            check_regular(path)
        return await super().get(key, prototype, byte_range)


def list_zarr(path: Path, wanted: str | None = None) -> Contents:
    """Return the arrays of a group by name, or a single array without one.

    If there is one of the name wanted, the others are not looked at. Of very many arrays only the
    first ones are there: one more than `MOST_NAMES`.
    """
    found = Contents("zarr", {}, {})
    pending, visited = [("", path)], set[str]()
    while pending and len(found.arrays) <= MOST_NAMES:
        name, place = pending.pop()
        if wanted and not f"{wanted}/".startswith(f"{name}/".lstrip("/")):
            continue
        real = os.path.realpath(place)
        if real in visited:  # through a symbolic link
            continue
        visited.add(real)
        try:
            kind, metadata = _read_metadata(place)
            if kind == "array":
                found.arrays[name] = _open(place, metadata)
            elif kind == "group":
                pending += reversed(list(_members(name, place)))
        except FAILURES as error:
            found.unreadable[name] = reason_of(error)
    return list_zarr(path) if wanted and not (found.arrays or found.unreadable) else found


def _members(name: str, group: Path) -> Iterator[tuple[str, Path]]:
    with os.scandir(group) as entries:
        for entry in sorted(entries, key=lambda one: one.name):
            if entry.is_dir():
                inside = shown_name(os.fsencode(entry.name))
                yield f"{name}/{inside}".lstrip("/"), Path(entry.path)


def _read_metadata(place: Path) -> tuple[str, dict[str, Any]]:
    """Return what a directory is, array or group, with its metadata; "" if it is no member."""
    name = next((name for name in METADATA if (place / name).exists()), None)
    if name is None:
        return "", {}
    found = json.loads(read_regular(place / name, _MOST_BYTES))
    if not isinstance(found, dict):
        raise ValueError(f"{name} does not contain an object")
    kind = found.get("node_type") if name == "zarr.json" else METADATA[name]
    if kind not in ("array", "group"):
        raise ValueError(f"{name} has the node_type {kind!r} (allowed: 'array', 'group')")
    return str(kind), found


def _open(place: Path, metadata: Mapping[str, Any]) -> Array[Any]:
    for codec in _codecs(metadata):
        name = codec.removeprefix("numcodecs.")
        if name not in _HARMLESS:
            raise ValueError(
                f"has the codec {codec!r}, which may do more than turn bytes into numbers "
                f"(allowed: {', '.join(sorted(_HARMLESS))})"
            )
        if name in _OWN_PACKAGES and find_spec(name) is None:
            raise ValueError(
                f"its codec {codec} needs the Python package {name}: pip install "
                f"'numcodecs[{name}]'"
            )
    version: Literal[2, 3] = 3 if "node_type" in metadata else 2
    with warnings.catch_warnings():  # on types without a specification, which are told as types
        warnings.simplefilter("ignore")
        array = open_array(_RegularFiles(place, read_only=True), mode="r", zarr_format=version)
    if array.size and 0 in (chunks := array.chunks):
        raise ValueError(f"its chunks {list(chunks)} hold no element")
    _check_chunk_names(place, array.metadata.encode_chunk_key((0,) * array.ndim))
    return array


def _check_chunk_names(place: Path, key: str) -> None:
    """Raise ValueError if chunks have other names than an array's metadata give them.

    Zarr would read fill values, as from a nested store of format 2 that does not say so.
    """
    expected = re.compile(re.escape(key.partition("/")[0]).replace("0", r"\d+"))
    with os.scandir(place) as entries:
        chunks = (entry.name for entry in entries if _CHUNK.fullmatch(entry.name))
        other = ""
        for name in chunks:
            if expected.fullmatch(name):
                return
            other = name
    if other:
        raise ValueError(f"its chunks have names such as {other}, its metadata say {key}")


def _codecs(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Yield the codecs of an array, those within shards included."""
    for codec in (*(metadata.get("filters") or ()), metadata.get("compressor")):
        if codec is not None:
            yield str(codec["id"])
    for codec in metadata.get("codecs") or ():
        yield str(codec["name"])
        inner = codec.get("configuration") or {}
        yield from _codecs({"codecs": [*inner.get("codecs", ()), *inner.get("index_codecs", ())]})
