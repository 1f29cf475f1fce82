"""An open netCDF-4 file: its variables, how they are made, and how data move."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

from pffbench.backends import filters
from pffbench.backends.base import (
    Array,
    ArraySpec,
    Buffer,
    Call,
    Store,
    Touched,
)
from pffbench.backends.chunkcache import MATCHED_CHUNK_CACHE, ChunkCache, Chunking
from pffbench.backends.stored import touched_chunks
from pffbench.case import Settings
from pffbench.parallel.decomposition import Box

if TYPE_CHECKING:
    from mpi4py import MPI

    from pffbench.backends.netcdf4 import NetCdf4Options


class NetCdf4Store(Store):
    """A netCDF-4 file that ranks have open together, or one rank alone."""

    def __init__(
        self,
        dataset: Any,
        path: str,
        comm: MPI.Intracomm | None,
        options: NetCdf4Options,
        settings: Settings,
    ) -> None:
        self._dataset = dataset
        self._path = path
        self._shared = comm is not None
        self._options = options
        self._settings = settings
        # With a cache of its own a variable is opened once more, which is collective.
        self.collective_lookup = self._shared and bool(options.chunk_cache_settings)

    def files(self) -> set[str]:
        return {self._path}

    def define(self, specs: Sequence[ArraySpec]) -> Mapping[str, Array]:
        """Define all variables on every rank, then leave define mode.

        netCDF-C creates the HDF5 datasets when define mode ends, by itself at the first access
        to data; ended here, that cost counts as definition and not as writing. netCDF4-python
        has no public way to end it but ``sync``, which also writes everything out.
        """
        variables = {spec.name: self._create(spec) for spec in specs}
        if self._options.enddef == "explicit":
            self._dataset._enddef()
        # After the end of define mode, which may set the cache of a variable by its chunks.
        return {spec.name: self._array(variables[spec.name], spec) for spec in specs}

    def _create(self, spec: ArraySpec) -> Any:
        axes = range(len(spec.shape))
        if self._options.dimensions == "fixed":
            lengths: dict[str, int | None] = {"records": None} if spec.growth else {}
            fixed = list(enumerate(spec.shape))[len(lengths) :]
            lengths |= {f"axis{i}_{n}": n for i, n in fixed}
        elif self._options.dimensions == "unlimited_shared":
            lengths = {f"axis{i}": None for i in axes}
        else:
            lengths = {f"axis{i}_{spec.name}": None for i in axes}
        for name, length in lengths.items():
            if name not in self._dataset.dimensions:
                self._dataset.createDimension(name, length)
        told = self._creation(spec)
        kind = spec.stored_dtype
        variable = self._dataset.createVariable(spec.name, kind, tuple(lengths), **told)
        if plugin := filters.plugin_filter(spec):
            from pffbench.backends.libnetcdf import add_filter

            add_filter(variable, plugin, shuffle=filters.shuffles_before(spec))
        return variable

    def _creation(self, spec: ArraySpec) -> dict[str, Any]:
        told: dict[str, Any] = {}
        if isinstance(spec.chunks, tuple):
            told["chunksizes"] = spec.chunks
        elif spec.chunks == "contiguous":
            told["contiguous"] = True
        if spec.codec == "gzip":
            shuffle = filters.shuffles_before(spec)
            told.update(compression="zlib", complevel=spec.level, shuffle=shuffle)
        elif spec.codec == "szip":
            told.update(
                compression="szip", szip_coding="nn", szip_pixels_per_block=filters.SZIP_BLOCK
            )
        if self._options.quantize is not None:
            told.update(significant_digits=self._options.quantize, quantize_mode="BitRound")
        fill = self._options.fill
        if fill is False or (fill is None and spec.fill == "none"):
            told["fill_value"] = False
        if spec.byte_order == "big":
            told["endian"] = "big"
        return told

    def _array(self, variable: Any, spec: ArraySpec) -> Array:
        if self._settings == "matched":
            variable.set_auto_maskandscale(False)
            self._match_cache(variable, spec)
        if (cache := self._options.chunk_cache_settings) and variable.chunking() != "contiguous":
            variable.set_var_chunk_cache(**cache)
        return NetCdf4Array(variable, self._shared)

    def _match_cache(self, variable: Any, spec: ArraySpec) -> None:
        """Undo a cache that netCDF-C has enlarged so that it holds chunks larger than it.

        It does so for files of one process only, and not in all versions.
        """
        wanted = MATCHED_CHUNK_CACHE
        if self._shared or not isinstance(spec.chunks, tuple):
            return
        if prod(spec.chunks) * spec.itemsize <= wanted.nbytes:
            return
        if variable.get_var_chunk_cache()[0] > wanted.nbytes:
            variable.set_var_chunk_cache(wanted.nbytes, wanted.slots, wanted.preemption)

    def arrays(self, specs: Iterable[ArraySpec]) -> Mapping[str, Array]:
        variables = self._dataset.variables
        return {spec.name: self._array(variables[spec.name], spec) for spec in specs}

    def flush(self) -> None:
        """Write everything out (``nc_sync``); with MPI this syncs the file too."""
        self._dataset.sync()

    def close(self) -> None:
        self._dataset.close()


class NetCdf4Array(Array):
    """A variable. Slicing one reads into a new array: the library offers no other way."""

    def __init__(self, variable: Any, shared: bool) -> None:
        self._variable = variable
        self._shared = shared

    def writer(self, box: Box, buffer: Buffer, collective: bool) -> Call:
        self._set_mode(collective)
        if box.size == 0:
            return self._take_part("put") if collective else _nothing
        return partial(self._variable.__setitem__, box.slices, buffer)

    def reader(self, box: Box, out: Buffer, collective: bool) -> Call:
        self._set_mode(collective)
        if box.size == 0:
            return self._take_part("get") if collective else _nothing
        return partial(self._variable.__getitem__, box.slices)

    def touched(self, box: Box) -> Touched | None:
        """Tell the chunks; the library does not say where in the file a contiguous variable is."""
        chunks = self._variable.chunking()
        if chunks == "contiguous":
            return None
        nbytes = prod(chunks) * int(self._variable.dtype.itemsize)
        return touched_chunks(box, tuple(chunks), None if self._compressed else nbytes)

    @property
    def _compressed(self) -> bool:
        from pffbench.backends.libnetcdf import filters_of

        return bool(filters_of(self._variable))

    def chunking(self, collective: bool) -> Chunking | None:
        """Tell the chunks; collective transfers pass the cache by, as they do in HDF5."""
        chunks = self._variable.chunking()
        if chunks == "contiguous":
            return None
        cached = not (self._shared and collective)
        return Chunking(
            shape=self._variable.shape,
            chunks=tuple(chunks),
            itemsize=int(self._variable.dtype.itemsize),
            compressed=self._compressed,
            cache=ChunkCache(*self._variable.get_var_chunk_cache()) if cached else None,
        )

    def _set_mode(self, collective: bool) -> None:
        if self._shared:
            self._variable.set_collective(collective)

    def _take_part(self, direction: str) -> Call:
        """Return a call that moves nothing: netCDF4-python would skip it and hang the others."""
        from pffbench.backends.libnetcdf import empty_transfer

        return empty_transfer(self._variable, direction)


def _nothing() -> None:
    """Move nothing: outside collective transfers an empty box needs no call."""
