"""The MPI-IO implementation that serves a file, and its hints."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pffbench.provenance.facts import Facts

if TYPE_CHECKING:
    from mpi4py import MPI

_REQUEST = "OMPI_MCA_io"  # mpiexec --mca io NAME passes it to the ranks, too
_SHARED_POINTERS = "OMPI_MCA_sharedfp"
_PROBE = ".pffbench-mpiio-probe"
_DESCRIPTION_BYTES = 1024
# The names of a component as in Open MPI's description: the kind ("io") in a field of fixed
# length, three version numbers, and the name.
_IO_COMPONENT = re.compile(rb"\0io\0.{20,60}?((?:ompio|romio)[0-9]*)\0", re.DOTALL)


def mpi_io_facts(comm: MPI.Intracomm, directory: str | None = None) -> Facts:
    """Identify the MPI-IO implementation on a file system; collective over `comm`.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        Ranks that open the probe file; ``MPI.COMM_SELF`` on one rank is enough.
    directory : str, optional
        Directory of the files to be written. Open MPI selects by file system (ROMIO on Lustre,
        OMPIO elsewhere, unless configured), so an empty file is opened there and removed. If
        omitted, no file is opened and the component may stay unknown.

    Returns
    -------
    dict
        ``library`` and its ``library_version``, ``component`` (``ompio``, ``romio321``, ``romio``
        …, None if unknown), ``found_by`` (how it was found), ``requested`` (the value of
        ``OMPI_MCA_io``, if any), ``hints`` (of the probe, opened without any hints) and
        ``hints_complete`` (False for Open MPI, which shows only the hints set by the caller).
        If the probe fails, ``error`` holds the reason.
    """
    vendor, version = _mpi().get_vendor()
    facts: Facts = {
        "library": vendor,
        "library_version": ".".join(str(part) for part in version),
        "requested": os.environ.get(_REQUEST),
        "hints_complete": vendor != "Open MPI",
        **_presumed(vendor, os.environ),
    }
    if directory is not None:
        facts.update(_probed(comm, directory))
    return facts


def longest_path(environ: Mapping[str, str], ranks: int) -> int | None:
    """Return the maximum path length in bytes of a file opened by MPI-IO, if limited.

    To check whether files can be locked, Open MPI (component sharedfp/lockedfile) creates a file
    next to each one. It builds the name in a buffer of 256 bytes and aborts if that is too small.

    Parameters
    ----------
    environ : mapping
        Environment variables, which may select other components.
    ranks : int
        Number of ranks that open the file; each appends its number to the name.

    Returns
    -------
    int or None
        None if only the system limits paths.
    """
    if "mpi4py.MPI" not in sys.modules:  # the only process of a run without MPI
        return None
    vendor, _ = _mpi().get_vendor()
    if vendor != "Open MPI" or environ.get(_REQUEST, "").startswith("romio"):
        return None
    asked = environ.get(_SHARED_POINTERS, "^")
    chosen = ("lockedfile" in asked.lstrip("^").split(",")) != asked.startswith("^")
    return 255 - len(f".locktest.{ranks - 1}") if chosen else None


def io_component(file: MPI.File) -> str | None:
    """Identify the MPI-IO component that serves an open file.

    MPI has no call for this. In Open MPI a file handle is the address of an object that contains
    a copy of the selected component's description, with its name (``ompio``, ``romio321``). It is
    read through /proc/self/mem, so that a wrong guess is an error and not a crash. All other MPI
    libraries in use today include ROMIO.

    Returns
    -------
    str or None
        None if it cannot be determined.
    """
    vendor, _ = _mpi().get_vendor()
    if vendor != "Open MPI":
        return _romio_inside(vendor)
    match = _IO_COMPONENT.search(_memory_at(_handle(file), _DESCRIPTION_BYTES))
    return match[1].decode() if match else None


def hints_of(file: MPI.File) -> dict[str, str]:
    """Return all hints of an open file as the MPI library reports them.

    Open MPI reports the hints set by the caller, used or not, and none of its own; MPICH and its
    derivatives report every hint with the value in force.
    """
    info = file.Get_info()
    try:
        return dict(info.items())
    finally:
        info.Free()


def _probed(comm: MPI.Intracomm, directory: str) -> Facts:
    mpi = _mpi()
    mode = mpi.MODE_CREATE | mpi.MODE_RDWR | mpi.MODE_DELETE_ON_CLOSE
    longest = longest_path(os.environ, comm.size)
    if longest is not None and len(os.fsencode(directory)) + 1 + len(_PROBE) > longest:
        return {"error": f"the probe has no path of at most {longest} bytes"}
    try:
        file = mpi.File.Open(comm, str(Path(directory) / _PROBE), mode)
    except mpi.Exception as error:
        return {"error": f"the probe could not be opened: {error.Get_error_string()}"}
    try:
        facts: Facts = {"hints": dict(hints_of(file))}
        component = io_component(file)
    finally:
        file.Close()
    if component is not None:
        facts.update(component=component, found_by="open file")
    return facts


def _presumed(vendor: str, environ: Mapping[str, str]) -> Facts:
    if vendor != "Open MPI":
        component = _romio_inside(vendor)
        return {"component": component, "found_by": component and "library"}
    requested = environ.get(_REQUEST, "")
    if re.fullmatch(r"\w+", requested):
        return {"component": requested, "found_by": _REQUEST}
    return {"component": None, "found_by": None}


def _romio_inside(vendor: str) -> str | None:
    known = ("MPICH", "Intel MPI", "MVAPICH", "Cray MPI", "Microsoft MPI")
    return "romio" if vendor.startswith(known) else None


def _handle(file: MPI.File) -> int:
    """Return the C handle as a number; newer versions of mpi4py have a property for it."""
    return int(file.handle if hasattr(file, "handle") else _mpi()._handleof(file))


def _memory_at(address: int, length: int) -> bytes:
    fd = os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(fd, length, address)
    except (OSError, OverflowError):
        return b""
    finally:
        os.close(fd)


def _mpi() -> Any:
    """Return the MPI module of the caller's communicator."""
    return sys.modules["mpi4py.MPI"]
