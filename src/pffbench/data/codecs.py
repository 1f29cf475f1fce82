"""Which codecs a user's Zarr array may have: those that turn bytes into numbers and do no more.

Zarr names codecs in the data, and some of them, such as pickle, run what the data say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pffbench.errors import UserError

#: Codecs of format 2 and of numcodecs, and those of format 3. What is not here is refused.
_HARMLESS = frozenset(
    {
        "adler32", "astype", "bitround", "blosc", "bz2", "crc32", "crc32c", "delta",
        "fixedscaleoffset", "fletcher32", "gzip", "jenkins_lookup3", "lz4", "lzma", "packbits",
        "pcodec", "quantize", "shuffle", "zfpy", "zlib", "zstd",
        "bytes", "transpose", "sharding_indexed",
    }
)  # fmt: skip


def refuse_codecs(what: object, metadata: Mapping[str, Any]) -> None:
    """Refuse an array with a codec that is not known to be harmless.

    Parameters
    ----------
    what : object
        The array, for the message.
    metadata : mapping
        Its metadata as plain data, of format 2 or 3.

    Raises
    ------
    UserError
        It has such a codec.
    """
    for name in _names(metadata):
        if name.removeprefix("numcodecs.") not in _HARMLESS:
            raise UserError(
                f"{what}: has the codec {name!r}, which may do more than turn bytes into numbers "
                f"(allowed: {', '.join(sorted(_HARMLESS))})"
            )


def _names(metadata: Mapping[str, Any]) -> Iterator[str]:
    """Yield the codecs of an array, those within shards included."""
    for codec in (*(metadata.get("filters") or ()), metadata.get("compressor")):
        if codec is not None:
            yield str(codec["id"] if isinstance(codec, Mapping) else codec.codec_id)
    for codec in metadata.get("codecs") or ():
        yield str(codec["name"])
        inner = codec.get("configuration") or {}
        yield from _names({"codecs": [*inner.get("codecs", ()), *inner.get("index_codecs", ())]})
