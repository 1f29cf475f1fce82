"""Registry of the backends, including those of other packages, and of missing libraries."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

from pffbench.backends.base import Backend
from pffbench.plugins import load_class, loaded, plugins

#: Name → location of its class. The modules are light: only an instance imports a library.
_BUILT_IN = {
    "hdf5": "pffbench.backends.hdf5:Hdf5",
    "netcdf4": "pffbench.backends.netcdf4:NetCdf4",
    "netcdf3": "pffbench.backends.netcdf3:NetCdf3",
    "zarr": "pffbench.backends.zarr.zarr3:Zarr",
    "tensorstore": "pffbench.backends.zarr.tensorstore:TensorStore",
    "npy": "pffbench.backends.npy:Npy",
    "blosc2": "pffbench.backends.blosc2:Blosc2",
    "mpiio": "pffbench.backends.raw.mpiio:MpiIo",
    "posix": "pffbench.backends.raw.posix:Posix",
    "null": "pffbench.backends.null:Null",
}

#: Other packages add a backend through an entry point of this group.
ENTRY_POINT_GROUP = "pffbench.backends"
#: Attributes that a class must have.
_NEEDED = ("capabilities", "summary")


@cache
def _targets() -> dict[str, str]:
    # A built-in backend is not replaced, see `backend_class`.
    return {**plugins(ENTRY_POINT_GROUP), **_BUILT_IN}


def backend_names() -> tuple[str, ...]:
    """Return the names of all backends."""
    return tuple(_targets())


def loadable_backend_names() -> tuple[str, ...]:
    """Return the names of the backends without those of other packages that cannot be loaded."""
    others = loaded(ENTRY_POINT_GROUP, *_NEEDED)
    return tuple(name for name in _targets() if name in _BUILT_IN or name in others)


def is_backend(name: object) -> bool:
    """Return whether a backend has this name.

    Other packages are searched only if no built-in backend has the name: a search takes 30 ms.
    """
    return name in _BUILT_IN or name in _targets()


@cache
def backend_class(name: str) -> type[Backend]:
    """Return a backend's class without importing its library.

    A package may add a backend with the name of a built-in one. It is used if the installed library
    is of a series that it supports and the built-in one does not.

    Raises
    ------
    KeyError
        There is no backend of that name.
    UserError
        Another package adds it, and its class cannot be used.
    """
    location = _BUILT_IN.get(name) or _targets()[name]
    found: type[Backend] = load_class(location, Backend, *_NEEDED)
    if _other_series(found) and (place := plugins(ENTRY_POINT_GROUP).get(name)):
        added: type[Backend] = load_class(place, Backend, *_NEEDED)
        return found if _other_series(added) else added
    return found


def missing_library(kind: type[Backend]) -> str | None:
    """Return which library of a backend is missing or of another series, or None.

    Nothing is imported: of two series of a library only one can be there, and the other one's
    backend must not break this one.
    """
    for name in kind.libraries:
        if find_spec(name) is None:
            return f"needs the Python package {name}, which is not installed (see pffbench doctor)"
    return _other_series(kind)


def _other_series(kind: type[Backend]) -> str | None:
    """Return which library is installed in a series that a backend does not support, or None."""
    for name, series in kind.series.items():
        version = installed(name)
        if version is not None and version.partition(".")[0] not in map(str, series):
            wanted = " or ".join(map(str, series))
            return f"needs {name} {wanted}, and {version} is installed"
    return None


def installed(name: str) -> str | None:
    """Return the version of an installed package; None if it has none."""
    from importlib import metadata

    try:
        return metadata.version(name)
    except (metadata.PackageNotFoundError, ValueError):  # a ValueError: no name at all
        return None
