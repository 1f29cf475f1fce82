"""The Python libraries: installed, importable on every rank, built for parallel I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module, metadata

from pffbench.diagnosis.finding import MAKE_ENV, Finding
from pffbench.results.facts import Fact
from pffbench.results.software import software_facts

TOPIC = "Libraries"

#: Libraries that the package depends on. h5py comes before netCDF4: whoever loads HDF5 first
#: decides which copy the process uses.
REQUIRED = ("mpi4py", "numpy", "h5py", "netCDF4", "zarr", "numcodecs")

#: Libraries that add something when they are there, by the name of their distribution.
OPTIONAL = (
    "hdf5plugin", "icechunk", "matplotlib", "pandas", "pnetcdf", "tensorstore", "versioned-hdf5",
)  # fmt: skip


@dataclass(frozen=True)
class Library:
    """A library as this process sees it.

    Parameters
    ----------
    name : str
        Its import name.
    version : str or None
        None when it is not installed.
    error : str
        Why it cannot be imported; empty when it can.
    facts : mapping
        What it was built with, as `software_facts` gives it; empty when it was not imported.
    """

    name: str
    version: str | None
    error: str = ""
    facts: Mapping[str, Fact] = field(default_factory=dict)


def import_libraries(names: Iterable[str] = REQUIRED) -> dict[str, Library]:
    """Import libraries and tell of each what came out; never raises."""
    errors = {name: _import(name) for name in names}
    known = software_facts(errors)["libraries"]
    assert isinstance(known, dict)
    return {name: _library(name, error, known[name]) for name, error in errors.items()}


def installed_version(name: str) -> str | None:
    """Return the version of an installed distribution without importing it."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def judge_library(library: Library, failing: Mapping[str, Sequence[str]]) -> Finding:
    """Tell whether a required library can do its work.

    Parameters
    ----------
    library : Library
        As rank 0 sees it.
    failing : mapping
        For each error message on any rank, the hosts where the import ended with it.
    """
    name = library.name
    if failing:
        hosts = sorted({host for where in failing.values() for host in where})
        errors = "; ".join(failing)
        if library.version is None and library.error:
            return Finding(TOPIC, "problem", f"{name} is not installed: {errors}", MAKE_ENV)
        text = f"{name} {library.version or ''} cannot be imported on {', '.join(hosts)}: {errors}"
        return Finding(TOPIC, "problem", text, MAKE_ENV)
    serial = _serial(library)
    if serial:
        return Finding(TOPIC, "problem", f"{name} {library.version} {serial}", MAKE_ENV)
    return Finding(TOPIC, "ok", " ".join(filter(None, [name, library.version, _details(library)])))


def judge_optional(versions: Mapping[str, str | None]) -> Iterator[Finding]:
    """Tell which optional libraries are there; none of them is missed."""
    there = [f"{name} {version}" for name, version in versions.items() if version is not None]
    absent = [name for name, version in versions.items() if version is None]
    if there:
        yield Finding(TOPIC, "ok", f"optional, installed: {', '.join(there)}")
    if absent:
        yield Finding(TOPIC, "ok", f"optional, not installed: {', '.join(absent)}")


def _import(name: str) -> str:
    try:
        # `import mpi4py` alone loads no MPI library and so proves nothing.
        import_module("mpi4py.MPI" if name == "mpi4py" else name)
    except Exception as error:  # noqa: BLE001 -- a broken library raises anything
        return f"{type(error).__name__}: {error}"
    return ""


def _library(name: str, error: str, facts: Fact) -> Library:
    assert isinstance(facts, dict)
    version = facts.get("version")
    return Library(name, None if version is None else str(version), error, {} if error else facts)


def _serial(library: Library) -> str:
    """Say that a library was built without MPI; empty when it was not, or needs no MPI."""
    if library.name == "h5py" and not library.facts.get("mpi"):
        return "is built without MPI: it cannot open a file on several ranks"
    if library.name == "netCDF4" and not library.facts.get("parallel4"):
        return "is built without parallel netCDF-4: it cannot open a file on several ranks"
    return ""


def _details(library: Library) -> str:
    facts = library.facts
    if library.name == "mpi4py" and "mpi_library" in facts:
        first_line = str(facts["mpi_library"]).splitlines()[0].partition(",")[0]
        return f"on {first_line}"
    if library.name == "h5py":
        return f"with MPI, on HDF5 {facts.get('hdf5')}"
    if library.name == "netCDF4":
        more = ", PnetCDF" if facts.get("pnetcdf") else ""
        return (
            f"with parallel4{more}, on netCDF-C {facts.get('netcdf_c')}, HDF5 {facts.get('hdf5')}"
        )
    return ""
