"""What TensorStore is told of an array: specifications of its drivers for Zarr formats 2 and 3.

https://google.github.io/tensorstore/driver/zarr/ and https://google.github.io/tensorstore/driver/zarr3/
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pffbench.backends.base import ArraySpec
from pffbench.backends.zarr_codecs import BLOSC_SHUFFLES
from pffbench.parallel.decomposition import Shape

Json = dict[str, Any]

#: Driver of each version of the format.
DRIVERS = {2: "zarr", 3: "zarr3"}
#: Files that make a directory a group, which TensorStore does not make by itself.
GROUP_FILES = {
    2: (".zgroup", {"zarr_format": 2}),
    3: ("zarr.json", {"zarr_format": 3, "node_type": "group", "attributes": {}}),
}


def creation(zarr_format: int, shards: Shape | None, spec: ArraySpec) -> Json:
    """Return the metadata that an array is created with; what is not asked for is left out."""
    if zarr_format == 2:
        return _format_2(spec)
    return _format_3(shards, spec)


def _format_2(spec: ArraySpec) -> Json:
    metadata: Json = {
        "shape": list(spec.shape),
        "dtype": spec.stored_dtype.str,
        "fill_value": 0,
    }
    if isinstance(spec.chunks, tuple):
        metadata["chunks"] = list(spec.chunks)
    if spec.codec != "library":
        metadata["compressor"] = _compressor_2(spec)
    return metadata


def _compressor_2(spec: ArraySpec) -> Json | None:
    if spec.codec == "none":
        return None
    if spec.codec != "blosc":
        return {"id": spec.codec, "level": spec.level}
    return {
        "id": "blosc",
        "cname": spec.compressor,
        "clevel": spec.level,
        "shuffle": list(BLOSC_SHUFFLES).index(spec.shuffle),
    }


def _format_3(shards: Shape | None, spec: ArraySpec) -> Json:
    metadata: Json = {
        "shape": list(spec.shape),
        "data_type": spec.dtype,
        "fill_value": 0,
    }
    if isinstance(spec.chunks, tuple):
        metadata["chunk_grid"] = _grid(shards or spec.chunks)
    if spec.codec == "library" and shards is None and spec.byte_order == "native":
        return metadata
    codecs = [
        {"name": "bytes", "configuration": {"endian": _endian(spec)}},
        *_compressors_3(spec),
    ]
    if shards is not None:
        assert isinstance(spec.chunks, tuple)
        inside = {"chunk_shape": list(spec.chunks), "codecs": codecs}
        codecs = [{"name": "sharding_indexed", "configuration": inside}]
    metadata["codecs"] = codecs
    return metadata


def _grid(shape: Shape) -> Json:
    return {"name": "regular", "configuration": {"chunk_shape": list(shape)}}


def _endian(spec: ArraySpec) -> str:
    return "big" if spec.stored_dtype.str.startswith(">") else "little"


def _compressors_3(spec: ArraySpec) -> list[Json]:
    if spec.codec in ("none", "library"):
        return []
    configuration: Json = {"level": spec.level}
    if spec.codec == "blosc":
        configuration = {
            "cname": spec.compressor,
            "clevel": spec.level,
            "shuffle": BLOSC_SHUFFLES[spec.shuffle],
            "typesize": spec.itemsize,
        }
    return [{"name": spec.codec, "configuration": configuration}]


def codecs_of(metadata: Mapping[str, Any]) -> tuple[list[tuple[str, Json]], Shape | None]:
    """Return the codecs of an array's metadata that compress, and the chunks inside of shards."""
    if "compressor" in metadata:
        told = metadata["compressor"]
        return ([] if told is None else [(told["id"], told)]), None
    codecs, inner = metadata["codecs"], None
    for codec in codecs:
        if codec["name"] == "sharding_indexed":
            inner = tuple(codec["configuration"]["chunk_shape"])
            codecs = codec["configuration"]["codecs"]
    named = [(codec["name"], codec.get("configuration", {})) for codec in codecs]
    return [codec for codec in named if codec[0] not in ("bytes", "transpose", "crc32c")], inner
