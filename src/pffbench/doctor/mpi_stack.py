"""The launcher, the MPI library and HDF5, and whether they match."""

from __future__ import annotations

import ctypes
import re
import shutil
from collections.abc import Mapping, Sequence

from pffbench.doctor.finding import Finding, Findings, absent, ok, problem, unknown, warning
from pffbench.doctor.installation import Installation
from pffbench.doctor.libraries import Library, Version, numbers
from pffbench.provenance.facts import Fact
from pffbench.text import counted
from pffbench.tools import run_tool

MPI_TOPIC = "MPI"
#: The first Open MPI whose OMPIO has the correction of data sieving.
_OMPIO_CORRECTED = (4, 1, 7)
#: The first MPICH whose ROMIO takes apart datatypes made for large counts.
_ROMIO_CORRECTED = (4, 1)
_YIELD = "OMPI_MCA_mpi_yield_when_idle"
#: What MPICH and its descendants say of how they were compiled, pages of it.
_COMPILED = re.compile(r"\S+ (configure|CC|CXX|F77|FC|Custom Information):")


def judge_library(facts: Mapping[str, Fact]) -> Findings:
    """Report the MPI library.

    Parameters
    ----------
    facts : mapping
        ``mpi_library``, ``mpi_standard`` and ``thread_level`` as `software_facts` gives them.
    """
    lines = str(facts.get("mpi_library", "")).splitlines()
    text = " ".join(" ".join(line.split()) for line in lines if not _COMPILED.match(line))
    standard, level = facts.get("mpi_standard"), facts.get("thread_level")
    yield ok(f"{text}; MPI standard {standard}; thread level {level}")


def judge_mpi_copies(paths: Sequence[str]) -> Findings:
    """Report several MPI libraries in this process, of which each knows of its own ranks only.

    Parameters
    ----------
    paths : sequence of str
        Files of MPI libraries mapped into the process.
    """
    if len(paths) > 1:
        yield problem(
            f"{len(paths)} different MPI libraries in one process: {', '.join(paths)}",
            "install mpi4py, h5py and netCDF4 for one MPI (`MPICC=… make env` in a checkout does), "
            "and load no module of another",
        )


def judge_mpi_io(facts: Mapping[str, Fact]) -> Findings:
    """Report the MPI-IO implementation for the scratch directory, and its known defects.

    Parameters
    ----------
    facts : mapping
        Result of `mpi_io_facts`.
    """
    if "error" in facts:
        text = f"MPI-IO cannot open a file in the scratch directory: {facts['error']}"
        yield problem(text, "choose another scratch directory or MPI library")
        return
    component = facts.get("component")
    if component is None:
        text = f"MPI-IO is that of {facts.get('library')}; its component cannot be told"
        yield unknown(text)
    else:
        asked = " (asked for by OMPI_MCA_io)" if facts.get("requested") else ""
        yield ok(f"MPI-IO component: {component}{asked}; {_hints(facts)}")
    version = numbers(str(facts.get("library_version")))
    if component == "ompio":
        yield from _judge_ompio(version)


def _judge_ompio(version: Version) -> Findings:
    remedy = "export OMPI_MCA_io=romio321 to use ROMIO, often faster in collective transfers too"
    if version < _OMPIO_CORRECTED:
        text = (
            "OMPIO before Open MPI 4.1.7 lacks a correction of data sieving: strided transfers may "
            "get bytes wrong; pffbench verifies every byte and says so when that happens"
        )
        yield warning(text, remedy)
    if version[:1] == (4,):
        text = (
            "OMPIO of Open MPI 4 leaves out bytes that ranks read collectively from overlapping "
            "boxes: netCDF-4 with collective transfer and a map with overlaps is refused here"
        )
        yield warning(text, remedy)


def judge_views(vendor: str, version: str, *, large_counts: bool) -> Findings:
    """Report whether mpi4py can set views of files that are not contiguous.

    Parameters
    ----------
    vendor, version : str
        Of the MPI library.
    large_counts : bool
        Whether mpi4py was compiled to make datatypes for large counts (MPI 4).
    """
    if vendor == "MPICH" and (4, 0) <= numbers(version) < _ROMIO_CORRECTED and large_counts:
        yield warning(
            f"MPICH {version} ends a program that sets a view of a file which is not contiguous, "
            "with the datatypes of this mpi4py (pmodels/mpich#6121): cases of mpiio that need a "
            "view do not run; HDF5 and netCDF do",
            "use MPICH 4.1 or newer, or compile mpi4py with setup/mpi4py_compat.h of the checkout, "
            "as `MPICC=… make env` does",
        )


