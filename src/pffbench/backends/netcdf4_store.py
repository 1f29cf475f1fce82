"""An open netCDF-4 file: its variables, how they are defined and how data move."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import prod
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import msgspec
import numpy as np

from pffbench.backends import hdf5_files as filters
from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Array, Buffer, Call, Store
from pffbench.backends.hints import FileHints, hints_of_one_writer, info_of
from pffbench.backends.inspection import MATCHED_CHUNK_CACHE, ChunkCacheSettings, Chunking
from pffbench.backends.traits import Inquiry
from pffbench.case import Settings
from pffbench.geometry.box import Box
from pffbench.geometry.stretches import Stretches
from pffbench.mpi.collectives import largest

if TYPE_CHECKING:
    from mpi4py import MPI

    from pffbench.backends.netcdf3 import NetCdf3Options
    from pffbench.backends.netcdf4 import NetCdf4Options


class _Definition(msgspec.Struct, frozen=True):
    """Definition of a variable, as passed to the library."""

    #: Its dimensions and their lengths; None for an unlimited one.
    dimensions: dict[str, int | None]
    #: Names of the dimensions.
    names: tuple[str, ...]
    #: Element type in the file.
    dtype: Any
    #: Further arguments of ``createVariable``.
    settings: dict[str, Any]
    #: Adds the compression filter, if it is a plug-in of HDF5.
    add_filter: Callable[[Any], None] | None

    @classmethod
    def of(cls, spec: ArraySpec, dimensions: str, settings: dict[str, Any]) -> _Definition:
        """Return the definition of an array."""
        axes = range(len(spec.shape))
        if dimensions == "fixed":
            lengths: dict[str, int | None] = {"records": None} if spec.growth else {}
            fixed = list(enumerate(spec.shape))[len(lengths) :]
            lengths |= {f"axis{i}_{n}": n for i, n in fixed}
        elif dimensions == "unlimited_shared":
            lengths = {f"axis{i}": None for i in axes}
        else:
            lengths = {f"axis{i}_{spec.name}": None for i in axes}
        add_filter = None
        if (plugin := filters.plugin_filter(spec)) is not None:
            from pffbench.backends.libnetcdf import filter_adder

            add_filter = filter_adder(plugin, shuffle=spec.shuffled_before)
        return cls(lengths, tuple(lengths), spec.stored_dtype, settings, add_filter)

    def create(self, dataset: Any, name: str) -> Any:
        """Create the variable in an open file."""
        for dimension, length in self.dimensions.items():
            if dimension not in dataset.dimensions:
                dataset.createDimension(dimension, length)
        variable = dataset.createVariable(name, self.dtype, self.names, **self.settings)
        if self.add_filter is not None:
            self.add_filter(variable)
        return variable


class _ChunkCaches:
    """The chunk caches of variables: as asked for, equal in ``matched``, or left alone.

    Parameters
    ----------
    size : int, optional
        Bytes of each cache, as asked for.
    matched : bool
        Whether they have the size that all libraries have in ``matched``.
    """

    def __init__(self, size: int | None, *, matched: bool) -> None:
        self.size = size
        self._matched = matched

    def are_set(self, specs: Iterable[ArraySpec]) -> bool:
        """Whether the cache of any of these variables is set."""
        return self.size is not None or any(map(self._may_be_enlarged, specs))

    def set(self, variables: Iterable[tuple[ArraySpec, Any]]) -> None:
        """Set the caches of variables, which is the library's work and so on the timer."""
        wanted = MATCHED_CHUNK_CACHE
        for spec, variable in variables:
            if self._may_be_enlarged(spec) and variable.get_var_chunk_cache()[0] > wanted.nbytes:
                variable.set_var_chunk_cache(wanted.nbytes, wanted.slots, wanted.preemption)
            if self.size is not None and variable.chunking() != "contiguous":
                variable.set_var_chunk_cache(size=self.size)

    def _may_be_enlarged(self, spec: ArraySpec) -> bool:
        """Whether netCDF-C may have enlarged a cache, against ``matched``, to hold a large chunk.

        It does so for files of one process only, and not in all versions.
        """
        if not self._matched or not isinstance(spec.chunks, tuple):
            return False
        return prod(spec.chunks) * spec.itemsize > MATCHED_CHUNK_CACHE.nbytes


