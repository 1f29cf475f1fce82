"""Ways of reaching an HDF5 dataset: h5py's low level, its slices, and the bytes in the file."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from pffbench.backends.base import Array, Buffer, Call
from pffbench.backends.chunkcache import Chunking
from pffbench.backends.hdf5_chunks import chunking_of
from pffbench.backends.hdf5_touched import touched
from pffbench.backends.posix import PosixArray
from pffbench.backends.raw import Copy
from pffbench.backends.stored import Touched
from pffbench.parallel.decomposition import Box

if TYPE_CHECKING:
    from pffbench.backends.hdf5_store import Hdf5Store

Api = Literal["low_level", "high_level", "pread"]


class Hdf5Array(Array):
    """A dataset. Data spaces are made beforehand, so that H5Dwrite/H5Dread alone is timed."""

    def __init__(self, store: Hdf5Store, dataset: Any) -> None:
        from h5py import h5s, h5t

        self._store = store
        self._dataset = dataset
        self._id = dataset.id
        self._h5s = h5s
        self._py_create = h5t.py_create

    def writer(self, box: Box, buffer: Buffer, collective: bool) -> Call:
        memory, file = self._spaces(box)
        transfer = self._store.transfer_list(collective)
        kind = self._py_create(buffer.dtype)
        return partial(self._id.write, memory, file, buffer, kind, transfer)

    def reader(self, box: Box, out: Buffer, collective: bool) -> Call:
        memory, file = self._spaces(box)
        transfer = self._store.transfer_list(collective)
        kind = self._py_create(out.dtype)
        return partial(self._id.read, memory, file, out, kind, transfer)

    def extender(self, length: int) -> Call:
        return partial(self._id.set_extent, (length, *self._id.shape[1:]))

    def touched(self, box: Box) -> Touched | None:
        return touched(self._id, box)

    def chunking(self, collective: bool) -> Chunking | None:
        return chunking_of(self._id, cached=not self._store.moved_collectively(collective))

    def _spaces(self, box: Box) -> tuple[Any, Any]:
        file = self._id.get_space()
        if box.size == 0:
            memory = self._h5s.create_simple((1,))
            memory.select_none()
            file.select_none()
            return memory, file
        if box.shape == self._id.shape:  # H5S_ALL takes the library a third less than a selection
            return self._h5s.ALL, self._h5s.ALL
        file.select_hyperslab(box.start, box.shape, box.stride or None)
        return self._h5s.create_simple(box.shape), file


class SlicedArray(Hdf5Array):
    """A dataset as most programs use it, ``dataset[a:b]``: what h5py does around the call is timed.

    A read returns a new array. In a collective transfer it is ``read_direct`` into the caller's:
    ``dataset[a:b]`` reads numbers independently, also within ``dataset.collective`` (h5py 3.16;
    its fast reader knows no transfer properties). Ranks with nothing to move make the low-level
    call, because h5py leaves out empty selections and the other ranks would wait for ever.
    """

    def writer(self, box: Box, buffer: Buffer, collective: bool) -> Call:
        if box.size == 0:
            return super().writer(box, buffer, collective)
        dataset, slices = self._dataset, box.slices

        def call() -> None:
            if collective:
                with dataset.collective:
                    dataset[slices] = buffer
            else:
                dataset[slices] = buffer

        return call

    def reader(self, box: Box, out: Buffer, collective: bool) -> Call:
        if box.size == 0:
            return super().reader(box, out, collective)
        dataset, slices = self._dataset, box.slices

        def call() -> Any:
            if not collective:
                return dataset[slices]
            with dataset.collective:
                dataset.read_direct(out, slices)
            return None

        return call


class DirectlyReadArray(Hdf5Array):
    """A contiguous dataset whose bytes are read with pread(2) where HDF5 says that they lie.

    What the library and h5py take beside is the rest of what the other ways take. Writing goes
    through the library, which decides on the place.
    """

    def reader(self, box: Box, out: Buffer, collective: bool) -> Call:
        begin = self._id.get_offset()
        if begin is None:  # no space is taken for a dataset that was never written to
            return super().reader(box, out, collective)
        copy = Copy(self._id.shape, out.itemsize, "C", begin)
        return PosixArray(self._store.descriptor(), [copy]).reader(box, out, collective)


ARRAYS: dict[Api, type[Hdf5Array]] = {
    "low_level": Hdf5Array,
    "high_level": SlicedArray,
    "pread": DirectlyReadArray,
}
