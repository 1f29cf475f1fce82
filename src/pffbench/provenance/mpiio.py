"""The MPI-IO implementation that serves a file, and its hints."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pffbench.mpi import open_file
from pffbench.provenance.facts import Facts

if TYPE_CHECKING:
    from mpi4py import MPI

_REQUEST = "OMPI_MCA_io"  # mpiexec --mca io NAME passes it to the ranks, too
_SHARED_POINTERS = "OMPI_MCA_sharedfp"
_PROBE = ".pffbench-mpiio-probe"


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
        ``OMPI_MCA_io``, if any), ``hints`` (those that the probe goes by, opened without any) and
        ``hints_complete`` (False where the component does not report them: OMPIO).
        If the probe fails, ``error`` holds the reason.
    """
    vendor, version = open_file.mpi().get_vendor()
    facts: Facts = {
        "library": vendor,
        "library_version": ".".join(str(part) for part in version),
        "requested": os.environ.get(_REQUEST),
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
    vendor, _ = open_file.mpi().get_vendor()
    if vendor != "Open MPI" or environ.get(_REQUEST, "").startswith("romio"):
        return None
    asked = environ.get(_SHARED_POINTERS, "^")
    chosen = ("lockedfile" in asked.lstrip("^").split(",")) != asked.startswith("^")
    return 255 - len(f".locktest.{ranks - 1}") if chosen else None


def _probed(comm: MPI.Intracomm, directory: str) -> Facts:
    mpi = open_file.mpi()
    mode = mpi.MODE_CREATE | mpi.MODE_RDWR | mpi.MODE_DELETE_ON_CLOSE
    longest = longest_path(os.environ, comm.size)
    if longest is not None and len(os.fsencode(directory)) + 1 + len(_PROBE) > longest:
        return {"error": f"the probe has no path of at most {longest} bytes"}
    try:
        file = mpi.File.Open(comm, str(Path(directory) / _PROBE), mode)
    except mpi.Exception as error:
        return {"error": f"the probe could not be opened: {error.Get_error_string()}"}
    try:
        component = open_file.io_component(file)
        hints = open_file.hints_in_force(file)
        facts: Facts = {"hints": dict(hints or {}), "hints_complete": hints is not None}
    finally:
        file.Close()
    if component is not None:
        facts.update(component=component, found_by="open file")
    return facts


def _presumed(vendor: str, environ: Mapping[str, str]) -> Facts:
    if vendor != "Open MPI":
        component = open_file.romio_inside(vendor)
        return {"component": component, "found_by": component and "library"}
    requested = environ.get(_REQUEST, "")
    if re.fullmatch(r"\w+", requested):
        return {"component": requested, "found_by": _REQUEST}
    return {"component": None, "found_by": None}
