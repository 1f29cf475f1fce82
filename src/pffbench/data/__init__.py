"""Deterministic data: generators, and the user's own file as a source."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from pffbench.data import random
from pffbench.data.base import DTYPES, Source, check_dtype
from pffbench.data.verify import Mismatch, verify
from pffbench.errors import UserError
from pffbench.plugins import load, plugins

if TYPE_CHECKING:
    from pffbench.data.files import FileSource

#: Kind → function that makes it from a type and a seed; a run imports only the kinds of its cases.
GENERATORS = {
    "uniform": "pffbench.data.generators:uniform",
    "integers": "pffbench.data.generators:Integers",
    "constant": "pffbench.data.generators:Constant",
    "smooth": "pffbench.data.smooth:Smooth",
}
#: Other packages add a kind through an entry point of this group. What it names may have a
#: `default_dtype`.
ENTRY_POINT_GROUP = "pffbench.sources"
#: Kinds of which no chunk, but for one of very few elements, holds nothing but zeros.
NEVER_ZERO = frozenset({"uniform", "constant"})


@cache
def _targets() -> dict[str, str]:
    return {**plugins(ENTRY_POINT_GROUP), **GENERATORS}


def source_names() -> tuple[str, ...]:
    """Return the kinds of data, those of other packages included."""
    return (*_targets(), "file")


def is_source(name: object) -> bool:
    """Return whether a kind of data has this name; a built-in one is found without a search."""
    return name == "file" or name in GENERATORS or name in _targets()


def default_dtype(kind: str) -> str:
    """Return the default element type of a generated kind of data."""
    if kind in GENERATORS:
        return "float32"
    return str(getattr(load(_targets()[kind]), "default_dtype", "float32"))


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
        One of `source_names`.
    dtype : str, optional
        Element type, one of `DTYPES`; `default_dtype` if not given, or the variable's with kind
        ``file``.
    seed : int
        Any integer; its low 64 bits count. Kind ``file`` ignores it.
    file, variable : str, optional
        With kind ``file``: the user's file (see `locate`), and the variable in it (not needed if
        there is only one).

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
    if not is_source(kind):
        raise UserError(f"source {kind!r} is not one of {', '.join(source_names())}")
    if kind == "file":
        if file is None:
            raise UserError("source 'file' needs the key 'file': the path of the user's file")
        return file_source(file, variable, dtype)
    if file is not None or variable is not None:
        raise UserError(f"'file' and 'variable' belong to source 'file', not to source {kind!r}")
    generator = load(GENERATORS.get(kind) or _targets()[kind])
    made: Source = generator(check_dtype(dtype or default_dtype(kind)), seed)
    return made


def seed_of_repetition(seed: int, repetition: int) -> int:
    """Return the seed of the data of a repetition.

    Data differ from repetition to repetition, so that leftovers of an earlier one, in memory or in
    a file, cannot pass for the data to be read.
    """
    return random.stream(seed, repetition)


class Sources:
    """Makes the sources of a run; the last ones made, and opened files, are reused."""

    def __init__(self) -> None:
        self._files: dict[tuple[str | None, ...], Source] = {}
        self._last: dict[tuple[str, str | None, int], Source] = {}

    def get(
        self, kind: str, dtype: str | None, seed: int, file: str | None, variable: str | None
    ) -> Source:
        """Return a source; the parameters are those of `make_source`."""
        if kind == "file":
            name = (dtype, file, variable)
            if name not in self._files:
                self._files[name] = make_source(kind, dtype, seed, file, variable)
            return self._files[name]
        key = (kind, dtype, seed)
        if key not in self._last:  # those of other types are of the same case
            self._last = {k: made for k, made in self._last.items() if (k[0], k[2]) == (kind, seed)}
            self._last[key] = make_source(kind, dtype, seed)
        return self._last[key]


def file_source(file: str, variable: str | None, dtype: str | None) -> FileSource:
    """Open a variable of the user's own file as a source; see `make_source`."""
    from pffbench.data.files import FileSource, locate

    return FileSource(locate(file), variable, None if dtype is None else check_dtype(dtype))


__all__ = [
    "DTYPES", "GENERATORS", "Mismatch", "Source", "Sources", "default_dtype", "file_source",
    "is_source", "make_source", "seed_of_repetition", "source_names", "verify",
]  # fmt: skip
