"""Raw bytes through a memory map: page faults of numpy.memmap in place of calls."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from msgspec.structs import replace

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Array, Buffer, Call, Store
from pffbench.backends.raw.layout import Copy, RawArray, RawOptions, RawStore, best_copy, copies_of
from pffbench.backends.raw.posix import Posix
from pffbench.case import Options
from pffbench.parallel.decomposition import Box

if TYPE_CHECKING:
    from mpi4py import MPI

_ADVICE = {
    "normal": mmap.MADV_NORMAL,
    "random": mmap.MADV_RANDOM,
    "sequential": mmap.MADV_SEQUENTIAL,
}


class MemmapOptions(RawOptions, frozen=True, kw_only=True):
    """Options of memory maps; every default is that of NumPy and the kernel.

    Parameters
    ----------
    destination : {"C", "F"}
        Order of the elements in memory. NumPy copies in the order of the destination, so one
        that is not the file's walks the file against its order.
    madvise : {"normal", "random", "sequential"}
        Advice to the kernel (madvise(2)): ``random`` switches its read-ahead off, ``sequential``
        doubles it.
    """

    destination: Literal["C", "F"] = "C"
    madvise: Literal["normal", "random", "sequential"] = "normal"


class Memmap(Posix):
    """The files of the backend ``posix``, written likewise and read through a map."""

    name = "memmap"
    summary = "raw bytes, written with pwrite, read through numpy.memmap"
    capabilities = replace(Posix.capabilities, maps_files=True)
    options_type: ClassVar[type[Options]] = MemmapOptions

    def open(self, path: str, comm: MPI.Intracomm | None) -> Store:
        assert isinstance(self.options, MemmapOptions)
        return MemmapStore(path, self.options)

    def notes(self) -> tuple[str, ...]:
        return ("written with pwrite; only reads go through the map",)


class MemmapStore(RawStore):
    """A plain file; each array is mapped when it is opened."""

    collective_close = False
    _options: MemmapOptions

    def __init__(self, path: str, options: MemmapOptions) -> None:
        self._path = path
        self._options = options
        self._opened: list[MemmapArray] = []

    def define(self, specs: Sequence[ArraySpec]) -> Mapping[str, Array]:
        raise NotImplementedError("files are not written through a map")

    def arrays(self, specs: Iterable[ArraySpec]) -> Mapping[str, Array]:
        found = {spec.name: self._array(spec) for spec in specs}
        self._opened += found.values()
        return found

    def _array(self, spec: ArraySpec) -> MemmapArray:
        maps: dict[Copy, Any] = {}
        for copy in copies_of(spec, self._options):
            mapped: Any = np.memmap(
                self._path, spec.dtype, "r", offset=copy.begin, shape=copy.shape_in_file
            )
            mapped.base.madvise(_ADVICE[self._options.madvise])
            maps[copy] = copy.as_array(mapped)
        return MemmapArray(maps, self._options.destination)

    def flush(self) -> None:
        """Do nothing: the file is open for reading only."""

    def close(self) -> None:
        """Release the maps; the kernel removes them with the last reference."""
        for array in self._opened:
            array.unmap()


class MemmapArray(RawArray):
    """A map of an array, or of several copies of it."""

    def __init__(self, maps: dict[Copy, Any], destination: Literal["C", "F"]) -> None:
        self._maps = maps
        self._copies = list(maps)
        self._destination = destination

    def writer(self, box: Box, buffer: Buffer, collective: bool) -> Call:
        raise NotImplementedError("files are not written through a map")

    def reader(self, box: Box, out: Buffer, collective: bool) -> Call:
        source = self._maps[best_copy(self._copies, box)][box.slices]
        target = out
        if self._destination == "F":
            target = out.reshape(-1).reshape(out.shape, order="F")
        return partial(_copy, target, source)

    def unmap(self) -> None:
        """Release the maps."""
        self._maps.clear()


def _copy(target: Buffer, source: Buffer) -> Buffer:
    np.copyto(target, source)
    return target
