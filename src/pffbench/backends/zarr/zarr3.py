"""Zarr through zarr-python 3, formats 2 and 3."""

from __future__ import annotations

import atexit
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import msgspec
from msgspec.structs import replace

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Buffer, Call, Cuts, Inquiry, Store
from pffbench.backends.chunk_cache_model import Chunking
from pffbench.backends.zarr.format import chunking_of, compressor, encoding, refuse_pipeline
from pffbench.backends.zarr.store import (
    DirectoryArray,
    DirectoryStore,
    FormatOptions,
    ZarrDirectory,
    is_root,
    made_by_root,
)
from pffbench.case import Options, Parameters, Settings
from pffbench.parallel.decomposition import Box, Shape

if TYPE_CHECKING:
    from mpi4py import MPI


class ZarrOptions(FormatOptions, frozen=True, kw_only=True):
    """Options of Zarr; every default is zarr-python's own.

    In addition to `format` and `shards`:

    Parameters
    ----------
    concurrency : int, optional
        Most chunks that one call has under way at a time (``async.concurrency``), each encoded in
        a thread of its own. The library's default is 10; ``matched`` gives a rank one.
    pipeline : {"library", "zarrs"}
        Implementation that encodes, decodes, reads and writes chunks: zarr-python, or the Rust
        library zarrs (package zarrs), with one thread in ``matched`` and one a core otherwise.
    write_empty_chunks : bool, optional
        Whether chunks that hold only the fill value are written. The library's default is no, which
        compares every chunk with the fill value; ``matched`` writes them, but with
        ``pipeline: zarrs``, which does not write them even when asked (version 0.2.3).
    consolidated : bool
        Whether the metadata of all arrays are in one place too (``zarr.consolidate_metadata``),
        made when a new store is closed: one request then finds all arrays.
    """

    concurrency: Annotated[int, msgspec.Meta(ge=1, le=10_000)] | None = None
    pipeline: Literal["library", "zarrs"] = "library"
    write_empty_chunks: bool | None = None
    consolidated: bool = False


_PIPELINES = {
    "library": "zarr.core.codec_pipeline.BatchedCodecPipeline",
    "zarrs": "zarrs.ZarrsCodecPipeline",
}


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
    from zarr.core.sync import loop

    pool = None if loop[0] is None else getattr(loop[0], "_default_executor", None)
    count = len(getattr(pool, "_threads", ()))
    if pool is None or not count:
        return
    meeting = threading.Barrier(count)  # a thread that waits takes no second task

    def act_once() -> None:
        meeting.wait(_PATIENCE)
        act()

    for done in [pool.submit(act_once) for _ in range(count)]:
        done.result(_PATIENCE)


def concurrency_of(asked: int | None, settings: Settings) -> int:
    """Return how many chunks a call processes at a time: one in ``matched``."""
    import zarr

    usual: int = zarr.config.defaults[0]["async"]["concurrency"]
    return asked or (1 if settings == "matched" else usual)


def pipeline_settings(pipeline: str, settings: Settings) -> dict[str, Any]:
    """Return the `zarr.config` settings that select a pipeline, with one thread if matched.

    zarr-python creates its thread pool once in a process, with the size then configured; it is
    created here, before the size is set for zarrs alone.
    """
    threads = None
    if pipeline == "zarrs":
        from zarr.core.sync import _get_executor

        _get_executor()
        threads = 1 if settings == "matched" else None
    return {"codec_pipeline.path": _PIPELINES[pipeline], "threading.max_workers": threads}


def writes_empty_chunks(asked: bool | None, pipeline: str, settings: Settings) -> bool:
    """Whether chunks that hold only the fill value are written: in ``matched``.

    zarrs 0.2.3 never writes them, whatever the configuration of zarr-python says.
    """
    if asked is not None:
        return asked
    return settings == "matched" and pipeline == "library"


def thread_notes(concurrency: int) -> tuple[str, ...]:
    """Return a note on the number of threads, for the result row."""
    import zarr

    path, threads = (
        zarr.config.get(key) for key in ("codec_pipeline.path", "threading.max_workers")
    )
    if path == _PIPELINES["zarrs"]:
        return (
            f"codec pipeline zarrs, threads: {threads or 'one a core'}",
            "chunks that hold nothing but the fill value are not written",
        )
    # numcodecs lets Blosc use threads of its own in the main thread only, and this is another.
    return (f"chunks under way at a time: {concurrency}, each in one thread; Blosc uses no other",)


class ZarrArray(DirectoryArray):
    """A Zarr array, moved through zarr-python."""

    def write_call(self, box: Box, buffer: Buffer) -> Call:
        return partial(self._array.set_basic_selection, box.slices, buffer)

    def read_call(self, box: Box, out: Buffer) -> Call:
        from zarr.buffer.cpu import NDBuffer

        target = NDBuffer.from_numpy_array(out)
        return partial(self._array.get_basic_selection, box.slices, out=target)

    def resize(self, shape: Shape) -> Any:
        self._array.resize(shape)
        return self._array

    @property
    def grid(self) -> Shape:
        found: Shape = self._array.shards or self._array.chunks
        return found

    @property
    def shards(self) -> Shape | None:
        found: Shape | None = self._array.shards
        return found

    def chunking(self, collective: bool) -> Chunking:
        return chunking_of(self._array)


