"""The known backends: one line each, plus those that other packages bring."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from pffbench.backends.base import Backend

#: Name → where its class is. The modules are light: a library is imported by an instance only.
_BUILT_IN = {
    "hdf5": "pffbench.backends.hdf5:Hdf5",
    "netcdf4": "pffbench.backends.netcdf4:NetCdf4",
    "zarr": "pffbench.backends.zarr:Zarr",
    "zarr2": "pffbench.backends.zarr2:Zarr2",
    "tensorstore": "pffbench.backends.tensorstore:TensorStore",
    "mpiio": "pffbench.backends.mpiio:MpiIo",
    "posix": "pffbench.backends.posix:Posix",
    "memmap": "pffbench.backends.memmap:Memmap",
    "null": "pffbench.backends.null:Null",
}

#: Other packages add a backend through an entry point of this group.
ENTRY_POINT_GROUP = "pffbench.backends"


@cache
def _targets() -> dict[str, str]:
    """Return all that there are; looks through every installed package, which takes a while."""
    from importlib.metadata import entry_points

    found = {entry.name: entry.value for entry in entry_points(group=ENTRY_POINT_GROUP)}
    return {**found, **_BUILT_IN}  # nobody replaces a built-in backend unnoticed


def backend_names() -> tuple[str, ...]:
    """Return the names of all backends."""
    return tuple(_targets())


@cache
def backend_class(name: str) -> type[Backend]:
    """Return a backend's class without importing its library.

    Raises
    ------
    KeyError
        There is no backend of that name.
    """
    module, _, attribute = (_BUILT_IN.get(name) or _targets()[name]).partition(":")
    found = getattr(import_module(module), attribute)
    assert isinstance(found, type)
    assert issubclass(found, Backend)
    return found
