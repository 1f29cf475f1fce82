"""Bindings to HDF5 C functions that h5py does not offer.

They are called in the library that h5py has loaded, found in the process's memory map: loading by
name could load a second HDF5.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterable
from functools import cache

from pffbench.backends.hints import (
    FileHints,
    HasHints,
    asked_hints,
    hints_without_file,
    read_hints,
)
from pffbench.mpi.open_file import file_at
from pffbench.proc import mapped_files

# H5D_mpio_actual_io_mode_t of H5Dpublic.h
_IO_MODES = {
    0: "independent",
    1: "chunk independent",
    2: "chunk collective",
    3: "chunk mixed",
    4: "contiguous collective",
}
# H5D_mpio_no_collective_cause_t of H5Dpublic.h
_CAUSES = {
    0x01: "independent I/O was asked for",
    0x02: "data type conversion",
    0x04: "data transforms",
    0x08: "MPI types were switched off",
    0x10: "not simple or scalar data spaces",
    0x20: "neither contiguous nor chunked",
    0x40: "filters without parallel support",
    0x80: "an error while checking whether collective I/O is possible",
}


# H5Fpublic.h: all files of the process, as a place to look in and as what is looked for.
_ALL_OBJECTS, _FILES = 0x1F, 0x01
_MOST_FILES = 1024

#: Libraries that accompany HDF5.
_COMPANIONS = ("_hl", "_cpp", "_fortran", "_tools")


@cache
def _library() -> ctypes.CDLL:
    for path in _loaded():
        return ctypes.CDLL(path)
    raise RuntimeError("h5py has not loaded a shared HDF5 library")


def _loaded() -> list[str]:
    """Return the HDF5 libraries of this process; wheels of h5py and netCDF4 bring one each."""
    names = ((path, path.rsplit("/", 1)[-1]) for path in mapped_files())
    return [
        path
        for path, name in names
        if name.startswith("libhdf5") and not any(part in name for part in _COMPANIONS)
    ]


@cache
def _collectors() -> list[Callable[[], int]]:
    return [ctypes.CDLL(path).H5garbage_collect for path in _loaded()]


def garbage_collect() -> None:
    """Give the memory of HDF5's free lists back to the allocator: ``H5garbage_collect``.

    Chunk buffers are kept there with their contents and reused for other chunks.
    """
    for collect in _collectors():
        collect()


def forget(identifiers: Iterable[int]) -> None:
    """Take identifiers out of HDF5 without closing what they stand for, after a close that failed.

    HDF5 frees an object that it fails to close and keeps its identifier. The memory becomes that of
    an object of the next file, which is then closed twice. No public function removes such an
    identifier, and ``H5I_remove`` is not hidden.
    """
    library = _library()
    remove = getattr(library, "H5I_remove", None)
    if remove is None:
        return
    library.H5Iis_valid.argtypes = remove.argtypes = [ctypes.c_int64]
    remove.restype = ctypes.c_void_p
    for identifier in identifiers:
        if library.H5Iis_valid(identifier) > 0:
            remove(identifier)


def set_collective_metadata(access_list: int) -> None:
    """Read and write metadata collectively: ``H5Pset_all_coll_metadata_ops`` and its twin.

    Raises
    ------
    RuntimeError
        HDF5 refused.
    """
    for function in ("H5Pset_all_coll_metadata_ops", "H5Pset_coll_metadata_write"):
        call = getattr(_library(), function)
        call.argtypes = [ctypes.c_int64, ctypes.c_bool]
        if call(access_list, True) < 0:
            raise RuntimeError(f"{function} failed")


def actual_io_mode(transfer_list: int) -> str:
    """Name the I/O mode of the last transfer: ``H5Pget_mpio_actual_io_mode``."""
    mode = ctypes.c_int()
    call = _library().H5Pget_mpio_actual_io_mode
    call.argtypes = [ctypes.c_int64, ctypes.POINTER(ctypes.c_int)]
    if call(transfer_list, ctypes.byref(mode)) < 0:
        return "unknown"
    return _IO_MODES.get(mode.value, str(mode.value))


def no_collective_cause(transfer_list: int) -> str:
    """Name why any rank broke collective I/O: ``H5Pget_mpio_no_collective_cause``; or ``""``."""
    local, everywhere = ctypes.c_uint32(), ctypes.c_uint32()
    call = _library().H5Pget_mpio_no_collective_cause
    call.argtypes = [ctypes.c_int64, *[ctypes.POINTER(ctypes.c_uint32)] * 2]
    if call(transfer_list, ctypes.byref(local), ctypes.byref(everywhere)) < 0:
        return "unknown"
    return ", ".join(text for bit, text in _CAUSES.items() if everywhere.value & bit)


def file_hints(path: str, options: HasHints) -> FileHints | None:
    """Return the hints of a file that MPI-IO has open in HDF5; None if none was asked for.

    The file is found among all that HDF5 has open, since netCDF hands its own out to nobody.
    """
    if not asked_hints(options):
        return None
    for library in map(ctypes.CDLL, _loaded()):
        if (address := _mpi_file(library, path)) is not None:
            return read_hints(file_at(address), path, options)
    return hints_without_file(options, None, "the open file was not found in HDF5")


def _mpi_file(library: ctypes.CDLL, path: str) -> int | None:
    """Return where HDF5 keeps the MPI-IO handle of an open file; None if it has none of that name.

    ``H5Fget_vfd_handle`` returns the address of the handle in the driver for MPI-IO.
    """
    files = (ctypes.c_int64 * _MOST_FILES)()
    identifier, pointer = ctypes.c_int64, ctypes.POINTER(ctypes.c_void_p)
    library.H5Fget_obj_ids.argtypes = [
        identifier, ctypes.c_uint, ctypes.c_size_t, ctypes.POINTER(ctypes.c_int64),
    ]  # fmt: skip
    library.H5Fget_obj_ids.restype = ctypes.c_ssize_t
    library.H5Fget_name.argtypes = [identifier, ctypes.c_char_p, ctypes.c_size_t]
    library.H5Fget_name.restype = ctypes.c_ssize_t
    library.H5Fget_vfd_handle.argtypes = [identifier, identifier, pointer]
    wanted = os.fsencode(path)
    count = library.H5Fget_obj_ids(_ALL_OBJECTS, _FILES, _MOST_FILES, files)
    for file in files[: max(0, count)]:
        name = ctypes.create_string_buffer(len(wanted) + 2)
        library.H5Fget_name(file, name, len(name))
        address = ctypes.c_void_p()
        found = name.value == wanted
        if found and library.H5Fget_vfd_handle(file, 0, ctypes.byref(address)) >= 0:
            return address.value
    return None
