"""The shortest programs that write, then read many small arrays with each library.

Each does what a user would write down: make all arrays, write them, close; open, look each up, read
it. A loop is given the path, the rows to write and the memory to read into, and yields when it has
written and when it has read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

Rows = np.ndarray[Any, Any]
Loop = Callable[[Path, Rows, Rows], Iterator[None]]


def hdf5(path: Path, rows: Rows, out: Rows) -> Iterator[None]:
    """Datasets of h5py, moved by H5Dwrite and H5Dread without slices."""
    import h5py

    everything, length = h5py.h5s.ALL, rows.shape[1:]
    with h5py.File(path, "w") as file:
        made = [
            file.create_dataset(f"dataset_{i:06d}", length, "f4", fill_time="never")
            for i in range(len(rows))
        ]
        for dataset, row in zip(made, rows, strict=True):
            dataset.id.write(everything, everything, row)
    yield
    with h5py.File(path, "r") as file:
        found = [file[f"dataset_{i:06d}"] for i in range(len(out))]
        for dataset, row in zip(found, out, strict=True):
            dataset.id.read(everything, everything, row)
    yield


def hdf5_slices(path: Path, rows: Rows, out: Rows) -> Iterator[None]:
    """Datasets of h5py, moved by slices."""
    import h5py

    length = rows.shape[1]
    with h5py.File(path, "w") as file:
        made = [
            file.create_dataset(f"dataset_{i:06d}", (length,), "f4", fill_time="never")
            for i in range(len(rows))
        ]
        for dataset, row in zip(made, rows, strict=True):
            dataset[:length] = row
    yield
    with h5py.File(path, "r") as file:
        found = [file[f"dataset_{i:06d}"] for i in range(len(out))]
        for dataset, row in zip(found, out, strict=True):
            row[...] = dataset[:length]
    yield


def netcdf4(path: Path, rows: Rows, out: Rows) -> Iterator[None]:
    """Variables of netCDF4-python."""
    import netCDF4

    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("axis", rows.shape[1])
        made = [
            file.createVariable(
                f"dataset_{i:06d}", "f4", ("axis",), contiguous=True, fill_value=False
            )
            for i in range(len(rows))
        ]
        for variable, row in zip(made, rows, strict=True):
            variable[...] = row
    yield
    with netCDF4.Dataset(path, "r") as file:
        found = [file.variables[f"dataset_{i:06d}"] for i in range(len(out))]
        for variable, row in zip(found, out, strict=True):
            row[...] = variable[...]
    yield


def zarr(path: Path, rows: Rows, out: Rows) -> Iterator[None]:
    """Arrays of zarr-python, one chunk each."""
    import zarr as library

    length = rows.shape[1:]
    group = library.create_group(path)
    made = [
        group.create_array(
            f"dataset_{i:06d}", shape=length, chunks=length, dtype="f4", compressors=None
        )
        for i in range(len(rows))
    ]
    for array, row in zip(made, rows, strict=True):
        array[...] = row
    yield
    group = library.open_group(path, mode="r")
    found = [group[f"dataset_{i:06d}"] for i in range(len(out))]
    for array, row in zip(found, out, strict=True):
        row[...] = array[...]
    yield


def tensorstore(path: Path, rows: Rows, out: Rows) -> Iterator[None]:
    """Arrays of TensorStore, one chunk each, files not synced one by one, one thread."""
    import tensorstore as library

    one = {"limit": 1}
    context = library.Context(
        {"file_io_sync": False, "data_copy_concurrency": one, "file_io_concurrency": one}
    )

    def opened(number: int, **told: Any) -> Any:
        store = {"driver": "file", "path": f"{path}/dataset_{number:06d}"}
        return library.open({"driver": "zarr3", "kvstore": store}, context=context, **told).result()

    kind, length = library.float32, list(rows.shape[1:])
    layout = library.ChunkLayout(chunk_shape=length)
    made = [
        opened(i, create=True, dtype=kind, shape=length, chunk_layout=layout)
        for i in range(len(rows))
    ]
    for array, row in zip(made, rows, strict=True):
        array.write(row).result()
    yield
    context = library.Context(
        {"file_io_sync": False, "data_copy_concurrency": one, "file_io_concurrency": one}
    )
    found = [opened(i, open=True) for i in range(len(out))]
    for array, row in zip(found, out, strict=True):
        row[...] = array.read().result()
    yield


def _rows_of_a_file(path: Path, rows: Rows) -> None:
    nbytes = rows[0].nbytes
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    for i, row in enumerate(rows):
        os.pwrite(descriptor, row, i * nbytes)
    os.close(descriptor)


def posix(path: Path, rows: Rows, out: Rows) -> Iterator[None]:
    """Rows of a plain file, a call for each."""
    _rows_of_a_file(path, rows)
    yield
    nbytes = rows[0].nbytes
    descriptor = os.open(path, os.O_RDONLY)
    for i, row in enumerate(out):
        os.preadv(descriptor, [row], i * nbytes)
    os.close(descriptor)
    yield


def mpiio(path: Path, rows: Rows, out: Rows) -> Iterator[None]:
    """Rows of a plain file, a call of MPI-IO for each."""
    from mpi4py import MPI

    nbytes = rows[0].nbytes
    file = MPI.File.Open(MPI.COMM_SELF, str(path), MPI.MODE_CREATE | MPI.MODE_RDWR)
    for i, row in enumerate(rows):
        file.Write_at(i * nbytes, row)
    file.Close()
    yield
    file = MPI.File.Open(MPI.COMM_SELF, str(path), MPI.MODE_RDONLY)
    for i, row in enumerate(out):
        file.Read_at(i * nbytes, row)
    file.Close()
    yield


def memmap(path: Path, rows: Rows, out: Rows) -> Iterator[None]:
    """Rows of a plain file, written by calls, each read through a map of its own."""
    _rows_of_a_file(path, rows)
    yield
    nbytes = rows[0].nbytes
    found = [
        np.memmap(path, rows.dtype, "r", offset=i * nbytes, shape=rows[0].shape)
        for i in range(len(out))
    ]
    for mapped, row in zip(found, out, strict=True):
        np.copyto(row, mapped)
    del mapped, found
    yield
