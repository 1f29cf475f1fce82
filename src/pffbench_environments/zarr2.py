"""The backend `zarr` with zarr-python 2, which has format 2 only.

An environment holds one of zarr-python 2 and 3, so a run of several environments compares them.
Both have one name and the same options, so that environments with either of them run the same case.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from msgspec.structs import replace

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Buffer, Call, Edges, NotInstalled, Store
from pffbench.backends.directory import create_on_root
from pffbench.backends.inspection import Chunking
from pffbench.backends.mapped_attributes import MappedAttributes
from pffbench.backends.traits import Inquiry
from pffbench.backends.zarr.format import NUMCODECS_SHUFFLES, compressor, shuffle_filter
from pffbench.backends.zarr.settings import ZarrOptions, zarr_version
from pffbench.backends.zarr.store import GroupArray, GroupStore, ZarrDirectory
from pffbench.case import Parameters, Settings
from pffbench.geometry.box import Box, Shape

if TYPE_CHECKING:
    from mpi4py import MPI

#: Most threads that numcodecs lets Blosc use by default.
_MOST_THREADS = 8
#: C-Blosc reads this variable in every call; it overrides the setting.
_VARIABLE = "BLOSC_NTHREADS"


class Zarr2(ZarrDirectory[ZarrOptions]):
    """Arrays of a group in a directory; a chunk is a file."""

    name = "zarr"
    title = "Zarr"
    summary = "Zarr directory store through zarr-python 2 (no MPI inside)"
    libraries = ("zarr", "numcodecs")
    series: ClassVar[Mapping[str, tuple[int, ...]]] = {"zarr": (2,)}
    capabilities = replace(
        ZarrDirectory.capabilities,
        shuffles=NUMCODECS_SHUFFLES,
        byte_orders=frozenset({"native", "big"}),
        new_arrays=frozenset({"independent"}),
    )

    def __init__(self, options: ZarrOptions, settings: Settings) -> None:
        super().__init__(options, settings)
        import zarr

        self._zarr = zarr
        self._threads = 1 if settings == "matched" else _usual_threads()
        self.notes = (
            "no library flush: every write goes to a file at once",
            "no chunk cache: every call decodes the chunks that it touches",
            f"chunks one after another in one thread; threads of Blosc: {self._threads}",
        )

    @classmethod
    def refuse(
        cls, parameters: Parameters, options: ZarrOptions, specs: Sequence[ArraySpec], edges: Edges
    ) -> str | None:
        if what := _beyond_version_2(options, parameters):
            return NotInstalled(f"{what} needs zarr-python 3, and {zarr_version()} is installed")
        return super().refuse(parameters, options, specs, edges)

    def create(self, path: str, comm: MPI.Intracomm | None) -> Store:
        """Let rank 0 create the group; concurrent creation would destroy it."""
        make, find = (partial(self._zarr.open_group, path, mode=mode) for mode in ("w-", "r+"))
        return self._store(create_on_root(comm, make, find), path, comm, created=True)

    def open(self, path: str, comm: MPI.Intracomm | None) -> Store:
        return self._store(self._zarr.open_group(path, mode="r"), path, comm, created=False)

    def _store(self, group: Any, path: str, comm: MPI.Intracomm | None, *, created: bool) -> Store:
        empty = self.options.write_empty_chunks is not False
        return Zarr2Store(
            group,
            self._threads,
            path,
            comm,
            zarr_format=2,
            created=created,
            empty_chunks=empty,
        )


def _beyond_version_2(options: ZarrOptions, parameters: Parameters) -> str | None:
    """Return what zarr-python 2 lacks of a case, or None."""
    if options.format == 3:
        return "zarr.format: 3"
    for field in msgspec.structs.fields(options):
        known = field.name in ("format", "write_empty_chunks")
        if not known and getattr(options, field.name) != field.default:
            return f"zarr.{field.name}"
    changes = parameters.changes_arrays
    return f"backend zarr in workload {parameters.workload}" if changes else None


def _usual_threads() -> int:
    """Return the library's number of threads for Blosc: the variable, or what numcodecs takes."""
    asked = os.environ.get(_VARIABLE, "")
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    return min(_MOST_THREADS, multiprocessing.cpu_count())


class Zarr2Array(GroupArray):
    """A Zarr array, moved through zarr-python."""

    def write_call(self, box: Box, buffer: Buffer) -> Call:
        return partial(self._array.__setitem__, box.slices, buffer)

    def read_call(self, box: Box, out: Buffer) -> Call:
        return partial(self._array.__getitem__, box.slices)

    @property
    def grid(self) -> Shape:
        found: Shape = self._array.chunks
        return found

    def layout(self, collective: bool) -> Chunking:
        return Chunking(
            chunks=self._array.chunks,
            itemsize=int(self._array.dtype.itemsize),
            compressed=bool(self._array.compressor or self._array.filters),
            cache=None,
        )


class Zarr2Store(MappedAttributes, GroupStore):
    """A group in a directory.

    Parameters
    ----------
    group : zarr.Group
        The open group.
    threads : int
        Threads of Blosc while the store is open: both the library's setting and the variable in
        the environment hold for the whole process.
    path, comm, more
        As of `GroupStore`.
    """

    array_type = Zarr2Array

    def __init__(
        self, group: Any, threads: int, path: str, comm: MPI.Intracomm | None, **more: Any
    ) -> None:
        super().__init__(path, comm, **more)
        from numcodecs import blosc

        self._group = group
        self._blosc = blosc
        blosc.set_nthreads(threads)
        self._asked = os.environ.pop(_VARIABLE, None)

    def transfer_facts(self) -> dict[str, str]:
        """Return the number of threads that Blosc actually had."""
        return {"blosc_threads": str(self._blosc.get_nthreads())}

    def close(self) -> None:
        """Restore the environment; a directory store holds no open file."""
        if self._asked is not None:
            os.environ[_VARIABLE] = self._asked

    def create_array(self, spec: ArraySpec) -> Call:
        told: dict[str, Any] = {}
        if isinstance(spec.chunks, tuple):
            told["chunks"] = spec.chunks
        if spec.codec != "library":
            told["compressor"] = compressor(2, spec)
            told["filters"] = [shuffle_filter(spec)] if spec.shuffled_before else None
        return partial(
            self._group.create_dataset,
            spec.name,
            shape=spec.shape,
            dtype=spec.stored_dtype,
            write_empty_chunks=self.empty_chunks,
            **told,
        )

    def inquire(self) -> Inquiry:
        return {name: (found, found.shape, found.dtype) for name, found in self._group.arrays()}

    def open_array(self, spec: ArraySpec) -> Call:
        if self.empty_chunks or not self.created:
            return partial(self._group.__getitem__, spec.name)
        import zarr

        # The metadata do not state whether to write empty chunks, so the setting is passed at
        # opening.
        return partial(
            zarr.open_array, self._group.store, path=spec.name, mode="r+", write_empty_chunks=False
        )
