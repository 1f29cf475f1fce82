"""The Zarr formats 2 and 3: legal chunks, codecs, chunk files and their sizes."""

from __future__ import annotations

import itertools
import json
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Edges, Unsafe
from pffbench.backends.chunk_limits import refuse_codec
from pffbench.backends.inspection import Chunking, StoredAs, StoredChunks
from pffbench.geometry.box import Box, Shape
from pffbench.geometry.cut import nearest_aligned


def refuse_chunks(
    zarr_format: int, shards: Shape | None, specs: Sequence[ArraySpec], edges: Edges
) -> str | None:
    """Return which rule the chunks of a case break, or None.

    Parameters
    ----------
    zarr_format : {2, 3}
        Version of the format.
    shards : tuple of int or None
        Shape of a shard.
    specs, edges
        As of `Backend.refuse`.
    """
    if shards is not None and zarr_format == 2:
        return "Zarr format 2 has no shards (format: 3)"
    for spec in specs:
        if spec.chunks == "contiguous":
            return "a Zarr array is always chunked; name a chunk shape, rank_part or auto"
        if reason := _refuse_shards(shards, spec) or refuse_codec(spec):
            return reason
    shared = [spec for spec in specs if spec.owner is None and any(edges)]
    return next(filter(None, (_refuse_sharing(shards, spec, edges) for spec in shared)), None)


def _refuse_shards(shards: Shape | None, spec: ArraySpec) -> str | None:
    if shards is None:
        return None
    if not isinstance(spec.chunks, tuple):
        return "shards need a chunk shape (chunks: a list, or rank_part)"
    if len(shards) != len(spec.chunks):
        return (
            f"shards {list(shards)} and chunks {list(spec.chunks)} differ in their number of axes"
        )
    if any(s % c for s, c in zip(shards, spec.chunks, strict=True)):
        return f"shards {list(shards)} are not multiples of the chunks {list(spec.chunks)}"
    return None


def _refuse_sharing(shards: Shape | None, spec: ArraySpec, edges: Edges) -> Unsafe | None:
    """Refuse chunks that two ranks would write to: each would undo the other's write unnoticed."""
    unit, what = (shards, "shard") if shards else (spec.chunks, "chunk")
    if unit == "library":
        legal = [nearest_aligned(n, n, list(c)) for n, c in zip(spec.shape, edges, strict=True)]
        return Unsafe(
            "Zarr's automatic chunks would be shared by ranks, which loses data; name chunks, "
            f"such as {legal}"
        )
    assert isinstance(unit, tuple)
    if all(edge % length == 0 for length, axis in zip(unit, edges, strict=True) for edge in axis):
        return None
    legal = [
        nearest_aligned(length, n, list(axis))
        for length, n, axis in zip(unit, spec.shape, edges, strict=True)
    ]
    return Unsafe(
        f"Zarr {what}s of {list(unit)} would be shared by ranks, which loses data; "
        f"the nearest legal {what} shape is {legal}"
    )


#: Support in Zarr: codecs, the shuffles of each and Blosc's names of its compressors; and the names
#: of the shuffles in format 3, which format 2 numbers in this order.
ZARR_CODECS = frozenset({"none", "gzip", "zstd", "blosc"})
COMPRESSORS = frozenset({"blosclz", "lz4", "lz4hc", "zlib", "zstd"})
BLOSC_SHUFFLES = {"none": "noshuffle", "byte": "shuffle", "bit": "bitshuffle"}
SHUFFLES: Mapping[str, frozenset[str]] = {"blosc": frozenset(BLOSC_SHUFFLES)}
#: With the shuffle of numcodecs before another codec: a filter in format 2, and in format 3 a codec
#: that is not in the specification.
_BYTE = frozenset({"none", "byte"})
NUMCODECS_SHUFFLES = {**SHUFFLES, "gzip": _BYTE, "zstd": _BYTE}


def compressor(zarr_format: int, spec: ArraySpec) -> Any:
    """Return the codec of an array's specification; None for no compression."""
    if spec.codec == "none":
        return None
    if zarr_format == 2:
        import numcodecs

        made = {
            "gzip": lambda: numcodecs.GZip(spec.level),
            "zstd": lambda: numcodecs.Zstd(spec.level),
            "blosc": lambda: numcodecs.Blosc(
                spec.compressor, spec.level, list(BLOSC_SHUFFLES).index(spec.shuffle)
            ),
        }
    else:
        from zarr import codecs

        made = {
            "gzip": lambda: codecs.GzipCodec(level=spec.level),
            "zstd": lambda: codecs.ZstdCodec(level=spec.level),
            "blosc": lambda: codecs.BloscCodec(
                cname=spec.compressor,
                clevel=spec.level,
                shuffle=BLOSC_SHUFFLES[spec.shuffle],
                typesize=spec.itemsize,
            ),
        }
    return made[spec.codec]()


