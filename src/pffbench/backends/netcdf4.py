"""netCDF-4 through netCDF4-python: parallel, or one file per process."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from msgspec.structs import replace

from pffbench.backends import hdf5_files as filters
from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Edges, Storage, Store, Unsafe
from pffbench.backends.hdf5_files import (
    Hdf5FileOptions,
    Hdf5Format,
    refuse_chunks,
    refuse_independent,
    superblock_version,
)
from pffbench.backends.hints import refuse_hints
from pffbench.backends.inspection import ChunkCacheSettings, StoredAs
from pffbench.backends.netcdf4_store import NetCdf4Store, open_dataset
from pffbench.case import Parameters, Settings

if TYPE_CHECKING:
    from mpi4py import MPI


#: Bytes of a chunk that netCDF-C (4.9) chooses if no axis has a known length: for one axis, and for
#: several.
_UNLIMITED_CHUNK = (2**12, 2**24)


class NetCdf4Options(Hdf5FileOptions, frozen=True, kw_only=True):
    """Options of netCDF-4; every default but that of `enddef` is the library's own."""

    #: Whether variables are filled before data are written. The library's default is on.
    #: ``matched`` switches it off.
    fill: bool | None = None
    #: Dimensions of fixed length, or unlimited ones, shared by all variables of the same rank or
    #: private to each variable. The library finds the length of an unlimited dimension by visiting
    #: all variables of the file at each access.
    dimensions: Literal["fixed", "unlimited_shared", "unlimited_private"] = "fixed"
    #: End of define mode. ``explicit``: after all variables of a phase are defined, so that the
    #: phase includes their creation in the file. ``implicit``: the library creates them at the
    #: first access to data, as in a program that never calls ``nc_enddef``.
    enddef: Literal["explicit", "implicit"] = "explicit"

    @property
    def unlimited(self) -> bool:
        """Whether dimensions are made without a length."""
        return self.dimensions != "fixed"


class NetCdf4(Hdf5Format[NetCdf4Options]):
    """Variables of a netCDF-4 file."""

    name = "netcdf4"
    title = "netCDF-4"
    summary = "netCDF-4 through netCDF4-python"
    suffix = ".nc"
    libraries = ("netCDF4",)
    must_compress = True
    capabilities = replace(
        Hdf5Format.capabilities,
        new_arrays=frozenset({"independent", "collective"}),
        call_per_box=True,
    )

    def __init__(self, options: NetCdf4Options, settings: Settings) -> None:
        super().__init__(options, settings)
        import netCDF4

        self._netcdf4 = netCDF4
        # The alignment holds for all files of the process, so each case sets its own.
        if netCDF4.__has_set_alignment__:
            netCDF4.set_alignment(*(options.alignments or (1, 1)))
        # So does the cache that variables get when a file is created or opened.
        common = self.common_cache(_library_default(netCDF4))
        netCDF4.set_chunk_cache(common.nbytes, common.slots, common.preemption)
        cache = options.cache(common)
        more = "" if settings == "matched" else ", more where a chunk is larger"
        self.notes = (f"chunk cache of each variable: {cache}{more}",)

    @classmethod
    def refuse(
        cls,
        parameters: Parameters,
        options: NetCdf4Options,
        specs: Sequence[ArraySpec],
        edges: Edges,
    ) -> str | None:
        if reason := refuse_hints(options, parameters):
            return reason
        growing = any(spec.growth for spec in specs)
        if (options.unlimited or growing) and any(spec.chunks == "contiguous" for spec in specs):
            return (
                "netCDF variables with unlimited dimensions are always chunked; take other chunks "
                "than contiguous, or what does not grow and netcdf4.dimensions: fixed"
            )
        if parameters.shares_files and parameters.transfer == "independent":
            if options.unlimited or growing:
                what = f"netcdf4.dimensions: {options.dimensions}" if options.unlimited else "this"
                return (
                    "netCDF extends variables of a file that ranks share in collective transfer "
                    f"only; {what} needs transfer: collective or files: per_rank"
                )
            if options.enddef == "implicit":
                return (
                    "all ranks of a shared netCDF file end define mode together, at the first "
                    "access to data; netcdf4.enddef: implicit needs transfer: collective or "
                    "files: per_rank"
                )
        if reason := refuse_chunks(parameters, specs):
            return reason
        if reason := filters.refuse_filters(parameters, specs, must_compress=cls.must_compress):
            return reason
        if reason := refuse_independent(parameters, specs):
            return reason
        compressed = any(spec.codec not in ("none", "library") for spec in specs)
        if compressed and parameters.shares_files and parameters.transfer_of_reads == "independent":
            return Unsafe(
                "netCDF reads compressed data of a file that ranks share in collective calls only; "
                "read_transfer must be collective too"
            )
        return None

    @classmethod
    def storage(cls, spec: ArraySpec, options: NetCdf4Options) -> Storage:
        if not options.unlimited or spec.chunks != "library":
            return super().storage(spec, options)
        axes = len(spec.shape)
        edge = round((_UNLIMITED_CHUNK[axes > 1] / spec.itemsize) ** (1 / axes))
        return Storage(padding=math.prod(-(-n // edge) * edge / n for n in spec.shape))

    def create(self, path: str, comm: MPI.Intracomm | None) -> Store:
        return self._store(path, "w", comm, clobber=False, format="NETCDF4")

    def open(self, path: str, comm: MPI.Intracomm | None) -> Store:
        return self._store(path, "r", comm)

    def reopen(self, path: str, comm: MPI.Intracomm | None) -> Store:
        return self._store(path, "r+", comm)

    def _store(
        self, path: str, mode: Literal["r", "w", "r+"], comm: MPI.Intracomm | None, **told: Any
    ) -> Store:
        dataset = open_dataset(self._netcdf4, path, mode, comm, self.options, **told)
        return NetCdf4Store(dataset, path, comm, self.options, self.settings)

    def describe(self, path: str) -> StoredAs:
        from pffbench.backends.libnetcdf import filters_of, is_filled

        with self._netcdf4.Dataset(path) as dataset:
            variable = next(iter(dataset.variables.values()))
            chunking = variable.chunking()
            return StoredAs(
                chunks=None if chunking == "contiguous" else tuple(chunking),
                codec=filters.codec_name(filters_of(variable)),
                fill="always" if is_filled(variable) else "never",
                more={**_dimensions(dataset), "superblock": superblock_version(path)},
            )


@cache
def _library_default(netcdf4: Any) -> ChunkCacheSettings:
    """Return the library's default chunk cache of a variable; before it is set."""
    return ChunkCacheSettings(*netcdf4.get_chunk_cache())


def _dimensions(dataset: Any) -> dict[str, str]:
    """Return the number of unlimited dimensions of a file, if any."""
    unlimited = sum(dimension.isunlimited() for dimension in dataset.dimensions.values())
    if not unlimited:
        return {}
    of = f"{len(dataset.variables)} variables"
    return {"dimensions": f"{unlimited} unlimited for {of}"}
