"""NumPy's own format: a store is a directory, and each array in it is a .npy file.

This is the model for a new backend: `CONTRIBUTING.md` goes through it.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pffbench.backends.array_spec import ArraySpec, Capabilities
from pffbench.backends.base import Array, Backend, Buffer, Call, Cuts, Inquiry, Store
from pffbench.backends.inspection import Inspection, StoredAs, Touched
from pffbench.backends.raw.layout import Copy, Runs, bytes_of, write_runs
from pffbench.case import Options, Parameters
from pffbench.parallel.agreement import together
from pffbench.parallel.decomposition import Box

if TYPE_CHECKING:
    from mpi4py import MPI


class Npy(Backend):
    """Arrays as .npy files in a directory, written in place and read through a map."""

    name = "npy"
    summary = "NumPy's .npy files, written with pwrite, read through numpy.load(mmap_mode='r')"
    suffix = ".npydir"
    libraries = ("numpy",)
    file_per = "array"
    capabilities = Capabilities(transfers=frozenset({"independent"}), maps_files=True)

    @classmethod
    def refuse(
        cls, parameters: Parameters, options: Options, specs: Sequence[ArraySpec], cuts: Cuts
    ) -> str | None:
        if parameters.chunks not in ("auto", "contiguous"):
            return "a .npy file has no chunks; leave chunks out, or name chunks: contiguous"
        return None

    def create(self, path: str, comm: MPI.Intracomm | None) -> Store:
        """Make the directory; of ranks that share it rank 0 does, and the others wait for it."""
        if comm is None:
            os.mkdir(path)
        else:
            together(comm, partial(os.mkdir, path) if comm.rank == 0 else _do_nothing)
        return NpyStore(path, comm)

    def open(self, path: str, comm: MPI.Intracomm | None) -> Store:
        return NpyStore(path, comm)

    @property
    def inspection(self) -> NpyInspection:
        return NpyInspection()

    def notes(self) -> tuple[str, ...]:
        return ("no chunks: each array is in one piece", "each write opens and closes the file")


class NpyInspection(Inspection):
    """What the first file says of itself; files without chunks need no more."""

    def describe(self, path: str) -> StoredAs:
        with open(os.path.join(path, min(os.listdir(path))), "rb") as file:
            major, minor = np.lib.format.read_magic(file)
        return StoredAs(fill="never", more={"format": f"{major}.{minor}"})


class NpyStore(Store):
    """An open directory: what this rank wrote to, and the maps that it reads through."""

    collective_close = False
    lists = True

    def __init__(self, path: str, comm: MPI.Intracomm | None) -> None:
        self._path = path
        self._comm = comm
        self._written: set[str] = set()
        self._mapped: list[NpyArray] = []

    def define(self, specs: Sequence[ArraySpec]) -> Mapping[str, Array]:
        """Let each owner make its files, and rank 0 those that all ranks write."""
        rank = None if self._comm is None else self._comm.rank  # None: all arrays are its own
        make = partial(self._make, [s for s in specs if rank in (None, s.owner or 0)])
        if self._comm is not None and any(spec.owner is None for spec in specs):
            together(self._comm, make)  # nobody opens a file before it is there
        else:
            make()
        mine = (s for s in specs if rank is None or s.owner in (None, rank))
        return {spec.name: NpyArray(self.file(spec), spec, self._written) for spec in mine}

    def _make(self, specs: Iterable[ArraySpec]) -> None:
        for spec in specs:
            with open(self.file(spec), "xb") as file:
                header = _header(spec)
                file.write(header)
                file.truncate(len(header) + spec.nbytes)  # a hole, until data are written
            self._written.add(self.file(spec))

    def arrays(self, specs: Iterable[ArraySpec]) -> Mapping[str, Array]:
        """Let NumPy read the headers and map the files."""
        return self.wrapped((spec, np.load(self.file(spec), mmap_mode="r")) for spec in specs)

    def inquire(self) -> Inquiry:
        found = {}
        for entry in os.scandir(self._path):
            mapped = np.load(entry.path, mmap_mode="r")
            found[entry.name.removesuffix(".npy")] = mapped, mapped.shape, mapped.dtype
        return found

    def wrapped(self, found: Iterable[tuple[ArraySpec, Any]]) -> Mapping[str, Array]:
        known = {s.name: NpyArray(self.file(s), s, self._written, mapped) for s, mapped in found}
        self._mapped += known.values()
        return known

    def file(self, spec: ArraySpec) -> str:
        """Return the file of an array."""
        return os.path.join(self._path, f"{spec.name}.npy")

    def files(self) -> set[str]:
        return self._written

    def flush(self) -> None:
        """Do nothing: pwrite keeps nothing back in the process."""

    def close(self) -> None:
        """Let go of the maps: what is mapped cannot be dropped from the page cache."""
        for array in self._mapped:
            array.mapped = None


class NpyArray(Array):
    """One .npy file; ``mapped`` is what NumPy reads of it, where it is open for reading."""

    def __init__(self, file: str, spec: ArraySpec, written: set[str], mapped: Any = None) -> None:
        self._file, self._spec, self._written = file, spec, written
        self.mapped = mapped

    def writer(self, box: Box, buffer: Buffer, collective: bool) -> Call:
        if box.size == 0:
            return _do_nothing
        self._written.add(self._file)
        return partial(_write, self._file, bytes_of(buffer), self._runs(box))

    def reader(self, box: Box, out: Buffer, collective: bool) -> Call:
        return partial(np.copyto, out, self.mapped[box.slices])

    def touched(self, box: Box) -> Touched:
        return self._runs(box).touched()

    def _runs(self, box: Box) -> Runs:
        """Return the stretches of the file that a box consists of."""
        spec = self._spec
        return Copy(spec.shape, spec.itemsize, "C", len(_header(spec))).runs(box)


def _header(spec: ArraySpec) -> bytes:
    text = io.BytesIO()
    descr = np.lib.format.dtype_to_descr(spec.stored_dtype)
    about = {"descr": descr, "fortran_order": False, "shape": spec.shape}
    np.lib.format.write_array_header_1_0(text, about)
    return text.getvalue()


def _write(file: str, data: memoryview, runs: Runs) -> int:
    descriptor = os.open(file, os.O_WRONLY)
    try:
        return write_runs(descriptor, data, runs)
    finally:
        os.close(descriptor)


def _do_nothing() -> None:
    """Move nothing."""
