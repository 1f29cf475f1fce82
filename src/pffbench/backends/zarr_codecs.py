"""Codecs of Zarr formats 2 and 3: making them, and naming those that a file has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pffbench.backends.base import ArraySpec

#: What can be asked for in Zarr: codecs, the shuffles of each and what Blosc calls its
#: compressors; and how format 3 calls the shuffles, which format 2 numbers in this order.
CODECS = frozenset({"none", "gzip", "zstd", "blosc"})
COMPRESSORS = frozenset({"blosclz", "lz4", "lz4hc", "zlib", "zstd"})
BLOSC_SHUFFLES = {"none": "noshuffle", "byte": "shuffle", "bit": "bitshuffle"}
SHUFFLES: Mapping[str, frozenset[str]] = {"blosc": frozenset(BLOSC_SHUFFLES)}


def compressor(zarr_format: int, spec: ArraySpec) -> Any:
    """Return the codec that an array's specification asks for, None for no compression."""
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


def codec_name(codec: Any) -> str:
    """Return a codec's name with level and shuffle, as its configuration has them."""
    if hasattr(codec, "to_dict"):
        told = codec.to_dict()
        return configured_name(str(told["name"]), told.get("configuration", {}))
    told = codec.get_config()
    return configured_name(str(told["id"]), told)


def configured_name(name: str, told: Mapping[str, Any]) -> str:
    """Name a codec by the configuration that the metadata of an array have of it.

    Parameters
    ----------
    name : str
        What the format calls it.
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
