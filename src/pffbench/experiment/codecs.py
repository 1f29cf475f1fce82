"""Which ways of compressing a backend can do, as its capabilities tell."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from pffbench.backends.base import Capabilities
from pffbench.case import Parameters

#: Lowest and highest level of the codecs that have levels.
LEVELS = {"gzip": (0, 9), "zstd": (1, 22), "blosc": (0, 9)}


def beyond_codecs(p: Parameters, can: Capabilities) -> str | None:
    """Say why a case cannot be compressed as it asks for, or None."""
    if p.codec not in ("auto", *can.codecs):
        return f"backend {p.backend} cannot do codec {p.codec} (it can: {_list(can.codecs)})"
    if p.level is not None and (reason := _beyond_levels(p)):
        return reason
    if p.compressor is not None and p.codec != "blosc":
        return f"compressor {p.compressor} is one of Blosc's; it needs codec: blosc"
    if p.compressor is not None and p.compressor not in can.compressors:
        return (
            f"backend {p.backend} cannot do compressor {p.compressor} "
            f"(it can: {_list(can.compressors)})"
        )
    shuffles = can.shuffles.get(p.codec, frozenset({"none"}))
    if p.shuffle is not None and p.shuffle not in shuffles:
        return (
            f"backend {p.backend} cannot do shuffle {p.shuffle} with codec {p.codec} "
            f"(it can: {_list(shuffles)})"
        )
    library = can.codec_libraries.get(p.codec)
    if library is not None and find_spec(library) is None:
        return (
            f"codec {p.codec} in backend {p.backend} needs the Python package {library}, which is "
            "not installed (see pffbench doctor)"
        )
    return None


def _beyond_levels(p: Parameters) -> str | None:
    if p.codec not in LEVELS:
        return f"codec {p.codec} has no level (those that have: {_list(LEVELS)})"
    lowest, highest = LEVELS[p.codec]
    if p.level is not None and not lowest <= p.level <= highest:
        return f"codec {p.codec} has the levels {lowest} to {highest}, not {p.level}"
    return None


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
