"""The known ways of keeping versions: one line each."""

from __future__ import annotations

from importlib import import_module
from typing import Literal

from pffbench.versioning.keeper import Keeper

Keep = Literal["last", "copies", "chunks", "versioned_hdf5", "icechunk"]

#: Backend and way → where its class is. The modules are light: instances import the libraries.
_KEEPERS: dict[tuple[str, Keep], str] = {
    ("hdf5", "last"): "pffbench.versioning.hdf5:Hdf5Last",
    ("hdf5", "copies"): "pffbench.versioning.hdf5:Hdf5Copies",
    ("hdf5", "chunks"): "pffbench.versioning.hdf5:Hdf5Chunks",
    ("hdf5", "versioned_hdf5"): "pffbench.versioning.versioned_hdf5:VersionedHdf5",
    ("zarr", "last"): "pffbench.versioning.zarr:ZarrLast",
    ("zarr", "copies"): "pffbench.versioning.zarr:ZarrCopies",
    ("zarr", "chunks"): "pffbench.versioning.zarr:ZarrChunks",
    ("zarr", "icechunk"): "pffbench.versioning.icechunk:Icechunk",
}


def ways_of(backend: str) -> tuple[Keep, ...]:
    """Return the ways in which a backend can keep versions; none for most."""
    return tuple(keep for name, keep in _KEEPERS if name == backend)


def keeper_class(backend: str, keep: Keep) -> type[Keeper]:
    """Return a keeper's class without importing its library.

    Raises
    ------
    KeyError
        The backend does not have this way.
    """
    module, _, attribute = _KEEPERS[backend, keep].partition(":")
    found = getattr(import_module(module), attribute)
    assert isinstance(found, type)
    assert issubclass(found, Keeper)
    return found
