"""Zarr directory stores through zarr-python 2, which writes format 2.

It cannot be installed beside zarr-python 3, so it has an environment of its own
(``setup/bootstrap --zarr2``). What ranks do is that of `pffbench.backends.zarr`; here is where the
two interfaces differ.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import msgspec

from pffbench.backends.base import (
    Array,
    ArraySpec,
    Backend,
    Buffer,
    Call,
    Capabilities,
    Cuts,
    Store,
    StoredAs,
    Touched,
)
from pffbench.backends.chunkcache import Chunking, StoredChunks
from pffbench.backends.stored import touched_chunks
from pffbench.backends.stored_parts import part_of_zarr
from pffbench.backends.zarr_chunks import chunks_on_disk
from pffbench.backends.zarr_codecs import CODECS, COMPRESSORS, SHUFFLES, codec_name, compressor
from pffbench.backends.zarr_rules import refuse_chunks
from pffbench.backends.zarr_store import ZarrStore
from pffbench.case import Options, Parameters, Settings
from pffbench.parallel.agreement import together
from pffbench.parallel.decomposition import Box

if TYPE_CHECKING:
    from mpi4py import MPI

#: Most threads that numcodecs lets Blosc use unless it is told otherwise.
_MOST_THREADS = 8


class Zarr2Options(Options, frozen=True, kw_only=True):
    """Options of zarr-python 2; every default is what it does by itself.

    Parameters
    ----------
    format : {2}
        Version of the Zarr format; there is no other, and so there are no shards.
    blosc_threads : int, optional
        Threads of Blosc. The library's default is one for each core and 8 at most; ``matched``
        gives a rank one. All else is done by the calling thread, one chunk after another.
    write_empty_chunks : bool, optional
        Whether chunks that hold nothing but the fill value are written. The library's default is
        yes, other than in zarr-python 3; ``matched`` writes them too.
    """

    format: Literal[2] = 2
    blosc_threads: Annotated[int, msgspec.Meta(ge=1)] | None = None
    write_empty_chunks: bool | None = None


class Zarr2(Backend):
    """Arrays of a group in a directory; a chunk is a file."""

    name = "zarr2"
    summary = "Zarr directory store through zarr-python 2 (no MPI inside)"
    suffix = ".zarr"
    libraries = ("zarr", "numcodecs")
    series: ClassVar[Mapping[str, int]] = {"zarr": 2}
    remedy = "setup/bootstrap --zarr2 makes an environment with it, see docs/install.md"
    capabilities = Capabilities(
        transfers=frozenset({"independent"}),
        codecs=CODECS,
        shuffles=SHUFFLES,
        compressors=COMPRESSORS,
        byte_orders=frozenset({"native", "big"}),
    )
    options_type = Zarr2Options
    file_per_chunk = True

    def __init__(self, options: Options, settings: Settings) -> None:
        super().__init__(options, settings)
        import zarr
        from numcodecs import blosc

        assert isinstance(options, Zarr2Options)
        self._zarr = zarr
        self._threads = _threads(options, settings)
        # Set for the whole process, so each case sets its own.
        blosc.set_nthreads(self._threads)

    @classmethod
    def refuse(
        cls, parameters: Parameters, options: Options, specs: Sequence[ArraySpec], cuts: Cuts
    ) -> str | None:
        return refuse_chunks(2, None, specs, cuts)

    def create(self, path: str, comm: MPI.Intracomm | None) -> Store:
        """Let rank 0 create the group; ranks that create one together destroy each other's."""

        def make() -> Any:
            if comm is None or comm.rank == 0:
                return self._zarr.open_group(path, mode="w-")
            return None

        group = make() if comm is None else together(comm, make)
        if group is None:
            group = self._zarr.open_group(path, mode="r+")
        return Zarr2Store(self._zarr, group, path, comm, self.options, created=True)

    def open(self, path: str, comm: MPI.Intracomm | None) -> Store:
        group = self._zarr.open_group(path, mode="r")
        return Zarr2Store(self._zarr, group, path, comm, self.options, created=False)

    def describe(self, path: str) -> StoredAs:
        _, array = next(self._zarr.open_group(path, mode="r").arrays())
        codec = "none" if array.compressor is None else codec_name(array.compressor)
        return StoredAs(chunks=array.chunks, codec=codec, fill="never", more={"format": "2"})

    def stored_chunks(self, path: str, name: str) -> StoredChunks:
        return chunks_on_disk(path, name)

    def stored_part(self, path: str, name: str, box: Box) -> StoredChunks:
        return part_of_zarr(path, name, box)

    def notes(self) -> tuple[str, ...]:
        return (
            "no library flush: every write goes to a file at once",
            "no chunk cache: every call decodes the chunks that it touches",
            f"chunks one after another in one thread; threads of Blosc: {self._threads}",
        )


