"""Decompositions by a map: the file that says which stretches of an array each process has.

`docs/irregular.md` describes the two forms of a map's file, which `map_files` reads.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Literal

import msgspec

from pffbench.errors import UserError
from pffbench.geometry.maps import DecompositionMap


class MapFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An irregular decomposition, from a file."""

    #: The map, as `.npz` or in a form of E3SM-IO (text, netCDF, HDF5): a path, or
    #: ``package:NAME/PATH``.
    file: str
    #: Name of the map in a netCDF or HDF5 file of several, such as ``D2``.
    variable: str | None = None
    #: Whether there may be elements that no process has.
    holes: Literal["refuse", "allow"] = "refuse"
    #: Whether there may be elements that several processes have, or one of them twice.
    overlaps: Literal["refuse", "allow"] = "refuse"

    @property
    def map(self) -> DecompositionMap:
        """The map; it is read once.

        Raises
        ------
        UserError
            The file cannot be read, or is no map.
        """
        from pffbench.data.files import locate  # for runs with a map alone

        path = locate(self.file)
        try:
            state = Path(path).stat()
        except OSError as error:
            raise UserError(f"{self.file} cannot be read: {error.strerror}") from None
        return _read(path, self.variable, state.st_mtime_ns, state.st_size)

    def error(self, ranks: int) -> str | None:
        """Return why ranks cannot have their parts by the map, or None."""
        try:
            found = self.map
        except UserError as error:
            return f"decomposition.file: {error}"
        reason = found.beyond(ranks)
        if reason is None and self.overlaps == "refuse":
            reason = found.overlap
        if reason is None and self.holes == "refuse":
            reason = found.hole
        return None if reason is None else f"decomposition.file: {self.file}: {reason}"


@lru_cache(maxsize=16)
def _read(path: str, variable: str | None, changed: int, size: int) -> DecompositionMap:
    """Read a map; `changed` and `size` are those of the file, so that another one is read anew."""
    from pffbench.workloads.map_files import read_map  # for runs with a map alone

    return read_map(path, variable)
