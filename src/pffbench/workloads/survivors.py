"""Read what a killed program left, with h5py, netCDF4 or zarr and with nothing of pffbench.

``python survivors.py PATH NAME…`` prints as JSON how the file opened, and by name of an
array a digest of each of its steps, in native byte order.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal, NamedTuple

Way = Literal["plain", "swmr", "cleared"]
#: Ways to open a file: as any program does; as a reader of single writer, multiple readers; and
#: after its marks of a writer were cleared, as the tool h5clear does.
WAYS: tuple[Way, ...] = ("plain", "swmr", "cleared")


class Found(NamedTuple):
    """What was read."""

    #: How the file opened; None if it did not.
    way: Way | None
    #: By name of an array the digest of each step; empty if the step could not be read.
    steps: dict[str, list[str]]


def _hdf5(way: Way) -> Callable[[str], Any]:
    # h5py built for MPI starts it at its import, which a reader of one file does not need.
    with suppress(ImportError):
        import mpi4py

        mpi4py.rc.initialize = False
    import h5py

    clearing = _clearing(h5py) if way == "cleared" else None

    def open_file(path: str) -> Any:
        if clearing is not None:
            h5py.h5f.open(path.encode(), h5py.h5f.ACC_RDWR, fapl=clearing).close()
        return h5py.File(path, "r", swmr=way == "swmr")

    return open_file


def _clearing(h5py: Any) -> Any:
    """Return the access that clears the marks of a writer, by the property that h5clear sets."""
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    put = ctypes.CDLL(h5py.h5p.__file__).H5Pset  # of the HDF5 that this module is linked with
    put.argtypes = [ctypes.c_int64, ctypes.c_char_p, ctypes.c_void_p]
    if put(access.id, b"clear_status_flags", ctypes.byref(ctypes.c_bool(True))) < 0:
        raise RuntimeError("this HDF5 clears no marks of a writer")
    return access


def _netcdf(path: str) -> Any:
    import netCDF4

    dataset = netCDF4.Dataset(path)
    dataset.set_auto_maskandscale(False)
    return dataset.variables


def _zarr(path: str) -> Any:
    import zarr

    return zarr.open_group(path, mode="r")


def _openers(path: str) -> dict[Way, Callable[[str], Any]]:
    if path.endswith(".h5"):
        return {way: _hdf5(way) for way in WAYS}
    return {"plain": _netcdf if path.endswith(".nc") else _zarr}


def _digest(array: Any, step: int) -> str:
    import numpy as np

    try:
        values = np.asarray(array[step])
    except Exception:  # noqa: BLE001 -- what a library raises for a broken step is not known
        return ""
    native = values.astype(values.dtype.newbyteorder("="), copy=False)
    return hashlib.sha256(native.tobytes()).hexdigest()


def read(path: str, names: list[str]) -> Found:
    """Read all steps of some arrays of a file."""
    for way, open_file in _openers(path).items():
        try:
            arrays = open_file(path)
        except Exception:  # noqa: BLE001 -- as above
            continue
        steps = {}
        for name in names:
            with suppress(Exception):
                array = arrays[name]
                steps[name] = [_digest(array, i) for i in range(array.shape[0])]
        return Found(way, steps)
    return Found(None, {})


if __name__ == "__main__":
    print(json.dumps(read(sys.argv[1], sys.argv[2:])))
