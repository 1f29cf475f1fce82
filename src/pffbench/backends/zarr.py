"""Zarr directory stores through zarr-python 3, formats 2 and 3."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from pffbench.backends.base import ArraySpec, Cuts, Store
from pffbench.backends.sharing import made_by_root
from pffbench.backends.zarr_directory import ZarrDirectory
from pffbench.backends.zarr_options import ZarrOptions
from pffbench.backends.zarr_rules import refuse_pipeline
from pffbench.backends.zarr_store import ZarrStore
from pffbench.backends.zarr_threads import (
    concurrency_of,
    end_thread_in_time,
    in_each_thread,
    pipeline_settings,
    thread_notes,
    writes_empty_chunks,
)
from pffbench.case import Options, Parameters, Settings

if TYPE_CHECKING:
    from mpi4py import MPI


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
        # create itself takes whether to write empty chunks from here only.
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
        return reason or super().refuse(parameters, options, specs, cuts)

    @classmethod
    def optional_libraries(cls, parameters: Parameters, options: Options) -> tuple[str, ...]:
        assert isinstance(options, ZarrOptions)
        return () if options.pipeline == "library" else (options.pipeline,)

    def create(self, path: str, comm: MPI.Intracomm | None) -> Store:
        """Let rank 0 create the group; ranks that create one together destroy each other's."""
        assert isinstance(self.options, ZarrOptions)
        make = partial(self._zarr.create_group, path, zarr_format=self.options.format)
        group = made_by_root(comm, make, partial(self._zarr.open_group, path, mode="r+"))
        return self._store(group, path, comm, created=True)

    def open(self, path: str, comm: MPI.Intracomm | None) -> Store:
        return self._store(self._zarr.open_group(path, mode="r"), path, comm)

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
