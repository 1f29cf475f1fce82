"""The kind of this installation, and the remedies that work in it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Literal

from pffbench.backends.shared_files import PIP_REMEDIES
from pffbench.provenance.software import spack_hash
from pffbench.provenance.spack import find_environment

Kind = Literal["own", "spack", "conda", "debian", "modules", "pip"]
_SUMMARIES: dict[Kind, str] = {
    "own": "environment of setup/bootstrap (`make env`)",
    "spack": "Spack environment",
    "conda": "conda environment",
    "debian": "Debian packages of the system",
    "modules": "environment modules of the site",
    "pip": "Python environment with packages of pip",
}
#: Libraries, named as by pip, that the packages of a system lack.
_LACKING: dict[Kind, frozenset[str]] = {
    "spack": frozenset({"icechunk", "versioned-hdf5"}),
    "debian": frozenset({"icechunk", "tensorstore", "versioned-hdf5", "vl-convert-python"}),
}
#: Libraries that only `setup/bootstrap --study` installs, since no lock file holds them.
_BUILT_FOR_STUDIES = frozenset({"versioned-hdf5"})
#: Variants of the recipe of pffbench that bring libraries, with what else belongs to them.
_VARIANTS = {
    "hdf5plugin": "filters", "pandas": "analysis", "tensorstore": "tensorstore",
    "vl-convert-python": "page",
}  # fmt: skip


@dataclass(frozen=True)
class Installation:
    """The installation that this Python belongs to.

    Parameters
    ----------
    kind : {"own", "spack", "conda", "debian", "modules", "pip"}
        What has installed the libraries.
    prefix : str
        Prefix of the Python.
    mpi : str
        Name of the MPI library; empty when it is not known.
    """

    kind: Kind
    prefix: str
    mpi: str = ""

    @property
    def summary(self) -> str:
        """One line about it."""
        return f"{_SUMMARIES[self.kind]}, {self.prefix}"

    def to_install(self, libraries: Iterable[str]) -> str:
        """Return how to install libraries, which are given by their import names."""
        names = [name.replace("_", "-") for name in libraries]
        lower = [name.lower() for name in names]
        if self.kind == "own" and _BUILT_FOR_STUDIES.issuperset(names):
            return f"`setup/bootstrap --study {_and(names)}`"
        if not _LACKING.get(self.kind, frozenset()).isdisjoint(names):
            return self._from_elsewhere(names)
        if self.kind == "spack" and _VARIANTS.keys() >= set(names):
            variants = "".join(f"+{_VARIANTS[name]}" for name in names)
            return f"`spack change py-pffbench{variants}`, then `spack install`"
        return {
            "own": f"`make env` in the checkout, or `setup/run pip install {_and(names)}`",
            "spack": f"`spack add {_and('py-' + n for n in lower)}`, then `spack install`",
            "conda": f"`conda install -c conda-forge {_and(lower)}`",
            "debian": f"`apt install {_and('python3-' + n for n in lower)}`, or without root "
            f"`python3 -m venv` and `pip install {_and(names)}` in it",
            "modules": f"look for a module (`module spider {lower[0]}`), or "
            f"`python -m pip install --user {_and(names)}`",
            "pip": f"`python -m pip install {_and(names)}`",
        }[self.kind]

    def _from_elsewhere(self, names: list[str]) -> str:
        if self.kind == "debian":
            return (
                "Debian has no package of it: `python3 -m venv --system-site-packages`, and "
                f"`pip install {_and(names)}` in it"
            )
        what = "setup/bootstrap" + "".join(
            f" --study {name}" for name in names if name in _BUILT_FOR_STUDIES
        )
        return f"Spack has no recipe of it: `PFFBENCH_ENV=private {what}` in the checkout"

    def to_share_files(self, libraries: Iterable[str]) -> str:
        """Return how to get builds of h5py and netCDF4 with which ranks can share files."""
        names = list(libraries)
        lower = [name.lower() for name in names]
        build = "mpi_mpich" if "MPICH" in self.mpi else "mpi_openmpi"
        here = "; ".join(PIP_REMEDIES[name] for name in names)
        return {
            "own": "`make env` in the checkout builds both with MPI",
            "spack": f"`spack add {_and(f'py-{n}+mpi' for n in lower)} hdf5+mpi`, then "
            "`spack concretize --force` and `spack install`",
            "conda": "`conda install -c conda-forge "
            + _and(f'"{name}=*={build}*"' for name in lower)
            + "`",
            "debian": "`apt install python3-h5py-mpi` for h5py; Debian has no parallel netCDF4, so "
            "`make env` in a checkout builds both without root",
            "modules": f"load the site's parallel builds instead (`module spider {lower[0]}`), or "
            f"build your own in a virtual environment: {here}",
            "pip": f"{here}; or take conda-forge's MPI builds, the site's modules, or Spack, all "
            "without root",
        }[self.kind]

    def to_have_one_hdf5(self) -> str:
        """Return how to get an h5py and a netCDF4 that use the same HDF5."""
        return {
            "own": "`make env` in the checkout builds both on one HDF5",
            "spack": "leave virtual environments and unset PYTHONPATH, so that both are Spack's",
            "conda": "install both from conda-forge, and `pip uninstall` the one that is pip's",
            "debian": "`pip uninstall` the one that is pip's, so that both are Debian's",
            "modules": "take both from modules of one toolchain, and unset PYTHONPATH",
            "pip": "install both as wheels, or build both on the same HDF5 (--no-binary)",
        }[self.kind]


def _and(names: Iterable[str]) -> str:
    return " ".join(names)


def find_installation(mpi: str = "", names: Iterable[str] = ("h5py", "netCDF4")) -> Installation:
    """Find the kind of this installation, without importing a library.

    Parameters
    ----------
    mpi : str
        Name of the MPI library, where it is loaded.
    names : iterable of str
        Libraries whose files tell where they come from.
    """
    specs = (PathFinder.find_spec(name) for name in names)
    origins = [Path(spec.origin) for spec in specs if spec is not None and spec.origin]
    kind = kind_of(os.environ, Path(sys.prefix), Path(sys.base_prefix), origins)
    return Installation(kind, sys.prefix, mpi)


def kind_of(
    environ: Mapping[str, str], prefix: Path, base_prefix: Path, origins: Iterable[Path]
) -> Kind:
    """Return the kind of an installation.

    Parameters
    ----------
    environ : mapping
        Environment variables; environment modules name the loaded ones.
    prefix, base_prefix : Path
        Prefix of the running Python, and of the Python that a virtual environment is made of.
    origins : iterable of Path
        Files of the libraries.
    """
    files = list(origins)
    if find_environment(environ, prefix) is not None or any(map(spack_hash, files)):
        return "spack"
    if (prefix / "conda-meta").is_dir():
        return "conda"
    if (prefix.parent / "setup" / "bootstrap").is_file():
        return "own"
    if any(file.is_relative_to("/usr/lib/python3/dist-packages") for file in files):
        return "debian"
    outside = any(not file.is_relative_to(prefix) for file in files)
    if environ.get("LOADEDMODULES") and (outside or prefix == base_prefix):
        return "modules"
    return "pip"
