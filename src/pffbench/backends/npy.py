"""NumPy's own format: a store is a directory, and each array in it is a .npy file."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pffbench.backends.array_spec import EVERY_ARRAYS, ArraySpec, Capabilities
from pffbench.backends.base import Buffer, Call, Edges, Store
from pffbench.backends.directory import DirectoryArray, DirectoryBackend, OpenFilesStore
from pffbench.backends.file_layout import ArrayInFile, Runs, bytes_of, write_runs
from pffbench.backends.inspection import StoredAs
from pffbench.backends.traits import Inquiry
from pffbench.case import Options, Parameters
from pffbench.geometry.box import Box

if TYPE_CHECKING:
    from mpi4py import MPI


class Npy(DirectoryBackend[Options]):
    """Arrays as .npy files in a directory, written in place and read through a map."""

    name = "npy"
    summary = "NumPy's .npy files, written with pwrite, read through numpy.load(mmap_mode='r')"
    suffix = ".npydir"
    libraries = ("numpy",)
    capabilities = Capabilities(arrays=EVERY_ARRAYS, reads_by_mmap=True)
    notes = ("no chunks: each array is in one piece", "each write opens and closes the file")

    @classmethod
    def refuse(
        cls, parameters: Parameters, options: Options, specs: Sequence[ArraySpec], edges: Edges
    ) -> str | None:
        if parameters.chunks not in ("auto", "contiguous"):
            return "a .npy file has no chunks; leave chunks out, or name chunks: contiguous"
        return None

    def store(self, path: str, comm: MPI.Intracomm | None) -> Store:
        return NpyStore(path, comm)

    def describe(self, path: str) -> StoredAs:
        with open(os.path.join(path, min(os.listdir(path))), "rb") as file:
            major, minor = np.lib.format.read_magic(file)
        return StoredAs(fill="never", more={"format": f"{major}.{minor}"})


class NpyArray(DirectoryArray):
    """One .npy file: its path where it is written, a map where it is read."""

    def write_call(self, box: Box, buffer: Buffer) -> Call:
        return partial(_write, self._array, bytes_of(buffer), self._place.runs(box))

    def read_call(self, box: Box, out: Buffer) -> Call:
        return partial(np.copyto, out, self._array[box.slices])

    @property
    def holds_file(self) -> bool:
        return not isinstance(self._array, str)

    def layout(self, collective: bool) -> ArrayInFile:
        return self._place

    @property
    def _place(self) -> ArrayInFile:
        spec = self._spec
        return ArrayInFile(spec.shape, spec.itemsize, len(header_of(spec)))


class NpyStore(OpenFilesStore):
    """An open directory of .npy files."""

    array_type = NpyArray

    def file(self, name: str) -> str:
        return os.path.join(self.path, f"{name}.npy")

    def create_array(self, spec: ArraySpec) -> Call:
        return partial(_create, self.file(spec.name), header_of(spec), spec.nbytes)

    def join_array(self, spec: ArraySpec) -> Call:
        return partial(str, self.file(spec.name))  # it is opened in each write

    def open_array(self, spec: ArraySpec) -> Call:
        """Let NumPy read the header and map the file."""
        return partial(np.load, self.file(spec.name), mmap_mode="r")

    def inquire(self) -> Inquiry:
        found = {}
        for entry in os.scandir(self.path):
            mapped = np.load(entry.path, mmap_mode="r")
            found[entry.name.removesuffix(".npy")] = mapped, mapped.shape, mapped.dtype
        return found


def header_of(spec: ArraySpec) -> bytes:
    """Return the header of an array's file."""
    text = io.BytesIO()
    descr = np.lib.format.dtype_to_descr(spec.stored_dtype)
    about = {"descr": descr, "fortran_order": False, "shape": spec.shape}
    np.lib.format.write_array_header_1_0(text, about)
    return text.getvalue()


def _create(path: str, header: bytes, nbytes: int) -> str:
    """Write the header, and leave a hole until data are written."""
    with open(path, "xb") as file:
        file.write(header)
        file.truncate(len(header) + nbytes)
    return path


def _write(file: str, data: memoryview, runs: Runs) -> int:
    descriptor = os.open(file, os.O_WRONLY)
    try:
        return write_runs(descriptor, data, runs)
    finally:
        os.close(descriptor)
