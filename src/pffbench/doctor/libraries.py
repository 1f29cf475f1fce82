"""The Python libraries: installed, importable on every rank, built for parallel I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec

from pffbench.backends.registry import installed
from pffbench.backends.shared_files import built_for_mpi
from pffbench.doctor.finding import Finding, Findings, absent, ok, problem, warning
from pffbench.doctor.installation import Installation
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

#: Optional libraries that no backend names, by the name of their distribution, and what cannot be
#: done without them.
OPTIONAL = {
    "jinja2": "no report.html, and recommend gives no program",
    "pandas": "notebooks have no frames of a run",
    "vl-convert-python": "no figures and no report.html",
}


@dataclass(frozen=True)
class Library:
    """A library as this process sees it."""

    #: Its import name.
    name: str
    #: None when it is not installed.
    version: str | None
    #: The error of its import; empty when it can be imported.
    error: str = ""
    #: Its build facts, as `software_facts` gives them; empty when it was not imported.
    facts: Mapping[str, Fact] = field(default_factory=dict)
    #: Whether it was built for files that ranks share; None where this does not apply.
    parallel: bool | None = None


def import_libraries() -> dict[str, Library]:
    """Import the required libraries and return the result of each; never raises."""
    errors = {name: _import(name) for name in REQUIRED}
    known = software_facts(errors)["libraries"]
    assert isinstance(known, dict)
    return {name: _library(name, error, known[name]) for name, error in errors.items()}


def unloaded_libraries() -> dict[str, Library]:
    """Find the required libraries without importing them; binaries tell how they were built."""
    found = {}
    for name in REQUIRED:
        # The metadata may outlive the package.
        version = installed(name) if find_spec(name) is not None else None
        error = "" if version is not None else "no such package"
        found[name] = Library(name, version, error, parallel=built_for_mpi(name))
    return found


#: Name of the cause that libraries cannot share files; others are named like their library.
SERIAL = "serial"


def judge_libraries(
    libraries: Iterable[Library],
    failing: Mapping[str, Mapping[str, Sequence[str]]],
    installation: Installation,
) -> Findings:
    """Report whether the required libraries are usable.

    Parameters
    ----------
    libraries : iterable of Library
        As rank 0 sees them.
    failing : mapping
        For each library that fails on any rank, its error messages, each with the hosts.
    installation : Installation
        Where the remedies are to work.
    """
    serial: list[Library] = []
    for library in libraries:
        if errors := failing.get(library.name):
            yield _judge_failing(library, errors, installation)
        elif library.parallel is False:
            serial.append(library)
        else:
            text = " ".join(filter(None, [library.name, library.version, _details(library)]))
            yield ok(text)
    if serial:
        names = " and ".join(f"{library.name} {library.version}" for library in serial)
        yield warning(
            f"{names}: built without MPI, so ranks cannot share a file through "
            f"{'them' if len(serial) > 1 else 'it'}",
            f"get builds for MPI: {installation.remedy}",
            name=SERIAL,
        )


def _judge_failing(
    library: Library, errors: Mapping[str, Sequence[str]], installation: Installation
) -> Finding:
    name, text = library.name, "; ".join(errors)
    if library.version is None and library.error:
        said, remedy = f"{name} is not installed: {text}", installation.to_install(name)
    else:
        hosts = ", ".join(sorted({host for where in errors.values() for host in where}))
        said = f"{name} {library.version or ''} cannot be imported on {hosts}: {text}"
        remedy = f"install it again where the ranks run: {installation.to_install(name)}"
    # A run without MPI goes on in one process; the other libraries every run needs.
    return (warning if name == "mpi4py" else problem)(said, remedy, name=name)


def optional_versions(needed_for: Iterable[str]) -> dict[str, str | None]:
    """Find the versions of the optional libraries, by distribution; None is not installed.

    Parameters
    ----------
    needed_for : iterable of str
        Import names of the libraries that backends need.
    """
    versions: dict[str, str | None] = {}
    for name in sorted({*needed_for} - {*REQUIRED}):
        version = installed(name)
        # A distribution may be called otherwise than what is imported of it.
        known = "" if version is None and find_spec(name) is not None else version
        versions[name.replace("_", "-")] = known
    return versions | {name: installed(name) for name in OPTIONAL}


def judge_optional(
    versions: Mapping[str, str | None],
    needed_for: Mapping[str, Sequence[str]],
    installation: Installation,
) -> Findings:
    """Report which optional libraries are installed.

    Parameters
    ----------
    versions : mapping
        By the name of the distribution; None for one that is not installed.
    needed_for : mapping
        What cannot be done without each, by import name.
    installation : Installation
        Where the remedies are to work.
    """
    known = {name: version for name, version in versions.items() if version is not None}
    there = [f"{name} {version}".rstrip() for name, version in known.items()]
    if there:
        yield ok(f"optional, installed: {', '.join(there)}")
    for name in (name for name, version in versions.items() if version is None):
        uses = needed_for.get(name.replace("-", "_"), ()) or filter(None, [OPTIONAL.get(name)])
        yield absent(
            f"{name}, which is optional, is not installed",
            installation.to_install(name),
            consequences=tuple(uses),
        )


def _import(name: str) -> str:
    try:
        # `import mpi4py` alone loads no MPI library and so proves nothing.
        import_module("mpi4py.MPI" if name == "mpi4py" else name)
    except Exception as error:  # noqa: BLE001 -- a broken library raises anything
        return f"{type(error).__name__}: {error}"
    return ""


def _library(name: str, error: str, facts: Fact) -> Library:
    assert isinstance(facts, dict)
    version = None if facts.get("version") is None else str(facts["version"])
    if error:
        return Library(name, version, error)
    parallel = {"h5py": facts.get("mpi"), "netCDF4": facts.get("parallel4")}
    built = bool(parallel[name]) if name in parallel else None
    return Library(name, version, "", facts, built)


def _details(library: Library) -> str:
    facts = library.facts
    if not facts:
        return "built for MPI by the look of its binaries" if library.parallel else ""
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


def judge_pffbench(facts: Mapping[str, Fact]) -> Findings:
    """Report the version of pffbench; its commit makes a result repeatable.

    Parameters
    ----------
    facts : mapping
        ``version``, ``commit`` and ``dirty``, as `software_facts` gives them.
    """
    text = f"pffbench {facts['version']}"
    commit = facts.get("commit")
    if commit is None:
        yield ok(f"{text}, installed")
        return
    text += f", commit {str(commit)[:12]}"
    if not facts.get("dirty"):
        yield ok(text)
        return
    yield warning(
        f"{text} with changes that are not committed",
        "commit them before measuring, so that others can run the same code",
    )
