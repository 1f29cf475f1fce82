"""Zarr through zarr-python 3, formats 2 and 3."""

from __future__ import annotations

import atexit
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec.structs import replace

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Buffer, Call, Edges, Store
from pffbench.backends.directory import create_on_root, is_root
from pffbench.backends.inspection import Chunking, places
from pffbench.backends.mapped_attributes import MappedAttributes
from pffbench.backends.traits import Inquiry
from pffbench.backends.zarr.format import (
    NUMCODECS_SHUFFLES,
    chunking_of,
    compression,
    encoding,
    places_in_parts,
)
from pffbench.backends.zarr.settings import (
    ZarrOptions,
    apply_config,
    concurrency_of,
    read_back,
    refuse_settings,
    writes_empty_chunks,
)
from pffbench.backends.zarr.store import GroupStore, GrowingArray, ZarrDirectory
from pffbench.case import Parameters, Settings
from pffbench.geometry.box import Box, Shape

if TYPE_CHECKING:
    from mpi4py import MPI


#: Seconds that a thread may take to end when the process does, among many on few cores.
_PATIENCE = 60.0


@cache
def end_thread_in_time() -> None:
    """Let zarr-python's thread end before the process; once it has been imported.

    zarr-python waits 0.2 s at exit. With more ranks than cores that is too short, and a process
    that ends during a running event loop may leave without finalizing MPI, which a launcher reports
    as a failure of the job.
    """
    atexit.register(_end_thread)  # the last one that is registered runs first


def _end_thread() -> None:
    from zarr.core.sync import iothread, loop

    if loop[0] is not None and iothread[0] is not None:
        loop[0].call_soon_threadsafe(loop[0].stop)
        iothread[0].join(timeout=_PATIENCE)


def in_each_thread(act: Callable[[], None]) -> None:
    """Call a function once in each thread in which zarr-python processes chunks."""
    from zarr.core import codec_pipeline
    from zarr.core.sync import loop

    own = None if loop[0] is None else getattr(loop[0], "_default_executor", None)
    for pool in (own, getattr(codec_pipeline, "_pool", None)):
        if count := len(getattr(pool, "_threads", ())):
            _in_each_of(pool, count, act)


def _in_each_of(pool: Any, count: int, act: Callable[[], None]) -> None:
    meeting = threading.Barrier(count)  # a thread that waits takes no second task

    def act_once() -> None:
        meeting.wait(_PATIENCE)
        act()

    for done in [pool.submit(act_once) for _ in range(count)]:
        done.result(_PATIENCE)


def thread_notes(options: ZarrOptions, settings: Settings) -> tuple[str, ...]:
    """Return a note on the number of threads, for the result row."""
    if options.pipeline == "library":
        # numcodecs lets Blosc use threads of its own in the main thread only; this is another.
        at_once = concurrency_of(options, settings)
        return (f"chunks under way at a time: {at_once}, each in one thread; Blosc uses no other",)
    workers = options.workers or (1 if settings == "matched" else "one a core")
    found = f"codec pipeline {options.pipeline}, threads: {workers}"
    if options.pipeline == "fused":
        return (found,)
    return (found, "chunks that hold nothing but the fill value are not written")


class ZarrArray(GrowingArray):
    """A Zarr array, moved through zarr-python, with the settings that were asked for."""

    _store: ZarrStore

    def __init__(self, store: ZarrStore, spec: ArraySpec, array: Any) -> None:
        super().__init__(store, spec, array)
        store.in_force = read_back(array, store.options)

    def write_call(self, box: Box, buffer: Buffer) -> Call:
        return partial(self._array.__setitem__, box.slices, buffer)

    def read_call(self, box: Box, out: Buffer) -> Call:
        return partial(self._array.__getitem__, box.slices)

    def resize(self, shape: Shape) -> Any:
        self._array.resize(shape)
        return self._array

    @property
    def grid(self) -> Shape:
        found: Shape = self._array.shards or self._array.chunks
        return found

    def places(self, box: Box) -> Iterable[Shape]:
        if self._store.options.chunk_grid == "rectilinear":
            return places_in_parts(box, self._array.write_chunk_sizes)
        return places(box, self.grid)

    def layout(self, collective: bool) -> Chunking | None:
        if self._store.options.chunk_grid == "rectilinear":
            return None
        return chunking_of(self._array)


