"""The Spack environment, and whether its libraries are the ones in use."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from importlib.machinery import PathFinder
from pathlib import Path

from pffbench.doctor.finding import Findings, ok, warning
from pffbench.doctor.subject import REQUIRED, Subject
from pffbench.provenance.facts import Facts
from pffbench.provenance.software import spack_hash
from pffbench.provenance.spack import find_environment, spack_facts

#: Packages whose hashes are printed; `run.json` has all of them.
_SHOWN = (
    "openmpi", "mpich", "cray-mpich", "mvapich2", "intel-oneapi-mpi", "hdf5", "netcdf-c",
    "py-mpi4py", "py-h5py", "py-netcdf4",
)  # fmt: skip


def check_spack(subject: Subject) -> Findings:
    """Whether the libraries come from the Spack environment and its lock file."""
    facts = spack_facts(find_environment(subject.environ, Path(sys.prefix)))
    if facts is not None:
        yield from judge_spack(facts, library_hashes(REQUIRED))


def library_hashes(names: Iterable[str]) -> dict[str, str | None]:
    """Return the hash of each library's Spack package, None for a library outside of Spack.

    Missing libraries are left out. No library is imported.
    """
    found = {}
    for name in names:
        spec = PathFinder.find_spec(name)
        if spec is not None and spec.origin is not None:
            found[name] = spack_hash(Path(spec.origin))
    return found


def judge_spack(facts: Facts, hashes: Mapping[str, str | None]) -> Findings:
    """Report the environment, and the libraries that do not come from it.

    Parameters
    ----------
    facts : dict
        As `spack_facts` gives them.
    hashes : mapping
        The hash of each library's Spack package by import name; None outside of a package.
    """
    name = f"environment {facts['environment']} ({facts['directory']})"
    install = f"spack -e {facts['directory']} install"
    packages = facts.get("packages")
    if not isinstance(packages, dict):
        yield warning(f"{name} has no lock file to read: {facts['error']}", install)
        return
    yield ok(f"{name}, lock file {str(facts['lock_sha256'])[:12]}")
    shown = [_package_text(key, packages[key]) for key in _SHOWN if key in packages]
    yield ok(f"{len(packages)} packages, among them {', '.join(shown)}")
    locked = {entry["hash"] for entry in packages.values() if isinstance(entry, dict)}
    strange = [name for name, digest in hashes.items() if digest is None]
    stale = [name for name, digest in hashes.items() if digest is not None and digest not in locked]
    if strange:
        yield warning(
            f"not from the environment: {', '.join(strange)}",
            "leave virtual environments and unset PYTHONPATH, then `spack env activate "
            f"{facts['directory']}` and start its python",
        )
    if stale:
        yield warning(
            f"of other hashes than in the lock file: {', '.join(stale)}",
            f"spack -e {facts['directory']} install",
        )


def _package_text(name: str, entry: object) -> str:
    assert isinstance(entry, dict)
    outside = ", external" if entry["external"] else ""
    return f"{name} {entry['version']} (/{entry['hash'][:7]}{outside})"