def compression(zarr_format: int, spec: ArraySpec) -> dict[str, Any]:
    """Return the arguments of ``create_array`` for the codec and the shuffle before it."""
    codec = compressor(zarr_format, spec)
    if not spec.shuffled_before:
        return {"compressors": codec}
    if zarr_format == 2:
        return {"compressors": codec, "filters": [shuffle_filter(spec)]}
    from zarr.registry import get_codec_class

    shuffle: Any = get_codec_class("numcodecs.shuffle")
    return {"compressors": [shuffle(elementsize=spec.itemsize), codec]}


def shuffle_filter(spec: ArraySpec) -> Any:
    """Return the filter of format 2 that shuffles the bytes of the elements of an array."""
    import numcodecs

    return numcodecs.Shuffle(spec.itemsize)


def codec_name(codec: Any) -> str:
    """Return a codec's name with level and shuffle, as its configuration has them."""
    if hasattr(codec, "to_dict"):
        told = codec.to_dict()
        return configured_name(str(told["name"]), told.get("configuration", {}))
    told = codec.get_config()
    return configured_name(str(told["id"]), told)


def configured_name(name: str, told: Mapping[str, Any]) -> str:
    """Return a codec's name from its configuration in the metadata of an array.

    Parameters
    ----------
    name : str
        Its name in the format.
    told : mapping
        Its parameters in format 2 or 3.
    """
    level = told.get("level", told.get("clevel", ""))
    if name != "blosc":
        return f"{name} {level}".strip()
    names: dict[Any, str] = {word: ours for ours, word in BLOSC_SHUFFLES.items()}
    names |= {**dict(enumerate(BLOSC_SHUFFLES)), -1: "automatic"}
    # An enumeration in zarr-python, a word in the metadata, a number in those of format 2.
    asked = told.get("shuffle")
    shuffle = names.get(getattr(asked, "value", asked), asked)
    compressor = getattr(told["cname"], "value", told["cname"])
    return f"blosc-{compressor} {level}" + ("" if shuffle == "none" else f" {shuffle}")


#: Files that describe an array or a group; all others hold chunks.
DESCRIPTIONS = frozenset({"zarr.json", ".zarray", ".zattrs", ".zgroup", ".zmetadata"})


class ZarrFiles(msgspec.Struct, frozen=True):
    """Files that hold the chunks of an array in a directory."""

    #: Shape of a chunk.
    chunks: Shape
    #: Shape of the contents of a file: a shard, or a chunk.
    grid: Shape
    #: Whether chunks differ in length; `chunks` and `grid` are then the longest ones.
    rectilinear: bool = False

    @property
    def chunks_in_a_file(self) -> int:
        """Number of chunks that a file holds."""
        return math.prod(self.grid) // math.prod(self.chunks)


def metadata_of(path: str, name: str) -> dict[str, Any]:
    """Read the metadata of an array in a store of format 2 or 3."""
    directory = Path(path, name)
    told = directory / ".zarray"
    if not told.exists():
        told = directory / "zarr.json"
    found: dict[str, Any] = json.loads(told.read_text(encoding="utf-8"))
    return found


def files_of(path: str, name: str) -> ZarrFiles:
    """Return the chunk files of an array of a store."""
    metadata = metadata_of(path, name)
    if metadata["zarr_format"] == 2:
        chunks = tuple(metadata["chunks"])
        return ZarrFiles(chunks, chunks)
    told = metadata["chunk_grid"]["configuration"]
    if metadata["chunk_grid"]["name"] == "rectilinear":
        axes = zip(metadata["shape"], told["chunk_shapes"], strict=True)
        longest = tuple(max(_lengths(n, axis)) for n, axis in axes)
        return ZarrFiles(longest, longest, rectilinear=True)
    grid = tuple(told["chunk_shape"])
    return ZarrFiles(codecs_of(metadata)[1] or grid, grid)