def judge_cores(ranks: int, cpus: int, environ: Mapping[str, str], vendor: str) -> Findings:
    """Report whether the ranks of a node have a core each.

    Parameters
    ----------
    ranks, cpus : int
        Ranks on the node, and cores that they may run on together.
    environ : mapping
        Environment of the ranks.
    vendor : str
        Name of the MPI library.
    """
    if ranks <= cpus:
        return
    text = f"{ranks} ranks share {counted(cpus, 'core')}: times say little"
    remedy = "start no more ranks than cores, or take the times as a test of function only"
    if vendor == "Open MPI":
        value = environ.get(_YIELD)
        text += f"; {_YIELD} is {'not set' if value is None else value}"
        if value != "1":
            remedy += f"; export {_YIELD}=1, so that waiting ranks give up their core"
    yield warning(text, remedy)


def _hints(facts: Mapping[str, Fact]) -> str:
    hints = facts.get("hints")
    if not isinstance(hints, dict) or not hints:
        return "it shows no hints"
    return "hints: " + ", ".join(f"{name}={value}" for name, value in hints.items())


LAUNCHER = "Launcher"
_SECONDS = 10.0
#: Older versions of Slurm print the list to standard error. The reason of a failure comes last.
_LIST = 'said=$(srun --mpi=list 2>&1) && echo "$said" || { echo "$said" | tail -n 1 >&2; exit 1; }'


def judge_launcher(claim: tuple[int, str] | None, size: int, vendor: str) -> Finding:
    """Report whether MPI has as many ranks as the launcher started.

    Parameters
    ----------
    claim : tuple of int and str, or None
        The launcher's number and its source, from `launcher_size`.
    size : int
        Number of ranks in MPI.
    vendor : str
        Name of the MPI library.
    """
    ranks = counted(size, "rank")
    if claim is None:
        if size == 1:
            return ok("started alone: 1 rank")
        return ok(f"{ranks}; the launcher leaves no number to compare with")
    number, variable = claim
    if number == size:
        return ok(f"{ranks}, as {variable} says")
    return problem(
        f"the launcher started {number} processes ({variable}={number}) but MPI knows of {size}: "
        "launcher and MPI library do not belong together",
        _remedy(variable, vendor),
    )


def judge_slurm_types(types: Sequence[str], vendor: str | None) -> Finding:
    """Report which kinds of MPI ``srun`` can start.

    Parameters
    ----------
    types : sequence of str
        Names from ``srun --mpi=list``.
    vendor : str or None
        Name of the MPI library, when it is known.
    """
    text = f"srun --mpi knows: {', '.join(types) or 'nothing'}"
    if vendor == "Open MPI" and not any(kind.startswith("pmix") for kind in types):
        return warning(
            f"{text}; Open MPI needs pmix, unless it is an older one that was built for pmi2: srun "
            "would start separate programs of 1 rank",
            "use mpiexec inside the allocation",
        )
    return ok(text)


def look_at_slurm(vendor: str | None) -> Findings:
    """Query ``srun`` for the kinds of MPI it can start; nothing where there is no Slurm."""
    if shutil.which("srun") is None:
        return
    answer = run_tool(["sh", "-c", _LIST], _SECONDS)
    if answer.ok:
        yield judge_slurm_types(mpi_types(answer.text), vendor)
    else:
        reason = answer.text.removeprefix("unknown: sh ")
        yield unknown(f"kinds of MPI that srun can start: it {reason}")


def mpi_types(text: str) -> list[str]:
    """Extract the names from the output of ``srun --mpi=list``."""
    names = []
    for line in text.splitlines():
        words = line.strip().removeprefix("srun:").strip()
        if re.fullmatch(r"[a-z][a-z0-9_/]*", words):
            names.append(words)
        elif words.startswith("specific pmix plugin versions available:"):
            names += words.partition(":")[2].replace(",", " ").split()
    return list(dict.fromkeys(names))


