"""Whether the installed libraries can share a file among ranks, without importing them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path

from pffbench.backends.base import Backend
from pffbench.backends.registry import installed
from pffbench.tools import run_tool

#: Byte sequences that the compiled modules contain only when they were built for parallel I/O.
_TRACES = {"h5py": b"H5Pset_fapl_mpio", "netCDF4": b"mpi4py.MPI"}
#: The remedies without root, the first of them on the library's own.
PIP_REMEDIES = {
    "h5py": "HDF5_MPI=ON pip install --no-binary=h5py h5py on a parallel HDF5",
    "netCDF4": "pip install --no-binary=netCDF4 netCDF4 on a parallel netCDF-C",
}
#: Seconds in which the linker must answer.
_LINKER = 10.0
_OTHER_REMEDIES = "conda-forge's mpi builds (environment.yml), the site's modules, or Spack"


@cache
def built_for_mpi(package: str) -> bool | None:
    """Return whether a package was built for parallel I/O; None if that cannot be determined."""
    trace = _TRACES.get(package)
    files = [] if trace is None else extension_modules(package)
    return None if trace is None or not files else mentions(files, trace)


@cache
def has_pnetcdf() -> bool | None:
    """Return whether the netCDF-C of netCDF4-python has PnetCDF; None if that is not known.

    The dynamic linker tells which library the compiled module loads. Importing the module would
    load it, which the planning of a run must not.
    """
    for module in extension_modules("netCDF4"):
        told = run_tool(["ldd", str(module)], _LINKER)
        for line in told.text.splitlines() if told.ok else ():
            name, arrow, rest = line.strip().partition(" => ")
            if arrow and name.startswith("libnetcdf") and rest.startswith("/"):
                return mentions([Path(rest.rpartition(" (")[0])], b"ncmpi_create")
    return None


def extension_modules(package: str) -> list[Path]:
    """List the compiled modules of a top-level package without importing it."""
    spec = PathFinder.find_spec(package)
    roots = [] if spec is None else spec.submodule_search_locations or []
    return sorted(file for root in roots for file in Path(root).rglob("*.so"))


def mentions(files: Iterable[Path], trace: bytes) -> bool:
    """Whether any of some files contains a sequence of bytes."""
    return any(trace in file.read_bytes() for file in files)


@cache
def serial_library(kind: type[Backend]) -> str | None:
    """Return that a library of a backend cannot share files among ranks, and remedies; or None."""
    for package in kind.libraries:
        if built_for_mpi(package) is False:
            return (
                f"files that ranks share need a parallel {package}, and {package} "
                f"{installed(package)} is built without MPI; use files: per_rank, or "
                f"without root: {PIP_REMEDIES[package]}, {_OTHER_REMEDIES}"
            )
    return None
