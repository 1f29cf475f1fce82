"""Libraries as they lie on disk, for a login node where loading MPI is forbidden or ends badly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.machinery import PathFinder
from pathlib import Path

from pffbench.diagnosis.finding import MAKE_ENV, Finding
from pffbench.diagnosis.libraries import REQUIRED, TOPIC, installed_version

NOT_LOOKED_AT = "not looked at with --no-mpi"

#: What the compiled modules contain only when they were built for parallel I/O.
_TRACES = {"h5py": b"H5Pset_fapl_mpio", "netCDF4": b"mpi4py.MPI"}


def judge_unloaded(name: str, version: str | None, parallel: bool | None) -> Finding:
    """Tell of a library that was not imported.

    Parameters
    ----------
    name : str
        Its import name.
    version : str or None
        None when it is not installed.
    parallel : bool or None
        Whether its binaries mention MPI; None where that is no question.
    """
    if version is None:
        return Finding(TOPIC, "problem", f"{name} is not installed", MAKE_ENV)
    if parallel is None:
        return Finding(TOPIC, "ok", f"{name} {version}")
    if parallel:
        return Finding(TOPIC, "ok", f"{name} {version}, built for MPI by the look of its binaries")
    text = f"{name} {version} is built without MPI by the look of its binaries"
    return Finding(TOPIC, "problem", text, MAKE_ENV)


def look_at_unloaded(names: Iterable[str] = REQUIRED) -> Iterator[Finding]:
    """Look at libraries without importing them."""
    for name in names:
        trace = _TRACES.get(name)
        files = extension_modules(name)
        parallel = None if trace is None or not files else mentions(files, trace)
        yield judge_unloaded(name, installed_version(name), parallel)
    yield Finding(TOPIC, "unknown", f"whether they load and share one HDF5: {NOT_LOOKED_AT}")


def extension_modules(name: str) -> list[Path]:
    """List the compiled modules of a top-level package without importing it."""
    spec = PathFinder.find_spec(name)
    roots = [] if spec is None else spec.submodule_search_locations or []
    return sorted(file for root in roots for file in Path(root).rglob("*.so"))


def mentions(files: Iterable[Path], trace: bytes) -> bool:
    """Whether any of some files contains a sequence of bytes."""
    return any(trace in file.read_bytes() for file in files)
