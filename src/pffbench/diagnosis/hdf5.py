"""HDF5: one copy in the process, and what its version can do."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence

from pffbench.diagnosis.finding import MAKE_ENV, Finding
from pffbench.diagnosis.libraries import Library
from pffbench.diagnosis.versions import numbers

TOPIC = "HDF5"
_FILTERED_PARALLEL = (1, 10, 2)
_LARGE_CALLS = (1, 12, 3)


def judge_copies(copies: Mapping[str, Sequence[str]], h5py: str, netcdf4: str) -> Iterator[Finding]:
    """Tell whether h5py and netCDF4 use the same HDF5, and all the same MPI.

    Two copies share the names of their functions, and whichever was loaded first is called with
    the other's data: such a process may work for hours and then write wrong bytes.

    Parameters
    ----------
    copies : mapping
        Files of ``libhdf5`` and ``libmpi`` mapped into the process.
    h5py, netcdf4 : str
        Versions of HDF5 that the two report.
    """
    paths = copies.get("libhdf5", ())
    for name, files in {"HDF5": paths, "MPI": _same_named(copies.get("libmpi", ()))}.items():
        if len(files) > 1:
            text = f"{len(files)} different copies of {name} in one process: {', '.join(files)}"
            yield Finding(TOPIC, "problem", text, MAKE_ENV)
    if h5py != netcdf4:
        text = f"h5py uses HDF5 {h5py}, netCDF4 uses HDF5 {netcdf4}"
        yield Finding(TOPIC, "problem", text, MAKE_ENV)
    elif not paths:
        text = "no shared HDF5 library is seen in the process: h5py and netCDF4 may bring one each"
        yield Finding(TOPIC, "unknown", text)
    elif len(paths) == 1:
        yield Finding(TOPIC, "ok", f"h5py and netCDF4 share {paths[0]}")


def judge_hdf5(version: str, at_build: str, subfiling: bool | None) -> Iterator[Finding]:
    """Tell what a version of HDF5 can and cannot do.

    Parameters
    ----------
    version, at_build : str
        What runs, and what h5py was compiled against.
    subfiling : bool or None
        Whether the library has the subfiling driver; None when it could not be looked at.
    """
    if numbers(version)[:2] != numbers(at_build)[:2]:
        text = f"h5py was compiled for HDF5 {at_build} and runs with {version}"
        yield Finding(TOPIC, "warning", text, MAKE_ENV)
    if numbers(version) >= _FILTERED_PARALLEL:
        yield Finding(TOPIC, "ok", f"HDF5 {version} writes compressed data in parallel")
    else:
        yield Finding(
            TOPIC,
            "warning",
            f"HDF5 {version} cannot write compressed data in parallel (1.10.2 and later can)",
            "leave compression out of shared files, or use a newer HDF5",
        )
    if numbers(version) < _LARGE_CALLS:
        text = "calls that move 2 GiB or more need HDF5 1.12.3; pffbench splits them"
        yield Finding(TOPIC, "ok", text)
    if subfiling is not None:
        has = "available" if subfiling else "not in this build (1.14 or later brings it, on demand)"
        yield Finding(TOPIC, "ok", f"subfiling: {has}")


def look_at_hdf5(
    h5py: Library | None, netcdf4: Library | None, copies: Mapping[str, Sequence[str]]
) -> Iterator[Finding]:
    """Look at the HDF5 in this process; a library that cannot be imported is passed over."""
    if h5py is None or h5py.error:
        return
    version = str(h5py.facts.get("hdf5"))
    if netcdf4 is not None and not netcdf4.error:
        yield from judge_copies(copies, version, str(netcdf4.facts.get("hdf5")))
    at_build = str(h5py.facts.get("hdf5_at_build", version))
    yield from judge_hdf5(version, at_build, has_subfiling(copies.get("libhdf5", ())))


def _same_named(paths: Sequence[str]) -> list[str]:
    """Keep the MPI library itself: its parts for other languages are files of their own."""
    return [path for path in paths if path.rpartition("/")[2].startswith("libmpi.so")]


def has_subfiling(paths: Sequence[str]) -> bool | None:
    """Whether the loaded HDF5 has the subfiling driver; None when there is not just one copy."""
    if len(paths) != 1:
        return None
    return hasattr(ctypes.CDLL(paths[0]), "H5Pset_fapl_subfiling")
