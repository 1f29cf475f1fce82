"""The classic formats of netCDF through netCDF4-python: CDF-5, and CDF-2 for older readers.

Files that ranks share go through PnetCDF, where netCDF-C was built with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pffbench.backends.array_spec import EVERY_ARRAYS, EVERY_TRANSFER, ArraySpec, Capabilities
from pffbench.backends.base import Array, Backend, Edges, NotInstalled, Storage, Store
from pffbench.backends.hints import Hints
from pffbench.backends.inspection import StoredAs
from pffbench.backends.netcdf4_store import NetCdf4Array, NetCdf4Store, open_dataset
from pffbench.backends.shared_files import has_pnetcdf
from pffbench.case import Options, Parameters, Settings

if TYPE_CHECKING:
    from mpi4py import MPI

#: The formats, as netCDF4-python calls them.
_FORMATS = {"cdf5": "NETCDF3_64BIT_DATA", "cdf2": "NETCDF3_64BIT_OFFSET"}
#: Element types that CDF-2 lacks.
_OF_CDF5 = frozenset({"uint8", "uint16", "uint32", "int64", "uint64"})
#: Bytes of a variable of CDF-2 that is neither a record variable nor the last of its file.
_CDF2_LIMIT = 2**32 - 4


class NetCdf3Options(Options, frozen=True, kw_only=True):
    """Options of the classic formats."""

    #: Classic format. ``cdf5``: 64-bit data (netCDF-C 4.4 and PnetCDF). ``cdf2``: 64-bit offset,
    #: which all readers support. Variables of ``cdf2`` are smaller than 4 GiB and have no 64-bit
    #: integers.
    format: Literal["cdf5", "cdf2"] = "cdf5"
    #: Whether variables are filled before data are written. The library's default is on.
    #: ``matched`` switches it off.
    fill: bool | None = None
    #: End of define mode. ``explicit``: after all variables of a phase are defined. ``implicit``:
    #: the library ends it at the first access to data.
    enddef: Literal["explicit", "implicit"] = "explicit"

    # What an open netCDF-4 file asks of its options, and the classic formats do not have.
    chunk_cache: ClassVar[None] = None
    dimensions: ClassVar[str] = "fixed"
    hints: ClassVar[Hints] = {}
    striping: ClassVar[None] = None


class NetCdf3(Backend[NetCdf3Options]):
    """Variables of a classic netCDF file."""

    name = "netcdf3"
    title = "netCDF-3"
    summary = "classic netCDF (CDF-5, CDF-2) through netCDF4-python, shared files by PnetCDF"
    suffix = ".nc"
    libraries = ("netCDF4",)
    capabilities = Capabilities(
        arrays=EVERY_ARRAYS,
        transfers=EVERY_TRANSFER,
        new_arrays=frozenset({"independent", "collective"}),
        attributes=True,
        stretches=True,
        call_per_box=True,
    )
    mpi_io = "shared"
    deadlocks_when_full = True
    notes = ("stored big-endian, as the format requires", "no chunks: each array is in one piece")

    def __init__(self, options: NetCdf3Options, settings: Settings) -> None:
        super().__init__(options, settings)
        import netCDF4

        self._netcdf4 = netCDF4

    @classmethod
    def refuse(
        cls,
        parameters: Parameters,
        options: NetCdf3Options,
        specs: Sequence[ArraySpec],
        edges: Edges,
    ) -> str | None:
        if parameters.chunks not in ("auto", "contiguous"):
            return "classic netCDF has no chunks; leave chunks out, or name chunks: contiguous"
        if options.format == "cdf2":
            for spec in specs:
                if spec.dtype in _OF_CDF5:
                    return f"CDF-2 has no {spec.dtype}; use netcdf3.format: cdf5"
                if spec.nbytes > _CDF2_LIMIT and not spec.growth:
                    return "a variable of CDF-2 is smaller than 4 GiB; use netcdf3.format: cdf5"
        if any(spec.dtype.startswith(("float16", "complex")) for spec in specs):
            return "classic netCDF has float32 and float64 only"
        if not parameters.shares_files:
            return None
        if any(spec.growth for spec in specs) and parameters.transfer == "independent":
            return (
                "PnetCDF extends variables of a file that ranks share in collective transfer only; "
                "use transfer: collective or files: per_rank"
            )
        return _without_pnetcdf()

    @classmethod
    def storage(cls, spec: ArraySpec, options: NetCdf3Options) -> Storage:
        return Storage()

    def create(self, path: str, comm: MPI.Intracomm | None) -> Store:
        return self._store(path, "w", comm, clobber=False, format=_FORMATS[self.options.format])

    def open(self, path: str, comm: MPI.Intracomm | None) -> Store:
        return self._store(path, "r", comm)

    def reopen(self, path: str, comm: MPI.Intracomm | None) -> Store:
        return self._store(path, "r+", comm)

    def _store(
        self, path: str, mode: Literal["r", "w", "r+"], comm: MPI.Intracomm | None, **told: Any
    ) -> Store:
        dataset = open_dataset(self._netcdf4, path, mode, comm, self.options, **told)
        return NetCdf3Store(dataset, path, comm, self.options, self.settings)

    def describe(self, path: str) -> StoredAs:
        from pffbench.backends.libnetcdf import is_filled

        with self._netcdf4.Dataset(path) as dataset:
            variable = next(iter(dataset.variables.values()))
            return StoredAs(
                fill="always" if is_filled(variable) else "never",
                more={"format": dataset.data_model},
            )


class NetCdf3Store(NetCdf4Store):
    """A classic netCDF file, shared by ranks or open on one rank."""

    has_chunks = False

    def _creation(self, spec: ArraySpec) -> dict[str, Any]:
        fill = self._options.fill
        return {"fill_value": False} if fill is False or spec.fill == "none" else {}

    def transfer_facts(self) -> dict[str, str]:
        """Return nothing: the classic formats get no hints."""
        return {}

    def wrap(self, specs: Sequence[ArraySpec], returned: Any) -> Mapping[str, Array]:
        found = super().wrap(specs, returned)
        return {
            name: NetCdf3Array(array.variable, self._comm)
            for name, array in found.items()
            if isinstance(array, NetCdf4Array)
        }


class NetCdf3Array(NetCdf4Array):
    """A variable in one piece."""

    def layout(self, collective: bool) -> None:
        """Return None: the library does not report the offset of a variable."""


def _without_pnetcdf() -> NotInstalled | None:
    """Return that netCDF-C cannot share classic files among ranks, or None if it can."""
    if has_pnetcdf() is not False:
        return None
    return NotInstalled(
        "classic netCDF files that ranks share need a netCDF-C with PnetCDF, and this one has "
        "none; use files: per_rank"
    )
