"""Versions and build options of the software in use.

Only libraries that the run has imported are queried: another import would delay every start and
could load a second HDF5 into the process.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType

import pffbench
from pffbench.proc import files_defining, mapped_files
from pffbench.provenance.facts import Fact, Facts
from pffbench.version import origin

_LOADED = re.compile(r"/lib(hdf5|netcdf|pnetcdf|blosc2?|sz|zstd)(?=[-_.])[^/]*\.so[^/]*$")
# Installed with its library.
_COMPANION = re.compile(r"/lib[^/]*_(hl|cxx|cpp|fortran)[-_.]")
_SPACK_PREFIX = re.compile(r"-([a-z0-9]{32})$")


def software_facts(modules: Iterable[str]) -> Facts:
    """Describe Python, pffbench, numpy and the given libraries.

    Parameters
    ----------
    modules : iterable of str
        Import names, such as ``h5py``.

    Returns
    -------
    dict
        ``python``, ``pffbench`` (with the git commit where it is known, and whether files of a
        checkout differ from it),
        ``libraries`` (by name: ``version``, ``imported``, and for imported ones ``path``,
        ``spack_hash`` and build options) and ``loaded`` (the files of the C libraries mapped into
        the process; there should be one of each kind).
    """
    names, code = dict.fromkeys(["numpy", *modules]), origin()
    return {
        "python": {
            "version": platform.python_version(),
            "implementation": platform.python_implementation(),
            "compiler": platform.python_compiler(),
            "executable": sys.executable,
        },
        "pffbench": {
            "version": pffbench.__version__,
            "commit": code.commit,
            "dirty": code.dirty,
        },
        "libraries": {name: _library(name) for name in names},
        "loaded": loaded_libraries(),
    }


def loaded_libraries() -> Facts:
    """Find the files of the HDF5, netCDF, MPI and codec libraries mapped into this process.

    Libraries linked statically and those in a wheel under another name are not found. An MPI
    library is one under any name.
    """
    found: dict[str, set[str]] = {}
    for path in mapped_files():
        match = _LOADED.search(path)
        if match and not _COMPANION.search(path):
            found.setdefault("lib" + match[1], set()).add(path)
    if mpi := files_defining("MPI_Get_library_version"):
        found["libmpi"] = set(mpi)
    return {name: list[Fact](sorted(found[name])) for name in sorted(found)}


def spack_hash(path: Path) -> str | None:
    """Return the hash of the Spack package that a file belongs to; None outside of Spack.

    Spack keeps a ``.spack`` directory in the prefix of each package and, by default, ends the
    prefix with the hash. Views work too, because their files are links.
    """
    for prefix in path.resolve().parents:
        match = _SPACK_PREFIX.search(prefix.name)
        if match and (prefix / ".spack").is_dir():
            return match[1]
    return None


def _library(name: str) -> Fact:
    module = sys.modules.get(name)
    if module is None:
        return {"version": _installed_version(name), "imported": False}
    facts: Facts = {
        "version": getattr(module, "__version__", None) or _installed_version(name),
        "imported": True,
        "path": module.__file__,
        "spack_hash": spack_hash(Path(module.__file__)) if module.__file__ else None,
    }
    if name in _BUILT_WITH:
        try:
            facts.update(_BUILT_WITH[name](module))
        except Exception as error:  # noqa: BLE001 - a missing fact stops no run
            facts["error"] = f"{type(error).__name__}: {error}"
    return facts


def _installed_version(name: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _mpi4py(_module: ModuleType) -> Facts:
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None:
        return {}
    levels = ("SINGLE", "FUNNELED", "SERIALIZED", "MULTIPLE")
    by_number = {getattr(mpi, f"THREAD_{name}"): name for name in levels}
    thread_level = by_number.get(mpi.Query_thread()) if mpi.Is_initialized() else None
    return {
        "mpi_library": mpi.Get_library_version().rstrip("\0\n"),
        "mpi_standard": ".".join(str(part) for part in mpi.Get_version()),
        "thread_level": thread_level,
    }


def _h5py(module: ModuleType) -> Facts:
    config = module.get_config()
    return {
        "hdf5": module.version.hdf5_version,
        "hdf5_at_build": ".".join(str(part) for part in module.version.hdf5_built_version_tuple),
        "mpi": bool(config.mpi),
        "direct_vfd": bool(getattr(config, "direct_vfd", False)),
        "file_locking": os.environ.get("HDF5_USE_FILE_LOCKING", "library default"),
    }


def _netcdf4(module: ModuleType) -> Facts:
    features = ("parallel4", "pnetcdf", "szip", "zstandard", "bzip2", "blosc", "quantization")
    return {
        "netcdf_c": module.__netcdf4libversion__,
        "hdf5": module.__hdf5libversion__,
        **{name: bool(getattr(module, f"__has_{name}_support__", False)) for name in features},
    }


def _zarr(module: ModuleType) -> Facts:
    config = getattr(module, "config", None)
    if config is None:  # zarr-python 2
        return {}
    return {
        "codec_pipeline": config.get("codec_pipeline.path", None),
        "concurrency": config.get("async.concurrency", None),
        "max_workers": config.get("threading.max_workers", None),
    }


def _numcodecs(_module: ModuleType) -> Facts:
    blosc = sys.modules.get("numcodecs.blosc")
    return {
        "blosc": getattr(blosc, "VERSION_STRING", None),
        "blosc_threads": blosc.get_nthreads() if blosc is not None else None,
    }


_BUILT_WITH: dict[str, Callable[[ModuleType], Facts]] = {
    "mpi4py": _mpi4py,
    "h5py": _h5py,
    "netCDF4": _netcdf4,
    "zarr": _zarr,
    "numcodecs": _numcodecs,
}
