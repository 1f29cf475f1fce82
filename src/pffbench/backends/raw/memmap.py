"""Raw bytes through a memory map: page faults of numpy.memmap in place of calls."""

from __future__ import annotations

import mmap
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from msgspec.structs import replace

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Array, Buffer, Call, Store
from pffbench.backends.file_layout import Copies, Copy
from pffbench.backends.raw.layout import RawArray, RawOptions, RawStore, copies_of
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
    file_calls = "pffbench.backends.file_calls:MEMMAP"
    capabilities = replace(Posix.capabilities, maps_files=True)
    options: MemmapOptions
    options_type: ClassVar[type[Options]] = MemmapOptions
    notes = ("written with pwrite; only reads go through the map",)

    def open(self, path: str, comm: MPI.Intracomm | None) -> Store:
        return MemmapStore(path, self.options)


class MemmapStore(RawStore):
    """A plain file, open for reading; each array is mapped when it is opened."""

    collective_close = False
    _options: MemmapOptions

    def __init__(self, path: str, options: MemmapOptions) -> None:
        self._path = path
        self._options = options
        self._maps: list[list[Any]] = []

    def opener(self, specs: Sequence[ArraySpec]) -> Call:
        calls = [self._mapper(spec, c) for spec in specs for c in self._copies(spec).copies]

        def map_copies() -> list[Any]:
            maps = [call() for call in calls]
            self._maps.append(maps)
            return maps

        return map_copies

    def _copies(self, spec: ArraySpec) -> Copies:
        return copies_of(spec, self._options)

    def _mapper(self, spec: ArraySpec, copy: Copy) -> Call:
        """Prepare to map a copy of an array, and to advise the kernel."""
        at = {"offset": copy.begin, "shape": copy.shape_in_file}
        advice = _ADVICE[self._options.madvise]
        return partial(_map, advice, self._path, spec.dtype, "r", **at)

    def wrap(self, specs: Sequence[ArraySpec], returned: Any) -> Mapping[str, Array]:
        arrays: dict[str, Array] = {}
        maps = iter(returned)
        for spec in specs:
            copies = self._copies(spec)
            its_own = list(islice(maps, len(copies.copies)))
            self._maps.append(its_own)
            arrays[spec.name] = MemmapArray(copies, its_own, self._options.destination)
        return arrays

    def flush(self) -> None:
        """Do nothing: the file is open for reading only."""

    def close(self) -> None:
        """Release the maps; the kernel removes them with the last reference."""
        for maps in self._maps:
            maps.clear()


class MemmapArray(RawArray):
    """A map of an array, or of each of several copies of it."""

    def __init__(self, copies: Copies, maps: list[Any], destination: Literal["C", "F"]) -> None:
        self._copies = copies
        self._maps = maps
        self._destination = destination

    def writer(self, box: Box, buffer: Buffer, collective: bool) -> Call:
        raise NotImplementedError("files are not written through a map")

    def reader(self, box: Box, out: Buffer, collective: bool) -> Call:
        copy = self._copies.best(box)
        source = copy.as_array(self._maps[self._copies.copies.index(copy)])[box.slices]
        target = out
        if self._destination == "F":
            target = out.reshape(-1).reshape(out.shape, order="F")
        return partial(_copy, target, source)


def _map(advice: int, *where: Any, **at: Any) -> Any:
    mapped: Any = np.memmap(*where, **at)
    mapped.base.madvise(advice)
    return mapped


def _copy(target: Buffer, source: Buffer) -> Buffer:
    np.copyto(target, source)
    return target
