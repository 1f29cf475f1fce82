"""The few functions of the netCDF C library that netCDF4-python does not offer.

They are called in the very library that netCDF4 has loaded, found in the process's own memory
map.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any


@cache
def _library() -> ctypes.CDLL:
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.split()[-1]
        if path.rsplit("/", 1)[-1].startswith("libnetcdf"):
            return ctypes.CDLL(path)
    raise RuntimeError("netCDF4 has not loaded a shared netCDF library")


def empty_transfer(variable: Any, direction: str) -> Callable[[], None]:
    """Return a call that takes part in a collective transfer without moving anything.

    netCDF4-python makes no library call for an empty slice, which leaves the other ranks of a
    collective transfer waiting for ever; ``nc_put_vara`` and ``nc_get_vara`` themselves accept
    counts of zero.
    """
    zeros = (ctypes.c_size_t * len(variable.shape))()
    function = getattr(_library(), f"nc_{direction}_vara")
    group, number = variable._grpid, variable._varid

    def call() -> None:
        status = function(group, number, zeros, zeros, None)
        if status != 0:
            raise RuntimeError(f"nc_{direction}_vara with counts of zero returned {status}")

    return call


def is_filled(variable: Any) -> bool:
    """Whether the library fills a variable before data are written: ``nc_inq_var_fill``."""
    no_fill = ctypes.c_int()
    value = ctypes.create_string_buffer(16)
    status = _library().nc_inq_var_fill(
        variable._grpid, variable._varid, ctypes.byref(no_fill), value
    )
    if status != 0:
        raise RuntimeError(f"nc_inq_var_fill returned {status}")
    return no_fill.value == 0
