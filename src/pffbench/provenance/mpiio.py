"""Which MPI-IO implementation serves a file, and with which hints."""

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

_REQUEST = "OMPI_MCA_io"  # how mpiexec --mca io NAME reaches the ranks, too
_SHARED_POINTERS = "OMPI_MCA_sharedfp"
_PROBE = ".pffbench-mpiio-probe"
_DESCRIPTION_BYTES = 1024
# The names of a component as Open MPI writes them into its description: the kind ("io") in a
# field of fixed length, three version numbers, and the name.
_IO_COMPONENT = re.compile(rb"\0io\0.{20,60}?((?:ompio|romio)[0-9]*)\0", re.DOTALL)


def mpi_io_facts(comm: MPI.Intracomm, directory: str | None = None) -> Facts:
    """Find what serves MPI-IO on a file system; collective over `comm`.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        Who opens the probe; ``MPI.COMM_SELF`` on one rank is enough.
    directory : str, optional
        Where files will be written. Open MPI chooses by the file system (ROMIO on Lustre, OMPIO
        elsewhere, unless told otherwise), so an empty file is opened there and removed. Without
        it nothing is opened and the component may stay unknown.

    Returns
    -------
    dict
        ``library`` and its ``library_version``, ``component`` (``ompio``, ``romio321``, ``romio``
        …, None where unknown), ``found_by`` (how it was found), ``requested`` (what
        ``OMPI_MCA_io`` asks for, if anything), ``hints`` (of the probe, opened without any hints)
        and ``hints_complete`` (False for Open MPI, which shows only the hints that a caller set).
        When the probe fails, ``error`` says why.
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
    """Return how many bytes the path of a file may have that MPI-IO is to open, if few.

    Open MPI looks whether files can be locked (its component sharedfp/lockedfile) by a file beside
    each one, whose name it puts together in 256 bytes, and aborts where that is too little.

    Parameters
    ----------
    environ : mapping
        The environment, which may choose other components.
    ranks : int
        How many open the file; each puts its number behind the name.

    Returns
    -------
    int or None
        None where only the system limits paths.
    """
    vendor, _ = _mpi().get_vendor()
    if vendor != "Open MPI" or environ.get(_REQUEST, "").startswith("romio"):
        return None
    asked = environ.get(_SHARED_POINTERS, "^")
    chosen = ("lockedfile" in asked.lstrip("^").split(",")) != asked.startswith("^")
    return 255 - len(f".locktest.{ranks - 1}") if chosen else None


def io_component(file: MPI.File) -> str | None:
    """Find which MPI-IO component serves an open file.

    MPI has no call for this. In Open MPI a file handle is the address of an object that holds a
    copy of the selected component's description, which names it (``ompio``, ``romio321``); that
    is looked up there, through /proc/self/mem so that a wrong guess is an error and no crash.
    Everything else that is in use today has ROMIO built in.

    Returns
    -------
    str or None
        None when it cannot be told.
    """
    vendor, _ = _mpi().get_vendor()
    if vendor != "Open MPI":
        return _romio_inside(vendor)
    match = _IO_COMPONENT.search(_memory_at(_handle(file), _DESCRIPTION_BYTES))
    return match[1].decode() if match else None


def hints_of(file: MPI.File) -> dict[str, str]:
    """Return all hints of an open file as the MPI library shows them.

    Open MPI shows those that the caller set, heeded or not, and none of its own choices; MPICH
    and its relatives show every hint with the value in force.
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
    """Return the MPI module that the caller has a communicator of."""
    return sys.modules["mpi4py.MPI"]
