"""Settings of zarr-python: asked for, refused when planning, put in force, and read back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import Annotated, Any, Literal

import msgspec

from pffbench.backends import registry
from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import NotInstalled
from pffbench.backends.zarr.store import FormatOptions
from pffbench.case import Parameters, Settings


class ZarrOptions(FormatOptions, frozen=True, kw_only=True):
    """Options of Zarr; every default is zarr-python's own."""

    #: Maximum number of chunks that one call processes at the same time (``async.concurrency``),
    #: each in a separate thread. The library's default is 10. With ``matched`` it is 1. Not with
    #: ``pipeline: fused``, which has `workers`.
    concurrency: Annotated[int, msgspec.Meta(ge=1, le=10_000)] | None = None
    #: Implementation that encodes, decodes, reads and writes chunks: the default one of
    #: zarr-python, its synchronous one (``FusedCodecPipeline``, zarr-python 3.3 or newer), or the
    #: Rust library zarrs (package zarrs), without fallback to zarr-python
    #: (``codec_pipeline.strict``).
    pipeline: Literal["library", "fused", "zarrs"] = "library"
    #: Whether chunks that contain only the fill value are written. The library's default is no, so
    #: it compares every chunk with the fill value. ``matched`` writes them, except with ``pipeline:
    #: zarrs``, because zarrs 0.2.3 never writes them.
    write_empty_chunks: bool | None = None
    #: Threads of a rank that process chunks: ``codec_pipeline.max_workers`` of the fused pipeline,
    #: ``threading.max_workers`` of the others, and with ``library`` the `concurrency` unless that
    #: is given. The default of ``fused`` and ``zarrs`` is one per core. With ``matched`` each rank
    #: has one.
    workers: Annotated[int, msgspec.Meta(ge=1, le=4096)] | None = None
    #: Kind of chunk grid. ``rectilinear``: the chunk of each rank is its part, even if the parts
    #: have unequal sizes (workload ``hyperslab``, ``files: one``, ``arrays: shared``, zarr-python
    #: 3.4 or newer).
    chunk_grid: Literal["regular", "rectilinear"] = "regular"
    #: Whether the metadata of all arrays are also written together (``zarr.consolidate_metadata``)
    #: when a new store is closed, so that one request finds all arrays.
    consolidated: bool = False

    @property
    def files_at_once(self) -> int | None:
        return self.concurrency or self.workers


_PIPELINES = {
    "library": "zarr.core.codec_pipeline.BatchedCodecPipeline",
    "fused": "zarr.core.codec_pipeline.FusedCodecPipeline",
    "zarrs": "zarrs.ZarrsCodecPipeline",
}
#: First zarr-python with a value of a setting.
_SINCE = {"pipeline": ("fused", (3, 3)), "chunk_grid": ("rectilinear", (3, 4))}


@cache
def zarr_version() -> str:
    """Return the version of the installed zarr-python; it is not imported."""
    return registry.installed("zarr") or ""


def refuse_settings(
    options: ZarrOptions, parameters: Parameters, specs: Sequence[ArraySpec]
) -> str | None:
    """Return which setting cannot be in force here, or None."""
    return (
        _refuse_version(options)
        or _refuse_pipeline(options, specs)
        or _refuse_grid(options, parameters, specs)
    )


def _refuse_version(options: ZarrOptions) -> str | None:
    if zarr_version().startswith("3.0."):
        return NotInstalled(f"zarr-python {zarr_version()} is too old: 3.1 or newer is needed")
    version = zarr_version()
    for name, (value, since) in _SINCE.items():
        if getattr(options, name) != value:
            continue
        if tuple(map(int, re.findall(r"\d+", version)[:2])) < since:
            return NotInstalled(
                f"zarr.{name}: {value} needs zarr-python {since[0]}.{since[1]} or newer (Python "
                f"3.12 or newer), and {version} is installed"
            )
    return None


def _refuse_pipeline(options: ZarrOptions, specs: Sequence[ArraySpec]) -> str | None:
    pipeline = options.pipeline
    if pipeline == "fused" and any(spec.shuffled_before for spec in specs):
        return "zarr.pipeline: fused has no shuffle before a codec, which numcodecs does; use blosc"
    if pipeline == "fused" and options.concurrency is not None:
        return "zarr.concurrency: the fused pipeline takes no notice of it; give zarr.workers"
    if pipeline == "library" and (options.workers or 1) > (options.concurrency or 10_000):
        return "zarr.workers: more threads than chunks under way (zarr.concurrency) have no effect"
    if pipeline != "zarrs":
        return None
    if options.write_empty_chunks:
        return "zarr.pipeline: zarrs does not write empty chunks, even when asked"
    if find_spec("zarrs") is None:
        return NotInstalled(
            "zarr.pipeline: zarrs needs the Python package zarrs, which is not installed "
            "(pip install 'pffbench[zarrs]')"
        )
    return None


def _refuse_grid(
    options: ZarrOptions, parameters: Parameters, specs: Sequence[ArraySpec]
) -> str | None:
    if options.chunk_grid == "regular":
        return None
    what = "zarr.chunk_grid: rectilinear"
    if options.format == 2 or options.shards is not None:
        return f"{what} needs format: 3 without shards"
    if any(spec.parts is None for spec in specs):
        return f"{what} needs files: one, arrays: shared and workload hyperslab"
    if parameters.owns_chunks:
        return f"{what} has no chunks of equal shape to own; use rearranger: gather"
    by_part = parameters.chunks == "rank_part"
    if not by_part and (parameters.chunks, parameters.settings) != ("auto", "matched"):
        return f"{what} makes each rank's part a chunk, so chunks must be rank_part"
    return None


