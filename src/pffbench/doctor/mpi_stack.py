"""The launcher, the MPI library and HDF5, and whether they match."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from pffbench.backends.shared_files import built_for_mpi, extension_modules, mentions
from pffbench.doctor.finding import Finding, Findings, ok, problem, unknown, warning
from pffbench.doctor.libraries import Version, numbers
from pffbench.doctor.subject import Subject
from pffbench.job.launcher import launcher_size
from pffbench.text import counted
from pffbench.tools import run_tool

#: The first Open MPI whose OMPIO has the correction of data sieving.
_OMPIO_CORRECTED = (4, 1, 7)
#: The first MPICH whose ROMIO takes apart datatypes made for large counts.
_ROMIO_CORRECTED = (4, 1)
#: What MPICH and its descendants say of how they were compiled, pages of it.
_COMPILED = re.compile(r"\S+ (configure|CC|CXX|F77|FC|Custom Information):")


def check_mpi(subject: Subject) -> Findings:
    """Which MPI, and one in the process."""
    facts = subject.libraries["mpi4py"]
    if subject.no_mpi:
        yield unknown(f"MPI library, MPI-IO and launcher: {subject.no_mpi}")
        return
    lines = str(facts.get("mpi_library", "")).splitlines()
    text = " ".join(" ".join(line.split()) for line in lines if not _COMPILED.match(line))
    standard, level = facts.get("mpi_standard"), facts.get("thread_level")
    yield ok(f"{text}; MPI standard {standard}; thread level {level}")
    paths = subject.mapped("libmpi")
    if len(paths) > 1:  # each of them knows of its own ranks only
        yield problem(
            f"{len(paths)} different MPI libraries in one process: {', '.join(paths)}",
            "install mpi4py, h5py and netCDF4 for one MPI (`MPICC=… make env` in a checkout does), "
            "and load no module of another",
        )


def check_mpi_io(subject: Subject) -> Findings:
    """Which MPI-IO the scratch directory has, its hints and its known defects."""
    facts = subject.mpi_io
    if facts is None:
        return
    if "error" in facts:
        text = f"MPI-IO cannot open a file in the scratch directory: {facts['error']}"
        yield problem(text, "choose another scratch directory or MPI library")
        return
    component, version = facts.get("component"), str(facts.get("library_version"))
    if component is None:
        text = f"MPI-IO is that of {facts.get('library')}; its component cannot be told"
        yield unknown(text)
    else:
        asked = " (asked for by OMPI_MCA_io)" if facts.get("requested") else ""
        yield ok(f"MPI-IO component: {component}{asked}; {_hints(facts)}")
    if component == "ompio":
        yield from _judge_ompio(numbers(version))
    if facts.get("library") == "MPICH" and (4, 0) <= numbers(version) < _ROMIO_CORRECTED:
        yield from _judge_views(version)


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


def _judge_views(version: str) -> Findings:
    """Warn of an mpi4py that was compiled to make datatypes for large counts (MPI 4)."""
    if mentions(extension_modules("mpi4py"), b"MPI_Type_create_subarray_c"):
        yield warning(
            f"MPICH {version} ends a program that sets a view of a file which is not contiguous, "
            "with the datatypes of this mpi4py (pmodels/mpich#6121): cases of mpiio that need a "
            "view do not run; HDF5 and netCDF do",
            "use MPICH 4.1 or newer, or compile mpi4py with setup/mpi4py_compat.h of the checkout, "
            "as `MPICC=… make env` does",
        )


def _hints(facts: Mapping[str, Any]) -> str:
    hints = facts.get("hints")
    if not isinstance(hints, dict) or not hints:
        return "it shows no hints"
    return "hints: " + ", ".join(f"{name}={value}" for name, value in hints.items())


_SECONDS = 10.0
#: Older versions of Slurm print the list to standard error. The reason of a failure comes last.
_LIST = 'said=$(srun --mpi=list 2>&1) && echo "$said" || { echo "$said" | tail -n 1 >&2; exit 1; }'


def check_launcher(subject: Subject) -> Findings:
    """How many ranks were started, and which kinds of MPI srun can start."""
    claim, ranks = launcher_size(subject.environ), counted(len(subject.ranks), "rank")
    if not subject.no_mpi:
        yield ok(f"{ranks}, as {claim[1]} says" if claim else ranks)
    if shutil.which("srun") is None:
        return
    answer = run_tool(["sh", "-c", _LIST], _SECONDS)
    if answer.ok:
        yield judge_slurm_types(mpi_types(answer.text), subject.vendor)
    else:
        reason = answer.text.removeprefix("unknown: sh ")
        yield unknown(f"kinds of MPI that srun can start: it {reason}")


def judge_slurm_types(types: Sequence[str], vendor: str) -> Finding:
    """Report which kinds of MPI ``srun`` can start.

    Parameters
    ----------
    types : sequence of str
        Names from ``srun --mpi=list``.
    vendor : str
        Name of the MPI library; empty if it is not known.
    """
    text = f"srun --mpi knows: {', '.join(types) or 'nothing'}"
    if vendor == "Open MPI" and not any(kind.startswith("pmix") for kind in types):
        return warning(
            f"{text}; Open MPI needs pmix, unless it is an older one that was built for pmi2: srun "
            "would start separate programs of 1 rank",
            "use mpiexec inside the allocation",
        )
    return ok(text)


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


_FILTERED_PARALLEL = (1, 10, 2)


def check_hdf5(subject: Subject) -> Findings:
    """One HDF5 in the process, and what it can do."""
    h5py, netcdf4 = subject.libraries["h5py"], subject.libraries["netCDF4"]
    if not h5py["imported"] or "h5py" in subject.errors:
        return
    version, paths = str(h5py["hdf5"]), subject.mapped("libhdf5")
    if netcdf4["imported"]:
        yield _judge_copies(subject, paths, version, str(netcdf4["hdf5"]))
    at_build = str(h5py["hdf5_at_build"])
    if numbers(version)[:2] != numbers(at_build)[:2]:
        text = f"h5py was compiled for HDF5 {at_build} and runs with {version}"
        yield warning(text, f"install it again: {subject.installation.to_install('h5py')}")
    if built_for_mpi("h5py"):
        yield judge_parallel_hdf5(version)


def _judge_copies(subject: Subject, paths: Sequence[str], h5py: str, netcdf4: str) -> Finding:
    """Judge whether h5py and netCDF4 use the same HDF5.

    Two copies share the names of their functions, and the copy that was loaded first is called
    with the other's data: such a process may work for hours and then write wrong bytes. Only the
    copies in wheels are kept apart: they have names of their own and are loaded privately.

    Parameters
    ----------
    subject : Subject
        Names the installation for which the remedy is.
    paths : sequence of str
        Files of ``libhdf5`` in the process.
    h5py, netcdf4 : str
        Versions of HDF5 that the two report.
    """
    if len(paths) > 1 and all(".libs/" in path for path in paths):
        return ok(f"h5py and netCDF4 are wheels with an HDF5 each ({h5py}, {netcdf4}), kept apart")
    remedy = f"have one HDF5 for both: {subject.installation.remedy}"
    differ = f"h5py uses HDF5 {h5py}, netCDF4 uses HDF5 {netcdf4}"
    if len(paths) > 1:
        text = f"{len(paths)} different copies of HDF5 in one process: {', '.join(paths)}"
        return problem(text, remedy, consequences=(differ,) if h5py != netcdf4 else ())
    if h5py != netcdf4:
        return problem(differ, remedy)
    if not paths:
        text = "no shared HDF5 library is seen in the process: h5py and netCDF4 may bring one each"
        return unknown(text)
    return ok(f"h5py and netCDF4 share {paths[0]}")


def judge_parallel_hdf5(version: str) -> Finding:
    """Report whether an HDF5 that was built for MPI writes compressed data in parallel."""
    if numbers(version) >= _FILTERED_PARALLEL:
        return ok(f"HDF5 {version} writes compressed data in parallel")
    return warning(
        f"HDF5 {version} cannot write compressed data in parallel (1.10.2 and later can)",
        "leave compression out of shared files, or use a newer HDF5",
    )
