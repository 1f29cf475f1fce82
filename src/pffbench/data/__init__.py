"""Deterministic data: generators, and the user's own file as a source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pffbench.data.base import DTYPES, Source, check_dtype
from pffbench.data.constant import Constant
from pffbench.data.cris import Cris
from pffbench.data.files import FileSource
from pffbench.data.image import Image
from pffbench.data.integers import Integers
from pffbench.data.labels import Dense, Sparse
from pffbench.data.locate import locate
from pffbench.data.smooth import Smooth
from pffbench.data.uniform import uniform
from pffbench.data.verify import Mismatch, verify
from pffbench.errors import UserError

#: The kinds of data, each with what it is.
SOURCES = {
    "uniform": "random, incompressible: floats in [0, 1), integers over all bit patterns",
    "integers": "random whole numbers 0 .. 999 (0 .. 99 in one byte): compress moderately",
    "constant": "one value per array, never 0 or a fill value: compresses to almost nothing",
    "smooth": "a smooth field of waves with one decimal: compresses well",
    "cris": "noise-like spectra of a sounder: gzip makes them 1.08 times smaller",
    "image": "a tomographic volume: Blosc-Zstd with byte shuffle makes it 1.9 times smaller",
    "dense": "a volume of labels, nearly all of it labelled: 36 times smaller with Zstd",
    "sparse": "a volume of labels, 1 % of it labelled: 1000 times smaller with Zstd",
    "file": "a variable of the user's own HDF5, netCDF, Zarr or .npy file",
}

_GENERATORS: dict[str, Callable[[np.dtype[Any], int], Source]] = {
    "uniform": uniform,
    "integers": Integers,
    "constant": Constant,
    "smooth": Smooth,
    "cris": Cris,
    "image": Image,
    "dense": Dense,
    "sparse": Sparse,
}


def default_dtype(kind: str) -> str:
    """Return the element type that data of a kind have where none is named."""
    return "uint16" if kind in ("image", "dense", "sparse") else "float32"


def make_source(
    kind: str,
    dtype: str | None = None,
    seed: int = 0,
    file: str | None = None,
    variable: str | None = None,
) -> Source:
    """Make a source of data.

    Parameters
    ----------
    kind : str
        One of `SOURCES`.
    dtype : str, optional
        Element type, one of `DTYPES`; `default_dtype` if not given, or the variable's with kind
        ``file``.
    seed : int
        Any integer; its low 64 bits count. Kind ``file`` ignores it.
    file, variable : str, optional
        With kind ``file``: the user's file (see `locate`), and which variable in it (not needed
        where there is only one).

    Returns
    -------
    Source
        A `FileSource` (which has a `shape` too) with kind ``file``.

    Raises
    ------
    UserError
        The kind or the type is unknown, `file` is missing or given needlessly, or the file does
        not hold such a variable.
    """
    if kind not in SOURCES:
        raise UserError(f"source {kind!r} is not one of {', '.join(SOURCES)}")
    if kind == "file":
        if file is None:
            raise UserError("source 'file' needs the key 'file': the path of the user's file")
        return FileSource(locate(file), variable, None if dtype is None else check_dtype(dtype))
    if file is not None or variable is not None:
        raise UserError(f"'file' and 'variable' belong to source 'file', not to source {kind!r}")
    return _GENERATORS[kind](check_dtype(dtype or default_dtype(kind)), seed)


__all__ = [
    "DTYPES",
    "SOURCES",
    "FileSource",
    "Mismatch",
    "Source",
    "default_dtype",
    "make_source",
    "verify",
]