class ZarrStore(DirectoryStore):
    """A group in a directory.

    Parameters
    ----------
    group : zarr.Group
        The open group.
    options : ZarrOptions
        How arrays are made.
    path, comm, more
        As of `DirectoryStore`.
    """

    array_type = ZarrArray
    lists = True

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
        self._options = options

    def create_array(self, spec: ArraySpec) -> Any:
        told: dict[str, Any] = {}
        if isinstance(spec.chunks, tuple):
            told["chunks"] = spec.chunks
        if self._options.shards is not None:
            told["shards"] = self._options.shards
        if spec.codec != "library":
            told["compressors"] = compressor(self.zarr_format, spec)
        told |= encoding(self.zarr_format, spec)
        return self._group.create_array(spec.name, shape=spec.shape, **told)

    def inquire(self) -> Inquiry:
        return {name: (found, found.shape, found.dtype) for name, found in self._group.arrays()}

    def open_array(self, spec: ArraySpec) -> Any:
        return self._group[spec.name]

    def close(self) -> None:
        """Let rank 0 consolidate the metadata of a new store; a directory holds no open file."""
        if self._options.consolidated and self.created and is_root(self.comm):
            import zarr

            with warnings.catch_warnings():  # zarr-python says that format 3 lacks a rule for it
                warnings.simplefilter("ignore")
                zarr.consolidate_metadata(self._group.store)


class Zarr(ZarrDirectory):
    """Arrays of a group in a directory; a chunk or a shard is a file."""

    name = "zarr"
    summary = "Zarr directory store through zarr-python (no MPI inside)"
    libraries = ("zarr", "numcodecs")
    series: ClassVar[Mapping[str, int]] = {"zarr": 3}
    capabilities = replace(ZarrDirectory.capabilities, byte_orders=frozenset({"native", "big"}))
    options_type = ZarrOptions

    def __init__(self, options: Options, settings: Settings) -> None:
        super().__init__(options, settings)
        import zarr

        assert isinstance(options, ZarrOptions)
        end_thread_in_time()
        self._zarr = zarr
        self._concurrency = concurrency_of(options.concurrency, settings)
        self._empty_chunks = writes_empty_chunks(
            options.write_empty_chunks, options.pipeline, settings
        )
        # Set for the whole process, so each case sets its own. An array that a rank did not
        # create takes whether to write empty chunks from here only.
        zarr.config.set(
            {
                "async.concurrency": self._concurrency,
                **pipeline_settings(options.pipeline, settings),
                "array.write_empty_chunks": self._empty_chunks,
            }
        )

    @classmethod
    def refuse(
        cls, parameters: Parameters, options: Options, specs: Sequence[ArraySpec], cuts: Cuts
    ) -> str | None:
        assert isinstance(options, ZarrOptions)
        reason = refuse_pipeline(options.pipeline, options.write_empty_chunks)
        if options.consolidated and any(spec.growth for spec in specs):
            return "zarr.consolidated: the metadata of arrays that grow would be those from before"
        return reason or super().refuse(parameters, options, specs, cuts)

    @classmethod
    def optional_libraries(cls, parameters: Parameters, options: Options) -> tuple[str, ...]:
        assert isinstance(options, ZarrOptions)
        return () if options.pipeline == "library" else (options.pipeline,)

    def create(self, path: str, comm: MPI.Intracomm | None) -> Store:
        """Let rank 0 create the group; concurrent creation would destroy it."""
        assert isinstance(self.options, ZarrOptions)
        make = partial(self._zarr.create_group, path, zarr_format=self.options.format)
        group = made_by_root(comm, make, partial(self._zarr.open_group, path, mode="r+"))
        return self._store(group, path, comm, created=True)

    def open(self, path: str, comm: MPI.Intracomm | None) -> Store:
        return self._store(self._zarr.open_group(path, mode="r"), path, comm)

    def open_counted(self, path: str) -> tuple[Store, Callable[[], int]]:
        from pffbench.backends.zarr.requests import CountingStore

        store = CountingStore(path)
        group = self._zarr.open_group(store, mode="r")
        return self._store(group, path, None), lambda: store.requests

    def reopen(self, path: str, comm: MPI.Intracomm | None) -> Store:
        return self._store(self._zarr.open_group(path, mode="r+"), path, comm)

    def _store(
        self, group: Any, path: str, comm: MPI.Intracomm | None, *, created: bool = False
    ) -> Store:
        assert isinstance(self.options, ZarrOptions)
        empty = self._empty_chunks
        return ZarrStore(group, self.options, path, comm, created=created, empty_chunks=empty)

    def forget(self, overwrite: Callable[[], None]) -> None:
        overwrite()
        in_each_thread(overwrite)

    def notes(self) -> tuple[str, ...]:
        return (
            "no library flush: every write goes to a file at once",
            "no chunk cache: every call decodes the chunks that it touches",
            *thread_notes(self._concurrency),
        )
