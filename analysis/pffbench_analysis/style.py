"""Style of figures: one colour per backend, and text without markup."""

from __future__ import annotations

import hashlib

#: The palette of Okabe and Ito (2008), safe for colour-blind readers; raw bytes are greys.
_COLOURS = {
    "hdf5": "#0072B2",
    "netcdf4": "#E69F00",
    "zarr": "#009E73",
    "tensorstore": "#D55E00",
    "netcdf3": "#CC79A7",
    "zip": "#56B4E9",
    "memmap": "#F0E442",
    "mpiio": "#999999",
    "posix": "#4D4D4D",
    "null": "#DDDDDD",
}
#: For backends of other packages: Paul Tol's muted colours, also safe.
_OTHERS = ("#332288", "#882255", "#44AA99", "#AA4499", "#DDCC77", "#88CCEE", "#117733", "#CC6677")
ALARM = "#B43C00"


def colour(backend: str) -> str:
    """Return the colour of a backend, the same in every figure of every run."""
    if backend in _COLOURS:
        return _COLOURS[backend]
    number = int.from_bytes(hashlib.sha256(backend.encode()).digest()[:4], "big")
    return _OTHERS[number % len(_OTHERS)]


def plain(text: str) -> str:
    """Return text without characters that neither a font nor XML can show."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
