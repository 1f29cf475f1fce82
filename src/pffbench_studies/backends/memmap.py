"""Raw bytes through a memory map, as study 3 read them: page faults in place of calls."""

from __future__ import annotations

import mmap
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import msgspec
import numpy as np
from msgspec.structs import replace

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Array, Buffer, Call, Edges, Store
from pffbench.backends.file_layout import ArrayInFile
from pffbench.backends.inspection import StoredAs, StoredLayout, Touched
from pffbench.backends.raw.layout import RawOptions, RawStore, place_of
from pffbench.backends.raw.posix import Posix, PosixStore
from pffbench.case import Options, Parameters
from pffbench.geometry.box import Box
from pffbench.units import SmallSize

if TYPE_CHECKING:
    from mpi4py import MPI

Order = Literal["C", "F"]
_ADVICE = {
    "normal": mmap.MADV_NORMAL,
    "random": mmap.MADV_RANDOM,
    "sequential": mmap.MADV_SEQUENTIAL,
}


class MemmapOptions(RawOptions, frozen=True, kw_only=True):
    """Options of memory maps; every default is that of NumPy and the kernel."""

    #: Order of the elements in the file: last index fastest, or first index fastest.
    order: Order = "C"
    #: Bytes before the data.
    header: SmallSize = msgspec.field(default_factory=lambda: SmallSize(0))
    #: Order of the elements in memory. NumPy copies in the order of the destination. If that is not
    #: the order of the file, it walks the file against its order.
    destination: Order = "C"
    #: Advice to the kernel (madvise(2)): ``random`` switches its read-ahead off, ``sequential``
    #: doubles it.
    madvise: Literal["normal", "random", "sequential"] = "normal"


class Memmap(Posix):
    """A raw file that is written by pwrite and read through a map."""

    name = "memmap"
    summary = "raw bytes, written with pwrite, read through numpy.memmap"
    capabilities = replace(Posix.capabilities, reads_by_mmap=True, stretches=False)
    options: MemmapOptions
    options_type: ClassVar[type[Options]] = MemmapOptions
    notes = ("written with pwrite; only reads go through the map",)

    @classmethod
    def refuse(
        cls, parameters: Parameters, options: RawOptions, specs: Sequence[ArraySpec], edges: Edges
    ) -> str | None:
        if parameters.changes_arrays:
            return "backend memmap has no files that change"
        return None

    def create(self, path: str, comm: MPI.Intracomm | None) -> Store:
        made = super().create(path, comm)
        assert isinstance(made, PosixStore)
        return WritingStore(made) if self.options.order == "F" else made

    def open(self, path: str, comm: MPI.Intracomm | None) -> Store:
        return MappedStore(path, self.options)

    def describe(self, path: str) -> StoredAs:
        return StoredAs(more={"order": self.options.order, "header": str(self.options.header)})


class WritingStore(RawStore):
    """A plain file whose arrays are written with the first index fastest.

    Such an array is an array in order C with the axes reversed.
    """

    collective_close = False

    def __init__(self, store: PosixStore) -> None:
        self._store = store

    def wrap(self, specs: Sequence[ArraySpec], returned: Any) -> Mapping[str, Array]:
        turned = [replace(spec, shape=spec.shape[::-1]) for spec in specs]
        arrays = self._store.wrap(turned, returned)
        return {name: ReversedArray(array) for name, array in arrays.items()}

    def files(self) -> set[str]:
        return self._store.files()

    def flush(self) -> None:
        self._store.flush()

    def close(self) -> None:
        self._store.close()


class ReversedArray(Array):
    """An array whose axes are reversed in the file."""

    def __init__(self, stored: Array) -> None:
        self._stored = stored

    def writer(self, box: Box, buffer: Buffer, collective: bool) -> Call:
        data = np.ascontiguousarray(buffer.T)
        return self._stored.writer(reversed_box(box), data, collective)

    def reader(self, box: Box, out: Buffer, collective: bool) -> Call:
        raise NotImplementedError("files are read through a map")


class MappedStore(RawStore):
    """A plain file, open for reading; each array is mapped when it is opened."""

    collective_close = False
    _options: MemmapOptions

    def __init__(self, path: str, options: MemmapOptions) -> None:
        self._path = path
        self._options = options
        self._maps: list[list[Any]] = []

    def opener(self, specs: Sequence[ArraySpec]) -> Call:
        advice, order = _ADVICE[self._options.madvise], self._options.order
        calls = [
            partial(
                _map, advice, self._path, spec.dtype, "r", order=order, shape=spec.shape,
                offset=place_of(spec, self._options).begin,
            )
            for spec in specs
        ]  # fmt: skip

        def map_arrays() -> list[Any]:
            maps = [call() for call in calls]
            self._maps.append(maps)
            return maps

        return map_arrays

    def wrap(self, specs: Sequence[ArraySpec], returned: Any) -> Mapping[str, Array]:
        arrays: dict[str, Array] = {}
        for spec, mapped in zip(specs, returned, strict=True):
            self._maps.append(own := [mapped])
            arrays[spec.name] = MappedArray(place_of(spec, self._options), own, self._options)
        return arrays

    def flush(self) -> None:
        """Do nothing: the file is open for reading only."""

    def close(self) -> None:
        """Release the maps; the kernel removes them with the last reference."""
        for maps in self._maps:
            maps.clear()


class MappedArray(Array):
    """A map of an array, in a list that its store clears."""

    def __init__(self, place: ArrayInFile, maps: list[Any], options: MemmapOptions) -> None:
        self._place = place
        self._maps = maps
        self._options = options

    def writer(self, box: Box, buffer: Buffer, collective: bool) -> Call:
        raise NotImplementedError("files are not written through a map")

    def reader(self, box: Box, out: Buffer, collective: bool) -> Call:
        target = out
        if self._options.destination == "F":
            target = out.reshape(-1).reshape(out.shape, order="F")
        return partial(_copy, target, self._maps[0][box.slices])

    def layout(self, collective: bool) -> StoredLayout:
        return ReversedPlace(self._place) if self._options.order == "F" else self._place


class ReversedPlace(msgspec.Struct, frozen=True):
    """Where an array lies in a file with its axes reversed."""

    place: ArrayInFile

    def touched(self, box: Box) -> Touched:
        """Return the runs of a box, and the bytes of their pages."""
        turned = replace(self.place, shape=self.place.shape[::-1])
        return turned.touched(reversed_box(box))


def reversed_box(box: Box) -> Box:
    """Return a box of an array whose axes are reversed."""
    return Box(box.start[::-1], box.shape[::-1], box.stride[::-1])


def _map(advice: int, *where: Any, **at: Any) -> Any:
    mapped: Any = np.memmap(*where, **at)
    mapped.base.madvise(advice)
    return mapped


def _copy(target: Buffer, source: Buffer) -> Buffer:
    np.copyto(target, source)
    return target
