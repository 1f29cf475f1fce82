"""Zarr directory stores through zarr-python 3, formats 2 and 3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pffbench.backends.base import (
    ArraySpec,
    Backend,
    Capabilities,
    Cuts,
    Store,
    StoredAs,
)
from pffbench.backends.chunkcache import StoredChunks
from pffbench.backends.stored_parts import part_of_zarr
from pffbench.backends.zarr_chunks import chunks_on_disk
from pffbench.backends.zarr_codecs import CODECS, COMPRESSORS, SHUFFLES, codec_name
from pffbench.backends.zarr_options import ZarrOptions
from pffbench.backends.zarr_rules import refuse_chunks, refuse_pipeline
from pffbench.backends.zarr_store import ZarrStore
from pffbench.backends.zarr_threads import (
    concurrency_of,
    end_thread_in_time,
    pipeline_settings,
    thread_notes,
    writes_empty_chunks,
)
from pffbench.case import Options, Parameters, Settings
from pffbench.parallel.agreement import together
from pffbench.parallel.decomposition import Box

if TYPE_CHECKING:
    from mpi4py import MPI


class Zarr(Backend):
    """Arrays of a group in a directory; a chunk or a shard is a file."""

    name = "zarr"
    summary = "Zarr directory store through zarr-python (no MPI inside)"
    suffix = ".zarr"
    libraries = ("zarr", "numcodecs")
    series: ClassVar[Mapping[str, int]] = {"zarr": 3}
    capabilities = Capabilities(
        transfers=frozenset({"independent"}),
        codecs=CODECS,
        shuffles=SHUFFLES,
        compressors=COMPRESSORS,
        byte_orders=frozenset({"native", "big"}),
        changes=True,
    )
    options_type = ZarrOptions
    file_per_chunk = True

    def __init__(self, options: Options, settings: Settings) -> None:
        super().__init__(options, settings)
        import zarr

        assert isinstance(options, ZarrOptions)
        end_thread_in_time()
        self._zarr = zarr
        self._concurrency = concurrency_of(options.concurrency, settings)
        empty = writes_empty_chunks(options.write_empty_chunks, options.pipeline, settings)
        # Set for the whole process, so each case sets its own. An array that a rank did not
        # create itself takes whether to write empty chunks from here only.
        zarr.config.set(
            {
                "async.concurrency": self._concurrency,
                **pipeline_settings(options.pipeline, settings),
                "array.write_empty_chunks": empty,
            }
        )

    @classmethod
    def refuse(
        cls, parameters: Parameters, options: Options, specs: Sequence[ArraySpec], cuts: Cuts
    ) -> str | None:
        assert isinstance(options, ZarrOptions)
        return refuse_pipeline(options.pipeline, options.write_empty_chunks) or refuse_chunks(
            options.format, options.shards, specs, cuts
        )

    @classmethod
    def optional_libraries(cls, parameters: Parameters, options: Options) -> tuple[str, ...]:
        assert isinstance(options, ZarrOptions)
        return () if options.pipeline == "library" else (options.pipeline,)

    def create(self, path: str, comm: MPI.Intracomm | None) -> Store:
        """Let rank 0 create the group; ranks that create one together destroy each other's."""
        assert isinstance(self.options, ZarrOptions)
        zarr_format = self.options.format

        def make() -> Any:
            if comm is None or comm.rank == 0:
                return self._zarr.create_group(path, zarr_format=zarr_format)
            return None

        group = make() if comm is None else together(comm, make)
        if group is None:
            group = self._zarr.open_group(path, mode="r+")
        return ZarrStore(self._zarr, group, path, comm, self.options, created=True)

    def open(self, path: str, comm: MPI.Intracomm | None) -> Store:
        assert isinstance(self.options, ZarrOptions)
        group = self._zarr.open_group(path, mode="r")
        return ZarrStore(self._zarr, group, path, comm, self.options, created=False)

    def reopen(self, path: str, comm: MPI.Intracomm | None) -> Store:
        assert isinstance(self.options, ZarrOptions)
        group = self._zarr.open_group(path, mode="r+")
        return ZarrStore(self._zarr, group, path, comm, self.options, created=False)

    def describe(self, path: str) -> StoredAs:
        _, array = next(self._zarr.open_group(path, mode="r").arrays())
        more = {"format": str(array.metadata.zarr_format)}
        if array.shards is not None:
            more["shards"] = "×".join(map(str, array.shards))
        codec = ", ".join(map(codec_name, array.compressors)) or "none"
        return StoredAs(chunks=array.chunks, codec=codec, fill="never", more=more)

    def stored_chunks(self, path: str, name: str) -> StoredChunks:
        return chunks_on_disk(path, name)

    def stored_part(self, path: str, name: str, box: Box) -> StoredChunks:
        return part_of_zarr(path, name, box)

    def notes(self) -> tuple[str, ...]:
        return (
            "no library flush: every write goes to a file at once",
            "no chunk cache: every call decodes the chunks that it touches",
            *thread_notes(self._concurrency),
        )
