"""A file that MPI-IO has open: the component that serves it, and the hints that it goes by."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pffbench.proc import mapped_files

if TYPE_CHECKING:
    from mpi4py import MPI

_DESCRIPTION_BYTES = 1024
# The names of a component as in Open MPI's description: the kind ("io") in a field of fixed
# length, three version numbers, and the name.
_IO_COMPONENT = re.compile(rb"\0io\0.{20,60}?((?:ompio|romio)[0-9]*)\0", re.DOTALL)
#: A hint that nobody knows: where it is told back, any is.
_NO_HINT = "pffbench_no_hint"
#: Libraries of Open MPI in which OMPIO looks hints up.
_OMPIO = re.compile(r"(?:libmca_common|mca_io)_ompio|mca_(?:fs|fcoll|fbtl|sharedfp)_")


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
    vendor, _ = mpi().get_vendor()
    if vendor != "Open MPI":
        return romio_inside(vendor)
    match = _IO_COMPONENT.search(_memory_at(_handle(file), _DESCRIPTION_BYTES))
    return match[1].decode() if match else None


def romio_inside(vendor: str) -> str | None:
    """Return the component of an MPI library that has only ROMIO; None for others."""
    known = ("MPICH", "Intel MPI", "MVAPICH", "Cray MPI", "Microsoft MPI")
    return "romio" if vendor.startswith(known) else None


def reads_overlaps_wrongly(environ: Mapping[str, str]) -> str | None:
    """Return the MPI library whose OMPIO may read overlapping boxes wrongly, or None.

    Seen in Open MPI 4.1.4: a collective read in which two ranks read the same bytes, each as a box
    of several axes, leaves some of them out. ROMIO inside Open MPI reads them.

    Parameters
    ----------
    environ : mapping
        Environment variables, which may select ROMIO.
    """
    if "mpi4py.MPI" not in sys.modules:  # of a plan: which library will run it is not known
        return None
    vendor, version = mpi().get_vendor()
    asked = environ.get("OMPI_MCA_io", "")
    if vendor != "Open MPI" or version[0] != 4 or asked == "^ompio" or asked.startswith("romio"):
        return None
    return f"{vendor} {'.'.join(map(str, version))}"


def hints_in_force(file: MPI.File) -> dict[str, str] | None:
    """Return all hints that an open file goes by, with their values.

    MPICH and its derivatives report them by ``MPI_File_get_info``. That of Open MPI repeats what
    the caller set, used or not, so ROMIO inside Open MPI is asked itself. OMPIO reports nothing,
    and what an unknown library returns may be a repetition too.

    Returns
    -------
    dict or None
        None where the library does not report them.
    """
    vendor, _ = mpi().get_vendor()
    if vendor != "Open MPI":
        return _read_and_free(file.Get_info()) if romio_inside(vendor) else None
    component = io_component(file) or ""
    call = _romio_call(component) if component.startswith("romio") else None
    if call is None:
        return None
    info = mpi().Info.Create()
    found = ctypes.c_void_p(_handle(info))
    # Of the releases of Open MPI, some fill this object in and some replace it.
    failed = call(_handle(file), ctypes.byref(found))
    if found.value == _handle(info):
        return None if failed else _read_and_free(info)
    info.Free()
    return (
        None
        if failed or not found.value
        else _read_and_free(_with_handle(mpi().Info(), found.value))
    )


def is_known_hint(name: str, path: str) -> bool | None:
    """Return whether OMPIO ever looks a hint up; None if that is not known.

    A name that is not in its libraries cannot be looked up. Where OMPIO has none of its own (Open
    MPI 5), the names of ROMIO's hints are in the same library, and the file is opened once more.
    """
    texts = _ompio_texts()
    return b"\0" + name.encode() + b"\0" in texts if texts else _is_looked_up(name, path)


def file_at(address: int) -> MPI.File:
    """Return the open file whose handle a library keeps at an address; it is not to be closed."""
    handle = ctypes.c_void_p.from_address(address).value
    file: MPI.File = _with_handle(mpi().File(), handle or 0)
    return file


def mpi() -> Any:
    """Return the MPI module of the caller's communicator."""
    return sys.modules["mpi4py.MPI"]


def _read_and_free(info: MPI.Info) -> dict[str, str]:
    """Return the contents of an info object, and free it."""
    found = {key: value.strip() for key, value in info.items()}
    info.Free()
    return found


def _romio_call(component: str) -> Any:
    """Return the function of ROMIO inside Open MPI that reports the hints of a file, or None."""
    for path in mapped_files():
        if f"mca_io_{component}." in path or "/libmpi." in path:
            call = getattr(ctypes.CDLL(path), f"mca_io_{component}_file_get_info", None)
            if call is not None:
                call.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]
                return call
    return None


def _is_looked_up(name: str, path: str) -> bool | None:
    """Open a file with a hint: Open MPI 5 returns the names looked up, until a view is set."""
    info = mpi().Info.Create({name: "1", _NO_HINT: "1"})
    try:
        file = mpi().File.Open(mpi().COMM_SELF, path, mpi().MODE_RDONLY, info)
    except mpi().Exception:
        return None
    finally:
        info.Free()
    try:
        told = _read_and_free(file.Get_info())
    finally:
        file.Close()
    return None if _NO_HINT in told else name in told


@cache
def _ompio_texts() -> bytes:
    """Return the contents of the libraries of OMPIO."""
    names = [path for path in mapped_files() if _OMPIO.match(path.rsplit("/", 1)[-1])]
    return b"\0".join(Path(path).read_bytes() for path in names)


def _handle(of: Any) -> int:
    """Return a C handle as a number; newer versions of mpi4py have a property for it."""
    return int(of.handle if hasattr(of, "handle") else mpi()._handleof(of))


def _with_handle(of: Any, handle: int) -> Any:
    """Give an object of mpi4py that has no handle this one."""
    ctypes.c_void_p.from_address(mpi()._addressof(of)).value = handle
    return of


def _memory_at(address: int, length: int) -> bytes:
    fd = os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(fd, length, address)
    except (OSError, OverflowError):
        return b""
    finally:
        os.close(fd)