def open_dataset(
    library: Any,
    path: str,
    mode: Literal["r", "w", "r+"],
    comm: MPI.Intracomm | None,
    options: NetCdf4Options | NetCdf3Options,
    **more: Any,
) -> Any:
    """Open a file with netCDF4-python: on one rank, or with its hints on all ranks of `comm`."""
    if comm is None:
        return library.Dataset(path, mode, **more)
    from mpi4py import MPI

    with info_of(options, MPI.INFO_NULL) as info:
        return library.Dataset(path, mode, parallel=True, comm=comm, info=info, **more)


class NetCdf4Store(Store):
    """A netCDF-4 file, shared by ranks or open on one rank."""

    #: Whether the format has chunks, and so chunk caches.
    has_chunks: ClassVar[bool] = True

    def __init__(
        self,
        dataset: Any,
        path: str,
        comm: MPI.Intracomm | None,
        options: NetCdf4Options | NetCdf3Options,
        settings: Settings,
    ) -> None:
        self._dataset = dataset
        self._path = path
        self._comm = comm
        self._shared = comm is not None
        self._first = comm is not None and comm.rank == 0
        self._options = options
        self._settings = settings
        size = None if options.chunk_cache is None else int(options.chunk_cache)
        matched = settings == "matched" and comm is None and self.has_chunks
        self._caches = _ChunkCaches(size, matched=matched)
        # With a cache of its own a variable is opened once more, which is collective.
        self.collective_lookup = self._shared and size is not None
        self.collective_attributes = self._shared  # netCDF-C has HDF5's metadata calls collective

    def files(self) -> set[str]:
        return {self._path}

    def definer(self, specs: Sequence[ArraySpec]) -> Call:
        """Define all variables on every rank, then leave define mode.

        netCDF-C creates the HDF5 datasets when define mode ends, implicitly at the first access to
        data; ended here, the cost counts as definition and not as writing. netCDF4-python can end
        it only through ``sync``, which also writes everything out.
        """
        dimensions = self._options.dimensions
        wanted = [
            (spec.name, _Definition.of(spec, dimensions, self._creation(spec))) for spec in specs
        ]
        sets_caches = self._caches.are_set(specs)

        def define() -> list[Any]:
            made = [definition.create(self._dataset, name) for name, definition in wanted]
            if self._options.enddef == "explicit":
                self._dataset._enddef()
            if sets_caches:
                # After the end of define mode, which may set the cache of a variable by its chunks.
                self._caches.set(zip(specs, made, strict=True))
            return made

        return define

    def attribute_writers(self, values: Sequence[tuple[Array, str, int]]) -> list[Call]:
        """Prepare to set attributes, and to leave define mode, which a new one enters too."""
        calls: list[Call] = [
            partial(_variable(array).setncattr, name, value) for array, name, value in values
        ]
        return [*calls, self._dataset._enddef] if self._options.enddef == "explicit" else calls

    def attribute_readers(self, names: Sequence[tuple[Array, str]]) -> list[Call]:
        return [partial(_variable(array).getncattr, name) for array, name in names]

    def _creation(self, spec: ArraySpec) -> dict[str, Any]:
        """Return further arguments of ``createVariable``: chunks, filters, fill, byte order."""
        told: dict[str, Any] = {}
        if isinstance(spec.chunks, tuple):
            told["chunksizes"] = spec.chunks
        elif spec.chunks == "contiguous":
            told["contiguous"] = True
        codec = filters.FILTERS.get(spec.codec)
        if codec is not None and codec.netcdf is not None:
            told |= codec.netcdf(spec)
            if codec.shuffles:
                told["shuffle"] = spec.shuffled_before
        fill = self._options.fill
        if fill is False or (fill is None and spec.fill == "none"):
            told["fill_value"] = False
        if spec.byte_order == "big":
            told["endian"] = "big"
        return told

    def opener(self, specs: Sequence[ArraySpec]) -> Call:
        """Look variables up by name, which is all that opening one is in netCDF4-python."""
        dataset = self._dataset
        if not specs:
            return tuple
        if self._caches.are_set(specs):
            return partial(self._with_caches, specs)
        named = itemgetter(*(spec.name for spec in specs))
        return lambda: named(dataset.variables)

    def _with_caches(self, specs: Sequence[ArraySpec]) -> tuple[Any, ...]:
        found = tuple(self._dataset.variables[spec.name] for spec in specs)
        self._caches.set(zip(specs, found, strict=True))
        return found

    def inquire(self) -> Inquiry:
        variables = self._dataset.variables.items()
        return {name: (found, found.shape, found.dtype) for name, found in variables}

    def wrap(self, specs: Sequence[ArraySpec], returned: Any) -> Mapping[str, Array]:
        arrays: dict[str, Array] = {}
        variables = returned if isinstance(returned, (tuple, list)) else (returned,)
        for spec, variable in zip(specs, variables, strict=True):
            if self._settings == "matched":
                variable.set_auto_maskandscale(False)
            arrays[spec.name] = NetCdf4Array(variable, self._comm)
        return arrays

    def file_hints(self) -> FileHints | None:
        if not self._shared:
            return hints_of_one_writer(self._options)
        if not self._first:
            return None
        from pffbench.backends.libhdf5 import file_hints

        return file_hints(self._path, self._options)

    def flush(self) -> None:
        """Write everything out (``nc_sync``); with MPI this syncs the file too."""
        self._dataset.sync()

    def close(self) -> None:
        self._dataset.close()


