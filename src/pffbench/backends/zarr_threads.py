"""How many threads zarr-python uses, and what it lets encode and decode chunks."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

from pffbench.case import Settings

_PIPELINES = {
    "library": "zarr.core.codec_pipeline.BatchedCodecPipeline",
    "zarrs": "zarrs.ZarrsCodecPipeline",
}


#: Seconds that a thread may take to end when the process does, among many on few cores.
_PATIENCE = 60.0


@cache
def end_thread_in_time() -> None:
    """Let zarr-python's thread end before the process; once it has been imported.

    zarr-python itself waits 0.2 s at exit. With more ranks than cores that is too short, and a
    process that ends beside a running event loop may leave without ending MPI, which a launcher
    takes for a failure of the job.
    """
    atexit.register(_end_thread)  # the last one that is registered runs first


def _end_thread() -> None:
    from zarr.core.sync import iothread, loop

    if loop[0] is not None and iothread[0] is not None:
        loop[0].call_soon_threadsafe(loop[0].stop)
        iothread[0].join(timeout=_PATIENCE)


def in_each_thread(act: Callable[[], None]) -> None:
    """Do something once in each thread that zarr-python encodes, decodes and reads chunks in."""
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
    """Return how many chunks a call has under way at a time: one in ``matched``."""
    import zarr

    usual: int = zarr.config.defaults[0]["async"]["concurrency"]
    return asked or (1 if settings == "matched" else usual)


def pipeline_settings(pipeline: str, settings: Settings) -> dict[str, Any]:
    """Return what `zarr.config` is told so that a pipeline is used, with one thread if matched.

    zarr-python makes its pool of threads once in a process, as large as the configuration says
    by then; it is made here, before the size is meant for zarrs alone.
    """
    threads = None
    if pipeline == "zarrs":
        from zarr.core.sync import _get_executor

        _get_executor()
        threads = 1 if settings == "matched" else None
    return {"codec_pipeline.path": _PIPELINES[pipeline], "threading.max_workers": threads}


def writes_empty_chunks(asked: bool | None, pipeline: str, settings: Settings) -> bool:
    """Whether chunks that hold nothing but the fill value are written: in ``matched``.

    zarrs 0.2.3 never writes them, whatever the configuration of zarr-python says.
    """
    if asked is not None:
        return asked
    return settings == "matched" and pipeline == "library"


def thread_notes(concurrency: int) -> tuple[str, ...]:
    """Say how many threads are at work, for the result row."""
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
