"""Style of figures: one colour per backend, and text without markup."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Any

#: The palette of Okabe and Ito (2008), safe for colour-blind readers; raw bytes are greys.
_COLOURS = {
    "hdf5": "#0072B2",
    "netcdf4": "#E69F00",
    "zarr": "#009E73",
    "tensorstore": "#D55E00",
    "pnetcdf": "#CC79A7",
    "zip": "#56B4E9",
    "memmap": "#F0E442",
    "mpiio": "#999999",
    "posix": "#4D4D4D",
    "null": "#DDDDDD",
}
#: For backends of other packages: Paul Tol's muted colours, also safe.
_OTHERS = ("#332288", "#882255", "#44AA99", "#AA4499", "#DDCC77", "#88CCEE", "#117733", "#CC6677")

#: Digits of a number that a figure can show.
_DIGITS = 5
INK = "#222222"
PALE_INK = "#666666"
ALARM = "#D55E00"


def colour(backend: str) -> str:
    """Return the colour of a backend, the same in every figure of every run."""
    if backend in _COLOURS:
        return _COLOURS[backend]
    number = int.from_bytes(hashlib.sha256(backend.encode()).digest()[:4], "big")
    return _OTHERS[number % len(_OTHERS)]


def drawable(value: Any) -> Any:
    """Return plain data with the digits that a figure can show, and text that fonts can.

    None stands where a number is missing.
    """
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, Mapping):
        return {key: drawable(below) for key, below in value.items()}
    return [drawable(item) for item in value] if isinstance(value, list | tuple) else value


def plain(text: str) -> str:
    """Return text without characters that neither a font nor XML can show."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