def _remedy(variable: str, vendor: str) -> str:
    if variable.startswith("SLURM_"):
        kind = "pmix" if vendor == "Open MPI" else "pmi2 or cray_shasta"
        return f"start with srun --mpi={kind}, or with the mpiexec of {vendor}"
    return f"start with the mpiexec of {vendor}, the MPI that mpi4py loads (or srun --mpi=pmix)"


HDF5_TOPIC = "HDF5"
_FILTERED_PARALLEL = (1, 10, 2)
_LARGE_CALLS = (1, 12, 3)


def judge_copies(
    paths: Sequence[str], h5py: str, netcdf4: str, installation: Installation
) -> Findings:
    """Report whether h5py and netCDF4 use the same HDF5.

    Two copies share the names of their functions, and the copy that was loaded first is called
    with the other's data: such a process may work for hours and then write wrong bytes. Only the
    copies in wheels are kept apart: they have names of their own and are loaded privately.

    Parameters
    ----------
    paths : sequence of str
        Files of ``libhdf5`` mapped into the process.
    h5py, netcdf4 : str
        Versions of HDF5 that the two report.
    installation : Installation
        Where the remedy is to work.
    """
    if len(paths) > 1 and all(".libs/" in path for path in paths):
        text = f"h5py and netCDF4 are wheels with an HDF5 each ({h5py}, {netcdf4}), kept apart"
        yield ok(text)
        return
    remedy = f"have one HDF5 for both: {installation.remedy}"
    if len(paths) > 1:
        text = f"{len(paths)} different copies of HDF5 in one process: {', '.join(paths)}"
        yield problem(text, remedy, name="copies of HDF5")
    if h5py != netcdf4:
        text = f"h5py uses HDF5 {h5py}, netCDF4 uses HDF5 {netcdf4}"
        yield problem(text, remedy, because="copies of HDF5")
    elif not paths:
        text = "no shared HDF5 library is seen in the process: h5py and netCDF4 may bring one each"
        yield unknown(text)
    elif len(paths) == 1:
        yield ok(f"h5py and netCDF4 share {paths[0]}")


def judge_parallel_hdf5(version: str, subfiling: bool | None) -> Findings:
    """Report the abilities and defects of an HDF5 that was built for MPI.

    Parameters
    ----------
    version : str
        The version in use.
    subfiling : bool or None
        Whether the library has the subfiling driver; None when it could not be checked.
    """
    if numbers(version) >= _FILTERED_PARALLEL:
        yield ok(f"HDF5 {version} writes compressed data in parallel")
    else:
        yield warning(
            f"HDF5 {version} cannot write compressed data in parallel (1.10.2 and later can)",
            "leave compression out of shared files, or use a newer HDF5",
        )
    if numbers(version) < _LARGE_CALLS:
        text = "calls that move 2 GiB or more need HDF5 1.12.3; pffbench splits them"
        yield ok(text)
    if subfiling:
        yield ok("subfiling: available")
    elif subfiling is not None:
        text = "subfiling: not in this build (1.14 or later brings it, on demand)"
        yield absent(text)


def look_at_hdf5(
    h5py: Library,
    netcdf4: Library,
    paths: Sequence[str],
    installation: Installation,
) -> Findings:
    """Check the HDF5 in this process; a library that cannot be imported is skipped.

    Parameters
    ----------
    h5py, netcdf4 : Library
        The two libraries that bring HDF5.
    paths : sequence of str
        Files of ``libhdf5`` mapped into the process.
    installation : Installation
        Where the remedies are to work.
    """
    if h5py.error:
        return
    version = str(h5py.facts.get("hdf5"))
    if not netcdf4.error:
        yield from judge_copies(paths, version, str(netcdf4.facts.get("hdf5")), installation)
    at_build = str(h5py.facts.get("hdf5_at_build", version))
    if numbers(version)[:2] != numbers(at_build)[:2]:
        text = f"h5py was compiled for HDF5 {at_build} and runs with {version}"
        remedy = f"install it again: {installation.to_install('h5py')}"
        yield warning(text, remedy)
    if h5py.parallel:
        yield from judge_parallel_hdf5(version, has_subfiling(paths))


def has_subfiling(paths: Sequence[str]) -> bool | None:
    """Whether the loaded HDF5 has the subfiling driver; None when there is not just one copy."""
    if len(paths) != 1:
        return None
    return hasattr(ctypes.CDLL(paths[0]), "H5Pset_fapl_subfiling")