def _lengths(n: int, axis: int | Sequence[int | Sequence[int]]) -> Shape:
    """Return the lengths of chunks along an axis: one for all, or each, or ``[length, count]``."""
    if isinstance(axis, int):
        return (axis,) * -(-n // axis)
    runs = [(run, 1) if isinstance(run, int) else (run[0], run[1]) for run in axis]
    return tuple(length for length, count in runs for _ in range(count))


def places_in_parts(box: Box, parts: Sequence[Shape]) -> Iterator[Shape]:
    """Yield the places in a rectilinear grid of chunks that hold a box, in C order."""
    along = []
    for start, stop, lengths in zip(box.start, box.stop, parts, strict=True):
        ends = list(itertools.accumulate(lengths))
        along.append(range(bisect_right(ends, start), bisect_left(ends, stop) + 1))
    return itertools.product(*along)


def usual_key(zarr_format: int) -> Callable[[Shape], str]:
    """Return the default names of an array's files."""
    if zarr_format == 2:
        return lambda place: ".".join(map(str, place)) or "0"
    return lambda place: "/".join(["c", *map(str, place)])


def chunking_of(array: Any) -> Chunking:
    """Return an array's chunking; zarr-python keeps no chunk between calls."""
    return Chunking(
        chunks=array.chunks,
        itemsize=int(array.dtype.itemsize),
        compressed=bool(array.compressors or array.filters),
        cache=None,
        shards=array.shards,
        index_bytes=index_bytes(array.shards, array.chunks),
    )


def encoding(zarr_format: int, spec: ArraySpec) -> dict[str, Any]:
    """Return the arguments of ``create_array`` for the type and its byte order in the store."""
    if spec.byte_order == "native":
        return {"dtype": spec.dtype}
    if zarr_format == 2:
        return {"dtype": spec.stored_dtype}
    from zarr.codecs import BytesCodec

    # In format 3 the byte order is not the type's, but that of a codec.
    return {"dtype": spec.dtype, "serializer": BytesCodec(endian="big")}


#: Bytes of a chunk's entry in the index of a shard, and of the index's checksum (Zarr format 3,
#: codec ``sharding_indexed`` with its usual index codecs).
_ENTRY, _CHECKSUM = 16, 4


def index_bytes(shards: Shape | None, chunks: Shape) -> int:
    """Return the bytes of the index of a shard."""
    return 0 if shards is None else _ENTRY * (math.prod(shards) // math.prod(chunks)) + _CHECKSUM


Json = dict[str, Any]


def codecs_of(metadata: Mapping[str, Any]) -> tuple[list[tuple[str, Json]], Shape | None]:
    """Return the filters and compressing codecs of an array's metadata, and the chunks of shards.

    The names are those of format 2 for codecs of numcodecs in format 3 too.
    """
    if "compressor" in metadata:
        used = [*(metadata.get("filters") or ()), metadata["compressor"]]
        return [(codec["id"], codec) for codec in used if codec is not None], None
    codecs, inner = metadata["codecs"], None
    for codec in codecs:
        if codec["name"] == "sharding_indexed":
            inner = tuple(codec["configuration"]["chunk_shape"])
            codecs = codec["configuration"]["codecs"]
    named = (
        (codec["name"].removeprefix("numcodecs."), codec.get("configuration", {}))
        for codec in codecs
    )
    return [codec for codec in named if codec[0] not in ("bytes", "transpose", "crc32c")], inner


def stored_codec(codecs: Sequence[tuple[str, Json]]) -> str:
    """Return what compresses an array, as `StoredAs` has it, from the result of `codecs_of`."""
    shuffled = " byte" * any(name == "shuffle" for name, _ in codecs)
    named = [configured_name(*codec) for codec in codecs if codec[0] != "shuffle"]
    return (", ".join(named) or "none") + shuffled


def describe(path: str) -> StoredAs:
    """Return the storage layout of the first array of a store, from its metadata alone."""
    name = next(entry.name for entry in Path(path).iterdir() if entry.is_dir())
    metadata, files = metadata_of(path, name), files_of(path, name)
    more = {"format": str(metadata["zarr_format"])}
    codecs, inside = codecs_of(metadata)
    if inside is not None:
        more["shards"] = "×".join(map(str, files.grid))
    if files.rectilinear:
        more["chunk_grid"] = "rectilinear"
    return StoredAs(chunks=files.chunks, codec=stored_codec(codecs), fill="never", more=more)


def stored_chunks(path: str, name: str) -> StoredChunks:
    """Return the number of chunks and the bytes of the files that an array has."""
    there = (file for file in Path(path, name).rglob("*") if file.is_file())
    sizes = [file.stat().st_size for file in there if file.name not in DESCRIPTIONS]
    return StoredChunks(len(sizes) * files_of(path, name).chunks_in_a_file, sum(sizes))
