"""netCDF-4 through netCDF4-python, parallel or one file per process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from pffbench.backends.base import (
    MPI_CALL_LIMIT,
    Array,
    ArraySpec,
    Backend,
    Buffer,
    Call,
    Capabilities,
    Cuts,
    Store,
    StoredAs,
)
from pffbench.backends.hdf5 import refuse_chunks
from pffbench.case import Options, Parameters, Settings
from pffbench.parallel.decomposition import Box
from pffbench.units import Size

if TYPE_CHECKING:
    from mpi4py import MPI


class NetCdf4Options(Options, frozen=True, kw_only=True):
    """Options of netCDF-4; every default is what the library does by itself.

    Parameters
    ----------
    fill : bool, optional
        Whether variables are filled before data are written. The library's default is on;
        ``matched`` switches it off.
    chunk_cache : Size, optional
        Bytes of the chunk cache of each variable (``nc_set_var_chunk_cache``).
    alignment : Size, optional
        Objects of at least this size begin at multiples of it (``nc_set_alignment``).
    """

    fill: bool | None = None
    chunk_cache: Size | None = None
    alignment: Size | None = None


class NetCdf4(Backend):
    """Variables of a netCDF-4 file with fixed dimensions."""

    name = "netcdf4"
    summary = "netCDF-4 through netCDF4-python"
    suffix = ".nc"
    libraries = ("netCDF4",)
    capabilities = Capabilities(codecs=frozenset({"none", "gzip"}), caller_buffer=False)
    options_type = NetCdf4Options
    call_limit = MPI_CALL_LIMIT

    def __init__(self, options: Options, settings: Settings) -> None:
        super().__init__(options, settings)
        import netCDF4

        assert isinstance(options, NetCdf4Options)
        self._netcdf4 = netCDF4
        # The alignment holds for all files of the process, so each case sets its own.
        alignment = 1 if options.alignment is None else int(options.alignment)
        if netCDF4.__has_set_alignment__:
            netCDF4.set_alignment(alignment, alignment)

    @classmethod
    def refuse(
        cls, parameters: Parameters, options: Options, specs: Sequence[ArraySpec], cuts: Cuts
    ) -> str | None:
        return refuse_chunks(parameters, specs)

    def create(self, path: str, comm: MPI.Intracomm | None) -> Store:
        return self._store(path, "w", comm, clobber=False, format="NETCDF4")

    def open(self, path: str, comm: MPI.Intracomm | None) -> Store:
        return self._store(path, "r", comm)

    def _store(
        self, path: str, mode: Literal["r", "w"], comm: MPI.Intracomm | None, **told: Any
    ) -> Store:
        from mpi4py import MPI

        if comm is not None:
            told.update(parallel=True, comm=comm, info=MPI.INFO_NULL)
        dataset = self._netcdf4.Dataset(path, mode, **told)
        assert isinstance(self.options, NetCdf4Options)
        return NetCdf4Store(dataset, path, comm, self.options, self.settings)

    def describe(self, path: str) -> StoredAs:
        from pffbench.backends.libnetcdf import is_filled

        with self._netcdf4.Dataset(path) as dataset:
            variable = next(iter(dataset.variables.values()))
            chunking, filters = variable.chunking(), variable.filters()
            return StoredAs(
                chunks=None if chunking == "contiguous" else tuple(chunking),
                codec=f"gzip {filters['complevel']}" if filters["zlib"] else "none",
                fill="always" if is_filled(variable) else "never",
            )

    def notes(self) -> tuple[str, ...]:
        return ("reads return new arrays",)


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

    def files(self) -> set[str]:
        return {self._path}

    def define(self, specs: Sequence[ArraySpec]) -> Mapping[str, Array]:
        """Define all variables on every rank, then leave define mode.

        netCDF-C creates the HDF5 datasets when define mode ends, by itself at the first access
        to data; ended here, that cost counts as definition and not as writing.
        """
        found = {spec.name: self._array(self._create(spec)) for spec in specs}
        self._dataset._enddef()
        return found

    def _create(self, spec: ArraySpec) -> Any:
        names = tuple(f"axis{i}_{n}" for i, n in enumerate(spec.shape))
        for name, n in zip(names, spec.shape, strict=True):
            if name not in self._dataset.dimensions:
                self._dataset.createDimension(name, n)
        told = self._creation(spec)
        return self._dataset.createVariable(spec.name, spec.dtype, names, **told)

    def _creation(self, spec: ArraySpec) -> dict[str, Any]:
        told: dict[str, Any] = {}
        if isinstance(spec.chunks, tuple):
            told["chunksizes"] = spec.chunks
        elif spec.chunks == "contiguous":
            told["contiguous"] = True
        if spec.codec == "gzip":
            told.update(compression="zlib", complevel=spec.level, shuffle=False)
        fill = self._options.fill
        if fill is False or (fill is None and spec.fill == "none"):
            told["fill_value"] = False
        if self._options.chunk_cache is not None:
            told["chunk_cache"] = int(self._options.chunk_cache)
        return told

    def _array(self, variable: Any) -> Array:
        if self._settings == "matched":
            variable.set_auto_maskandscale(False)
        return NetCdf4Array(variable, self._shared)

    def arrays(self, specs: Iterable[ArraySpec]) -> Mapping[str, Array]:
        return {spec.name: self._array(self._dataset.variables[spec.name]) for spec in specs}

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
            take_part = self._take_part("get") if collective else _nothing

            def call() -> Buffer:
                take_part()
                return out

            return call
        return partial(self._variable.__getitem__, box.slices)

    def _set_mode(self, collective: bool) -> None:
        if self._shared:
            self._variable.set_collective(collective)

    def _take_part(self, direction: str) -> Call:
        """Return a call that moves nothing: netCDF4-python would skip it and hang the others."""
        from pffbench.backends.libnetcdf import empty_transfer

        return empty_transfer(self._variable, direction)


def _nothing() -> None:
    """Move nothing: outside collective transfers an empty box needs no call."""
