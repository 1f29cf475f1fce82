"""The kind of this installation, and where its remedies are."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Literal

import msgspec

from pffbench.provenance.software import spack_hash
from pffbench.provenance.spack import find_environment

Kind = Literal["own", "spack", "conda", "debian", "modules", "pip"]
#: What each kind is, and how it gets a library; docs/install.md has the commands for all cases.
_KINDS: dict[Kind, tuple[str, str]] = {
    "own": (
        "environment of setup/bootstrap (`make env`)",
        "`make env` in the checkout, or `setup/run pip install {}`",
    ),
    "spack": ("Spack environment", "`spack add py-{lower}`, then `spack install`"),
    "conda": ("conda environment", "`conda install -c conda-forge {lower}`"),
    "debian": (
        "Debian packages of the system",
        "`apt install python3-{lower}`, or without root `pip install {}` in a `python3 -m venv`",
    ),
    "modules": (
        "environment modules of the site",
        "look for a module (`module spider {lower}`), or `python -m pip install --user {}`",
    ),
    "pip": ("Python environment with packages of pip", "`python -m pip install {}`"),
}
#: Libraries, named as by pip, that some kinds of installation get otherwise.
_OTHERWISE: dict[Kind, frozenset[str]] = {
    "own": frozenset({"versioned-hdf5"}),
    "spack": frozenset(
        {
            "hdf5plugin",
            "icechunk",
            "jinja2",
            "pandas",
            "tensorstore",
            "versioned-hdf5",
        }
    ),
    "debian": frozenset({"icechunk", "tensorstore", "versioned-hdf5"}),
}
_SECTION = "see Remedies in docs/install.md, row {}"


class Installation(msgspec.Struct, frozen=True):
    """The installation that this Python belongs to."""

    #: What has installed the libraries.
    kind: Kind
    #: Prefix of the Python.
    prefix: str

    @property
    def summary(self) -> str:
        """One line about it."""
        return f"{_KINDS[self.kind][0]}, {self.prefix}"

    @property
    def remedy(self) -> str:
        """Where the remedies for this kind of installation are."""
        return _SECTION.format(self.kind)

    def to_install(self, library: str) -> str:
        """Return how to install a library, which is given by its import name."""
        name = library.replace("_", "-")
        if name in _OTHERWISE.get(self.kind, ()):
            return f"install {name}: {self.remedy}"
        return _KINDS[self.kind][1].format(name, lower=name.lower())


def find_installation() -> Installation:
    """Find the kind of this installation, without importing a library."""
    # Their files tell where they come from.
    specs = map(PathFinder.find_spec, ("h5py", "netCDF4"))
    origins = [Path(spec.origin) for spec in specs if spec is not None and spec.origin]
    kind = kind_of(os.environ, Path(sys.prefix), Path(sys.base_prefix), origins)
    return Installation(kind, sys.prefix)


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
