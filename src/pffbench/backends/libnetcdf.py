"""Bindings to netCDF C functions that netCDF4-python does not offer.

They are called in the library that netCDF4 has loaded, found in the process's memory map.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

from pffbench.backends.hdf5_files import SHUFFLE, Filter
from pffbench.proc import mapped_files


@cache
def _library() -> ctypes.CDLL:
    for path in mapped_files():
        if path.rsplit("/", 1)[-1].startswith("libnetcdf"):
            return ctypes.CDLL(path)
    raise RuntimeError("netCDF4 has not loaded a shared netCDF library")


def empty_transfer(variable: Any, direction: str) -> Callable[[], None]:
    """Return a call that takes part in a collective transfer without moving data.

    netCDF4-python makes no library call for an empty slice, which leaves the other ranks of a
    collective transfer waiting for ever; ``nc_put_vara`` and ``nc_get_vara`` themselves accept
    counts of zero. Slicing asks for the shape once before it moves data, and so does this call:
    netCDF-C finds the length of an unlimited dimension by asking all ranks.
    """
    zeros = (ctypes.c_size_t * variable.ndim)()
    function = getattr(_library(), f"nc_{direction}_vara")
    group, number = variable._grpid, variable._varid

    def call() -> None:
        _ = variable.shape
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


def filter_adder(filter_: Filter, *, shuffle: bool) -> Callable[[Any], None]:
    """Return a call that puts a filter on a variable in define mode: ``nc_def_var_filter``.

    netCDF4-python offers Blosc and Zstandard only where netCDF-C was built with them; this takes
    the same filters wherever HDF5 has them. The call raises RuntimeError if the library refuses,
    for instance because HDF5 has no such filter.

    Parameters
    ----------
    filter_ : Filter
        The compression filter.
    shuffle : bool
        Whether HDF5's byte shuffle comes before it.
    """
    library, number, count = _library(), filter_.number, len(filter_.values)
    told = ctypes.c_uint(number), ctypes.c_size_t(count), (ctypes.c_uint * count)(*filter_.values)

    def add(variable: Any) -> None:
        group, variable_id = variable._grpid, variable._varid
        if shuffle:
            status = library.nc_def_var_deflate(group, variable_id, 1, 0, 0)
            _check(status, "nc_def_var_deflate")
        status = library.nc_def_var_filter(group, variable_id, *told)
        _check(status, f"nc_def_var_filter({number})")

    return add


def filters_of(variable: Any) -> list[tuple[int, tuple[int, ...]]]:
    """Return number and parameters of a variable's filters: ``nc_inq_var_filter_info``."""
    library, group, variable_id = _library(), variable._grpid, variable._varid
    count = ctypes.c_size_t()
    status = library.nc_inq_var_filter_ids(group, variable_id, ctypes.byref(count), None)
    _check(status, "nc_inq_var_filter_ids")
    numbers = (ctypes.c_uint * count.value)()
    library.nc_inq_var_filter_ids(group, variable_id, ctypes.byref(count), numbers)
    shuffled: list[tuple[int, tuple[int, ...]]] = []
    if variable.filters()["shuffle"]:  # missing from the library's list
        shuffled.append((SHUFFLE, ()))
    return [*shuffled, *((n, _values(group, variable_id, n)) for n in numbers if n != SHUFFLE)]


def _values(group: int, variable: int, number: int) -> tuple[int, ...]:
    """Return the parameters of one filter."""
    inquire, count = _library().nc_inq_var_filter_info, ctypes.c_size_t()
    filter_id = ctypes.c_uint(number)
    _check(inquire(group, variable, filter_id, ctypes.byref(count), None), "filter info")
    values = (ctypes.c_uint * count.value)()
    inquire(group, variable, filter_id, ctypes.byref(count), values)
    return tuple(values)


def _check(status: int, what: str) -> None:
    if status != 0:
        raise RuntimeError(f"{what} returned {status}")