def _threads(options: Zarr2Options, settings: Settings) -> int:
    """Return how many threads Blosc has; numcodecs's own rule is that of its ``__init__``."""
    usual = min(_MOST_THREADS, multiprocessing.cpu_count())
    return options.blosc_threads or (1 if settings == "matched" else usual)


class Zarr2Store(ZarrStore):
    """A group in a directory, shared out to ranks as `ZarrStore` does."""

    @property
    def _writes_empty_chunks(self) -> bool:
        assert isinstance(self._options, Zarr2Options)
        return self._options.write_empty_chunks is not False

    def _create(self, spec: ArraySpec) -> Any:
        told: dict[str, Any] = {}
        if isinstance(spec.chunks, tuple):
            told["chunks"] = spec.chunks
        if spec.codec != "library":
            told["compressor"] = compressor(2, spec)
        return self._group.create_dataset(
            spec.name,
            shape=spec.shape,
            dtype=spec.stored_dtype,
            write_empty_chunks=self._writes_empty_chunks,
            **told,
        )

    def arrays(self, specs: Iterable[ArraySpec]) -> Mapping[str, Array]:
        return {spec.name: self._array(self._opened(spec.name), spec) for spec in specs}

    def _opened(self, name: str) -> Any:
        if self._writes_empty_chunks or not self._created:
            return self._group[name]
        # The metadata do not say whether to write empty chunks, so whoever opens must.
        return self._zarr.open_array(
            self._group.store, path=name, mode="r+", write_empty_chunks=False
        )

    def _array(self, array: Any, spec: ArraySpec) -> Array:
        return Zarr2Array(array, os.path.join(self._path, spec.name), self._chunk_files)


class Zarr2Array(Array):
    """A Zarr array; each call moves one box through zarr-python."""

    def __init__(self, array: Any, directory: str, written: set[str]) -> None:
        self._array = array
        self._directory = directory
        self._written = written

    def writer(self, box: Box, buffer: Buffer, collective: bool) -> Call:
        if box.size == 0:
            return _nothing
        self._written.update(self._files(box))
        return partial(self._array.set_basic_selection, box.slices, buffer)

    def reader(self, box: Box, out: Buffer, collective: bool) -> Call:
        if box.size == 0:
            return lambda: out
        return partial(self._array.get_basic_selection, box.slices, out=out)

    def touched(self, box: Box) -> Touched:
        found = self.chunking(False)
        return touched_chunks(box, found.chunks, None if found.compressed else found.chunk_bytes)

    def chunking(self, collective: bool) -> Chunking:
        return Chunking(
            shape=self._array.shape,
            chunks=self._array.chunks,
            itemsize=int(self._array.dtype.itemsize),
            compressed=bool(self._array.compressor or self._array.filters),
            cache=None,
        )

    def _files(self, box: Box) -> Iterator[str]:
        ranges = [
            range(a // c, -(-b // c))
            for a, b, c in zip(box.start, box.stop, self._array.chunks, strict=True)
        ]
        for place in itertools.product(*ranges):
            yield os.path.join(self._directory, ".".join(map(str, place)))


def _nothing() -> None:
    """Move nothing: an empty box touches no chunk."""
