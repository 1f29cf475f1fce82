"""What a backend can do, so that impossible cases are refused when a run is planned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Capabilities:
    """What a backend can do; impossible cases are refused by this when a run is planned.

    Parameters
    ----------
    layouts : frozenset of str
        Layouts that it can do.
    transfers : frozenset of str
        Transfers that it can do in a file that ranks share.
    codecs : frozenset of str
        Codecs that it can be asked for.
    shuffles : mapping of str to frozenset of str
        What each codec can be asked to do before; a codec that is not named: nothing.
    compressors : frozenset of str
        What can compress inside of blosc.
    codec_libraries : mapping of str to str
        Import names of optional packages that codecs need.
    byte_orders : frozenset of str
        Byte orders in the store that it can be asked for.
    formatted : bool
        Whether it stores a described array; False for raw bytes, which serve as the roofline.
    keeps_data : bool
        Whether what was written can be read back.
    caller_buffer : bool
        Whether a read lands in the caller's buffer; otherwise the library returns a new array
        and its allocation is part of the read.
    maps_files : bool
        Whether reads go through a map of the file, and not through read(2) and its like.
    changes : bool
        Whether a closed store can be opened again to overwrite parts of its arrays, those with a
        stride too, and to append to them.
    """

    layouts: frozenset[str] = frozenset({"file_per_process", "own", "shared"})
    transfers: frozenset[str] = frozenset({"independent", "collective"})
    codecs: frozenset[str] = frozenset({"none"})
    shuffles: Mapping[str, frozenset[str]] = field(default_factory=dict)
    compressors: frozenset[str] = frozenset()
    codec_libraries: Mapping[str, str] = field(default_factory=dict)
    byte_orders: frozenset[str] = frozenset({"native"})
    formatted: bool = True
    keeps_data: bool = True
    caller_buffer: bool = True
    maps_files: bool = False
    changes: bool = False
