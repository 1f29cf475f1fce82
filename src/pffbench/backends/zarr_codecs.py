"""Codecs of Zarr formats 2 and 3: making them, and naming those that a file has."""

from __future__ import annotations

from typing import Any

from pffbench.backends.base import ArraySpec


def compressor(zarr_format: int, spec: ArraySpec) -> Any:
    """Return the codec that an array's specification asks for, None for no compression."""
    if spec.codec == "none":
        return None
    if zarr_format == 2:
        import numcodecs

        made = {
            "gzip": lambda: numcodecs.GZip(spec.level),
            "zstd": lambda: numcodecs.Zstd(spec.level),
            "blosc": lambda: numcodecs.Blosc("lz4", spec.level, numcodecs.Blosc.SHUFFLE),
        }
    else:
        from zarr import codecs

        made = {
            "gzip": lambda: codecs.GzipCodec(level=spec.level),
            "zstd": lambda: codecs.ZstdCodec(level=spec.level),
            "blosc": lambda: codecs.BloscCodec(cname="lz4", clevel=spec.level, shuffle="shuffle"),
        }
    return made[spec.codec]()


def codec_name(codec: Any) -> str:
    """Return a codec's name and level as its configuration has them, for formats 2 and 3."""
    if hasattr(codec, "to_dict"):
        told = codec.to_dict()
        level = told.get("configuration", {})
        name = str(told["name"])
    else:
        level = codec.get_config()
        name = str(level["id"])
    return f"{name} {level.get('level', level.get('clevel', ''))}".strip()
