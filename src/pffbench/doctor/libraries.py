"""The Python libraries: installed, importable on every rank, built for parallel I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module, metadata

from pffbench.backends.shared_files import built_for_mpi
from pffbench.doctor.finding import MAKE_ENV, Finding
from pffbench.provenance.facts import Fact
from pffbench.provenance.software import software_facts

Version = tuple[int, ...]


def numbers(text: str) -> Version:
    """Return the leading numbers of a version: ``1.14.4-3`` is (1, 14, 4)."""
    match = re.match(r"\d+(?:\.\d+)*", text.strip().removeprefix("v"))
    return tuple(int(part) for part in match[0].split(".")) if match else ()


LIBRARIES = "Libraries"

#: Libraries that the package depends on. h5py comes before netCDF4: the first to load HDF5
#: decides which copy the process uses.
REQUIRED = ("mpi4py", "numpy", "h5py", "netCDF4", "zarr", "numcodecs")

#: Optional libraries, by the name of their distribution.
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
        The error of its import; empty when it can be imported.
    facts : mapping
        Its build facts, as `software_facts` gives them; empty when it was not imported.
    """

    name: str
    version: str | None
    error: str = ""
    facts: Mapping[str, Fact] = field(default_factory=dict)


def import_libraries(names: Iterable[str] = REQUIRED) -> dict[str, Library]:
    """Import libraries and return the result of each; never raises."""
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
    """Report whether a required library is usable.

    Parameters
    ----------
    library : Library
        As rank 0 sees it.
    failing : mapping
        For each error message on any rank, the hosts where the import failed with it.
    """
    name = library.name
    if failing:
        hosts = sorted({host for where in failing.values() for host in where})
        errors = "; ".join(failing)
        if library.version is None and library.error:
            return Finding(LIBRARIES, "problem", f"{name} is not installed: {errors}", MAKE_ENV)
        text = f"{name} {library.version or ''} cannot be imported on {', '.join(hosts)}: {errors}"
        return Finding(LIBRARIES, "problem", text, MAKE_ENV)
    serial = _serial(library)
    if serial:
        return Finding(LIBRARIES, "problem", f"{name} {library.version} {serial}", MAKE_ENV)
    return Finding(
        LIBRARIES, "ok", " ".join(filter(None, [name, library.version, _details(library)]))
    )


def judge_optional(versions: Mapping[str, str | None]) -> Iterator[Finding]:
    """Report which optional libraries are installed; none of them is required."""
    there = [f"{name} {version}" for name, version in versions.items() if version is not None]
    absent = [name for name, version in versions.items() if version is None]
    if there:
        yield Finding(LIBRARIES, "ok", f"optional, installed: {', '.join(there)}")
    if absent:
        yield Finding(LIBRARIES, "ok", f"optional, not installed: {', '.join(absent)}")


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
    """Return a note if a library that needs MPI was built without it, else an empty text."""
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


PYTHON = "Python"
LOWEST: Version = (3, 11)


def judge_python(version: Version, executable: str) -> Finding:
    """Report whether this Python is new enough."""
    text = f"Python {'.'.join(map(str, version))} ({executable})"
    if version[:2] >= LOWEST:
        return Finding(PYTHON, "ok", text)
    lowest = ".".join(map(str, LOWEST))
    return Finding(PYTHON, "problem", f"{text} is older than {lowest}", MAKE_ENV)


def judge_pffbench(facts: Mapping[str, Fact]) -> Iterator[Finding]:
    """Report the version of pffbench; its commit makes a result repeatable.

    Parameters
    ----------
    facts : mapping
        ``version``, ``commit`` and ``dirty``, as `software_facts` gives them.
    """
    text = f"pffbench {facts['version']}"
    commit = facts.get("commit")
    if commit is None:
        yield Finding(PYTHON, "ok", f"{text}, installed")
        return
    text += f", checkout at {str(commit)[:12]}"
    if not facts.get("dirty"):
        yield Finding(PYTHON, "ok", text)
        return
    yield Finding(
        PYTHON,
        "warning",
        f"{text} with changes that are not committed",
        "commit them before measuring, so that others can run the same code",
    )


NOT_LOOKED_AT = "not looked at with --no-mpi"


def judge_unloaded(name: str, version: str | None, parallel: bool | None) -> Finding:
    """Report a library that was not imported.

    Parameters
    ----------
    name : str
        Its import name.
    version : str or None
        None when it is not installed.
    parallel : bool or None
        Whether its binaries mention MPI; None where this does not apply.
    """
    if version is None:
        return Finding(LIBRARIES, "problem", f"{name} is not installed", MAKE_ENV)
    if parallel is None:
        return Finding(LIBRARIES, "ok", f"{name} {version}")
    if parallel:
        return Finding(
            LIBRARIES, "ok", f"{name} {version}, built for MPI by the look of its binaries"
        )
    text = f"{name} {version} is built without MPI by the look of its binaries"
    return Finding(LIBRARIES, "problem", text, MAKE_ENV)


def look_at_unloaded(names: Iterable[str] = REQUIRED) -> Iterator[Finding]:
    """Check libraries without importing them."""
    for name in names:
        yield judge_unloaded(name, installed_version(name), built_for_mpi(name))
    yield Finding(LIBRARIES, "unknown", f"whether they load and share one HDF5: {NOT_LOOKED_AT}")