class NetCdf4Array(Array):
    """A variable. Slicing one reads into a new array: the library offers no other way."""

    def __init__(self, variable: Any, comm: MPI.Intracomm | None) -> None:
        self.variable = variable
        self._comm = comm
        self._shared = comm is not None

    def writer(self, box: Box, buffer: Buffer, collective: bool) -> Call:
        self._set_mode(collective)
        if isinstance(box, Stretches):
            return self._stretch_writer(box, buffer, collective)
        if box.size == 0:
            return self._take_part("put") if collective else _nothing
        return partial(self.variable.__setitem__, box.slices, buffer)

    def reader(self, box: Box, out: Buffer, collective: bool) -> Call:
        self._set_mode(collective)
        if isinstance(box, Stretches):
            return self._stretch_reader(box, collective)
        if box.size == 0:
            return self._take_part("get") if collective else _nothing
        return partial(self.variable.__getitem__, box.slices)

    def _stretch_writer(self, stretches: Stretches, buffer: Buffer, collective: bool) -> Call:
        """Prepare a call for each box of stretches: netCDF-4 has no unions of them."""
        calls: list[Call] = []
        done = 0
        for box in stretches.boxes():
            part = buffer[done : done + box.size].reshape(box.shape)
            calls.append(partial(self.variable.__setitem__, box.slices, part))
            done += box.size
        calls += self._without_data(len(calls), "put", collective)

        def write_boxes() -> None:
            for call in calls:
                call()

        return write_boxes

    def _stretch_reader(self, stretches: Stretches, collective: bool) -> Call:
        """Prepare a call for each box of stretches, whose arrays become one."""
        calls = [partial(self.variable.__getitem__, box.slices) for box in stretches.boxes()]
        others = self._without_data(len(calls), "get", collective)
        nothing = np.empty(0, self.variable.dtype)

        def read_boxes() -> Buffer:
            found = [nothing, *(call().reshape(-1) for call in calls)]
            for call in others:
                call()
            return np.concatenate(found)

        return read_boxes

    def _without_data(self, calls: int, direction: str, collective: bool) -> list[Call]:
        """Return the calls by which this rank takes part in those that others make in addition."""
        if not collective or self._comm is None:
            return []
        return [self._take_part(direction)] * (largest(self._comm, calls) - calls)

    def layout(self, collective: bool) -> Chunking | None:
        """Return the chunks; collective transfers bypass the cache, as in HDF5.

        The library does not report the offset of a contiguous variable.
        """
        chunks = self.variable.chunking()
        if chunks == "contiguous":
            return None
        from pffbench.backends.libnetcdf import filters_of

        cached = not (self._shared and collective)
        return Chunking(
            chunks=tuple(chunks),
            itemsize=int(self.variable.dtype.itemsize),
            compressed=bool(filters_of(self.variable)),
            cache=ChunkCacheSettings(*self.variable.get_var_chunk_cache()) if cached else None,
        )

    def _set_mode(self, collective: bool) -> None:
        if self._shared:
            self.variable.set_collective(collective)

    def _take_part(self, direction: str) -> Call:
        """Return a call that moves nothing: netCDF4-python would skip it and block the others."""
        from pffbench.backends.libnetcdf import empty_transfer

        return empty_transfer(self.variable, direction)


def _variable(array: Array) -> Any:
    assert isinstance(array, NetCdf4Array)
    return array.variable


def _nothing() -> None:
    """Move nothing: outside collective transfers an empty box needs no call."""