def concurrency_of(options: ZarrOptions, settings: Settings) -> int:
    """Return how many chunks a call processes at a time: one in ``matched``."""
    import zarr

    usual: int = zarr.config.defaults[0]["async"]["concurrency"]
    workers = options.workers if options.pipeline == "library" else None
    return options.concurrency or workers or (1 if settings == "matched" else usual)


def writes_empty_chunks(options: ZarrOptions, settings: Settings) -> bool:
    """Whether chunks that hold only the fill value are written: in ``matched``.

    zarrs 0.2.3 never writes them, whatever the configuration of zarr-python says.
    """
    if options.write_empty_chunks is not None:
        return options.write_empty_chunks
    return settings == "matched" and options.pipeline != "zarrs"


def apply_config(options: ZarrOptions, settings: Settings) -> None:
    """Set all that `zarr.config` has of the options, for the whole process.

    Each case sets all of it, since another one set it before. An array that a rank did not create
    takes whether to write empty chunks from here only.
    """
    import zarr

    usual = zarr.config.defaults[0]
    workers = options.workers
    if workers is None and settings == "matched" and options.pipeline != "library":
        workers = 1
    _size_pool(options.workers if options.pipeline == "library" else None)
    wanted = {
        "async.concurrency": concurrency_of(options, settings),
        "array.write_empty_chunks": writes_empty_chunks(options, settings),
        "codec_pipeline.path": _PIPELINES[options.pipeline],
        "codec_pipeline.strict": options.pipeline == "zarrs",
        "threading.max_workers": None if options.pipeline == "fused" else workers,
    }
    if "max_workers" in usual["codec_pipeline"]:
        wanted["codec_pipeline.max_workers"] = workers if options.pipeline == "fused" else None
    if "rectilinear_chunks" in usual["array"]:
        own = usual["array"]["rectilinear_chunks"]
        wanted["array.rectilinear_chunks"] = options.chunk_grid == "rectilinear" or own
    zarr.config.set(wanted)


def _size_pool(workers: int | None) -> None:
    """Give zarr-python's pool a number of threads; None for its own choice.

    It creates the pool once in a process, with the size then configured. `threading.max_workers`
    is set anew afterwards: zarrs takes it for its own threads.
    """
    import zarr
    from zarr.core import sync

    pool = sync._executor
    if pool is not None and getattr(pool, "asked_workers", None) == workers:
        return
    if pool is not None:
        pool.shutdown(wait=True)
        sync._executor = None
    zarr.config.set({"threading.max_workers": workers})
    sync._get_executor().asked_workers = workers


def _opened(array: Any) -> Any:
    """Return the asynchronous array in an array; its attribute is public in newer zarr-python."""
    return getattr(array, "async_array", None) or array._async_array


class NotInForceError(RuntimeError):
    """A setting that was asked for is not the one that the array has."""


def read_back(array: Any, options: ZarrOptions) -> dict[str, str]:
    """Return the settings that an open array really has.

    No file is read: `watched_read` counts the bytes that reading takes.

    Parameters
    ----------
    array : zarr.Array
        The array.
    options : ZarrOptions
        What was asked for.

    Raises
    ------
    NotInForceError
        One of them is not what was asked for.
    """
    pipeline = _opened(array).codec_pipeline
    used = f"{type(pipeline).__module__}.{type(pipeline).__qualname__}"
    _require_equal("pipeline", _PIPELINES[options.pipeline], used)
    if trouble := _fallback(pipeline, array):
        raise NotInForceError(f"zarr.pipeline: {options.pipeline} {trouble}")
    facts = {"pipeline": used.rpartition(".")[2], "workers": _workers(options)}
    if options.workers is not None:
        _require_equal("workers", str(options.workers), facts["workers"])
    if options.format == 3:
        grid = type(array.metadata.chunk_grid).__name__
        facts["chunk_grid"] = "rectilinear" if grid.startswith("Rectilinear") else "regular"
        _require_equal("chunk_grid", options.chunk_grid, facts["chunk_grid"])
    return facts


def _require_equal(key: str, asked: object, found: object) -> None:
    if asked != found:
        raise NotInForceError(f"zarr.{key}: {asked} was asked for, and {found} is in force")


def _fallback(pipeline: Any, array: Any) -> str:
    """Return why a pipeline would leave the work to another one; empty if it does not."""
    kind = type(pipeline).__qualname__
    if kind == "ZarrsCodecPipeline" and (pipeline.impl is None or pipeline.python_impl is not None):
        return "would leave arrays like this one to zarr-python"
    if kind != "FusedCodecPipeline":
        return ""
    from zarr.abc import store

    supports = getattr(store, "_store_supports_sync_io", None)  # since 3.4
    if pipeline.sync_transform is None or (supports and not supports(array.store)):
        return "would process this array asynchronously, as the default pipeline does"
    return ""


def _workers(options: ZarrOptions) -> str:
    """Return how many threads the pipeline may use, as the library says."""
    import zarr
    from zarr.core import codec_pipeline, sync

    if options.pipeline == "fused":
        return str(codec_pipeline._resolve_max_workers())
    if options.pipeline == "zarrs":
        return str(zarr.config.get("threading.max_workers") or "one a core")
    return str(min(sync._get_executor()._max_workers, zarr.config.get("async.concurrency")))