class ZarrStore(MappedAttributes, GroupStore):
    """A group in a directory.

    Parameters
    ----------
    group : zarr.Group
        The open group.
    options : ZarrOptions
        How arrays are made.
    path, comm, more
        As of `GroupStore`.
    """

    array_type = ZarrArray

    def __init__(
        self,
        group: Any,
        options: ZarrOptions,
        path: str,
        comm: MPI.Intracomm | None,
        **more: bool,
    ) -> None:
        super().__init__(path, comm, zarr_format=options.format, **more)
        self._group = group
        self.options = options
        #: Settings that the arrays opened so far have.
        self.in_force: dict[str, str] = {}

    def transfer_facts(self) -> dict[str, str]:
        """Return the settings that the arrays really had."""
        return self.in_force

    def create_array(self, spec: ArraySpec) -> Call:
        told: dict[str, Any] = {}
        if self.options.chunk_grid == "rectilinear":
            told["chunks"] = _grid_of(spec)
        elif isinstance(spec.chunks, tuple):
            told["chunks"] = spec.chunks
        if self.options.shards is not None:
            told["shards"] = self.options.shards
        if spec.codec != "library":
            told |= compression(self.zarr_format, spec)
        told |= encoding(self.zarr_format, spec)
        return partial(self._group.create_array, spec.name, shape=spec.shape, **told)

    def inquire(self) -> Inquiry:
        return {name: (found, found.shape, found.dtype) for name, found in self._group.arrays()}

    def open_array(self, spec: ArraySpec) -> Call:
        return partial(self._group.__getitem__, spec.name)

    def close(self) -> None:
        """Let rank 0 consolidate the metadata of a new store; a directory holds no open file."""
        if self.options.consolidated and self.created and is_root(self.comm):
            import zarr

            with warnings.catch_warnings():  # zarr-python says that format 3 lacks a rule for it
                warnings.simplefilter("ignore")
                zarr.consolidate_metadata(self._group.store)


def _grid_of(spec: ArraySpec) -> Any:
    """Return the grid whose chunks are the ranks' parts.

    Stored as rectilinear also where the parts are equal, so that ranks of any number do the same.
    """
    from zarr.core.metadata.v3 import RectilinearChunkGridMetadata

    return RectilinearChunkGridMetadata(chunk_shapes=spec.parts)


class Zarr(ZarrDirectory[ZarrOptions]):
    """Arrays of a group in a directory; a chunk or a shard is a file."""

    name = "zarr"
    title = "Zarr"
    summary = "Zarr directory store through zarr-python (no MPI inside)"
    libraries = ("zarr", "numcodecs")
    series: ClassVar[Mapping[str, tuple[int, ...]]] = {"zarr": (3,)}
    capabilities = replace(
        ZarrDirectory.capabilities,
        shuffles=NUMCODECS_SHUFFLES,
        byte_orders=frozenset({"native", "big"}),
        option_libraries={("pipeline", "zarrs"): "zarrs"},
        new_arrays=frozenset({"independent"}),
    )

    def __init__(self, options: ZarrOptions, settings: Settings) -> None:
        super().__init__(options, settings)
        import zarr

        end_thread_in_time()
        # At each array with a shuffle: that other programs may lack it, which the documents say.
        warnings.filterwarnings("ignore", "Numcodecs codecs are not in the Zarr version 3")
        self._zarr = zarr
        self._empty_chunks = writes_empty_chunks(options, settings)
        apply_config(options, settings)
        self.notes = (
            "no library flush: every write goes to a file at once",
            "no chunk cache: every call decodes the chunks that it touches",
            *thread_notes(options, settings),
        )

    @classmethod
    def refuse(
        cls, parameters: Parameters, options: ZarrOptions, specs: Sequence[ArraySpec], edges: Edges
    ) -> str | None:
        if reason := refuse_settings(options, parameters, specs):
            return reason
        if options.consolidated and any(spec.growth for spec in specs):
            return "zarr.consolidated: the metadata of arrays that grow would be those from before"
        if options.chunk_grid == "rectilinear":
            return None  # no two ranks share a chunk
        return super().refuse(parameters, options, specs, edges)

    def create(self, path: str, comm: MPI.Intracomm | None) -> Store:
        """Let rank 0 create the group; concurrent creation would destroy it."""
        make = partial(self._zarr.create_group, path, zarr_format=self.options.format)
        group = create_on_root(comm, make, partial(self._zarr.open_group, path, mode="r+"))
        return self._store(group, path, comm, created=True)

    def open(self, path: str, comm: MPI.Intracomm | None) -> Store:
        return self._store(self._zarr.open_group(path, mode="r"), path, comm)

    def reopen(self, path: str, comm: MPI.Intracomm | None) -> Store:
        return self._store(self._zarr.open_group(path, mode="r+"), path, comm)

    def _store(
        self, group: Any, path: str, comm: MPI.Intracomm | None, *, created: bool = False
    ) -> Store:
        empty = self._empty_chunks
        return ZarrStore(group, self.options, path, comm, created=created, empty_chunks=empty)

    def forget(self, overwrite: Callable[[], None]) -> None:
        overwrite()
        in_each_thread(overwrite)
