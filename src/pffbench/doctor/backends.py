"""The backends that can run with the installed libraries, and in which layouts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from importlib.util import find_spec

from pffbench.backends.base import Backend
from pffbench.backends.registry import backend_class, backend_names, missing_library
from pffbench.backends.shared_files import built_for_mpi
from pffbench.doctor.finding import Ability, Findings, absent, looked_at, warning
from pffbench.doctor.libraries import REQUIRED, SERIAL
from pffbench.workloads.registry import workload, workload_names

TOPIC = "Backends"
LAYOUTS = ("shared", "own", "file_per_process")


def look_at_backends(broken: Collection[str]) -> Findings:
    """Report which backends cannot run, or not in all layouts; `abilities` lists the others.

    Parameters
    ----------
    broken : collection of str
        Import names of libraries that cannot be imported.
    """
    for name in backend_names():
        yield from looked_at(TOPIC, partial(_look_at, name, broken))


def _look_at(name: str, broken: Collection[str]) -> Findings:
    kind = backend_class(name)
    missing = [library for library in kind.libraries if library in broken]
    if missing:
        made = warning if missing[0] in REQUIRED else absent
        yield made(f"{name}: cannot run without {', '.join(missing)}", because=missing[0])
    elif reason := missing_library(kind):
        # Of two series of a library one may be installed, so the other one is not missing.
        yield absent(f"{name}: cannot run here, it {reason}")
    elif serial_libraries(kind):
        yield warning(f"{name}: a file for each process only", because=SERIAL)


def serial_libraries(kind: type[Backend]) -> list[str]:
    """List the libraries of a backend that cannot share files among ranks."""
    return [library for library in kind.libraries if built_for_mpi(library) is False]


def absent_libraries() -> frozenset[str]:
    """Find the libraries of all backends that are not installed, without importing one."""
    kinds = map(_class_of, backend_names())
    names = {library for kind in kinds if kind is not None for library in kind.libraries}
    return frozenset(name for name in names if find_spec(name) is None)


def needed_for() -> dict[str, list[str]]:
    """Return what cannot be done without each library that a backend or workload names.

    By the import names of the libraries.
    """
    uses: dict[str, list[str]] = {}
    for name in backend_names():
        kind = _class_of(name)
        if kind is None:
            continue
        for library in kind.libraries:
            uses.setdefault(library, []).append(f"the backend {name} cannot run")
        codecs = kind.capabilities.codec_libraries
        for library in sorted(set(codecs.values())):
            its = ", ".join(sorted(codec for codec, needs in codecs.items() if needs == library))
            uses.setdefault(library, []).append(f"{name}: no codecs {its}")
    for name in workload_names():
        for library, lacking in workload(name).optional_libraries.items():
            uses.setdefault(library, []).append(lacking)
    return uses


def abilities(
    broken: Collection[str], worked: Mapping[str, Collection[str]] | None, mpi: bool
) -> list[Ability]:
    """Return what can run here: for each backend that keeps data and each layout.

    Parameters
    ----------
    broken : collection of str
        Import names of libraries that cannot be imported.
    worked : mapping of str to collection of str, or None
        The transfers in a shared file that were tried and work, by backend; None if none was tried.
    mpi : bool
        Whether there is an MPI library.
    """
    kinds = ((name, _class_of(name)) for name in backend_names())
    return [
        _ability(name, kind, layout, broken, worked, mpi)
        for name, kind in kinds
        if kind is not None and not kind.capabilities.discards
        for layout in LAYOUTS
    ]


def _ability(
    name: str,
    kind: type[Backend],
    layout: str,
    broken: Collection[str],
    worked: Mapping[str, Collection[str]] | None,
    mpi: bool,
) -> Ability:
    # Runs are recorded with h5py, whatever they write.
    needed = dict.fromkeys((*kind.libraries, "h5py"))
    reason = next((f"needs {library}" for library in needed if library in broken), None)
    reason = reason or missing_library(kind)
    if reason is None and layout not in kind.capabilities.layouts:
        reason = "does not offer the layout"
    if reason is None and kind.mpi_io != "none" and layout != "file_per_process":
        serial = serial_libraries(kind)
        reason = f"{serial[0]} is built without MPI" if serial else None if mpi else "needs MPI"
    if reason is not None:
        return Ability(name, layout, (), reason=reason)
    if layout == "file_per_process":
        return Ability(name, layout, ("independent",))
    can = sorted(kind.capabilities.transfers, reverse=True)
    if worked is None:
        return Ability(name, layout, tuple(can))
    works = tuple(transfer for transfer in can if transfer in worked.get(name, ()))
    return Ability(name, layout, works, True, "" if works else "transfers fail, see above")


def _class_of(name: str) -> type[Backend] | None:
    """Return the class of a backend; None for one that cannot be loaded, which is reported."""
    try:
        return backend_class(name)
    except Exception:  # noqa: BLE001 -- a backend of another package; `look_at_backends` reports it
        return None
