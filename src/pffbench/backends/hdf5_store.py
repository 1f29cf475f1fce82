"""An open HDF5 file: its datasets, how they are made, and how transfers went."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from io import FileIO
from typing import TYPE_CHECKING, Any

from pffbench.backends import filters
from pffbench.backends.base import Array, ArraySpec, Store
from pffbench.backends.hdf5_arrays import ARRAYS

if TYPE_CHECKING:
    from mpi4py import MPI

    from pffbench.backends.hdf5 import Hdf5Options


class Hdf5Store(Store):
    """An HDF5 file that ranks have open together, or one rank alone."""

    def __init__(
        self,
        h5py: Any,
        file: Any,
        path: str,
        comm: MPI.Intracomm | None,
        collective_lookup: bool,
        options: Hdf5Options,
    ) -> None:
        self._h5py = h5py
        self._file = file
        self._rank = None if comm is None else comm.rank
        self.collective_lookup = collective_lookup
        self.collective_growth = comm is not None  # H5Dset_extent changes metadata
        self._path = path
        self._options = options
        self._bytes: FileIO | None = None
        self._transfers: dict[bool, Any] = {}
        # Kept with the store: after a close that failed HDF5 crashes when a dataset is let go.
        self._arrays: dict[str, Array] = {}

    def define(self, specs: Sequence[ArraySpec]) -> Mapping[str, Array]:
        """Create all datasets on every rank: in parallel HDF5 the definition is collective."""
        self._arrays = {spec.name: self._array(self._create(spec)) for spec in specs}
        return self._arrays

    def _create(self, spec: ArraySpec) -> Any:
        told = _creation(spec)
        if spec.chunks == "library" and self._options.guess_chunks:
            told["chunks"] = True
        return self._file.create_dataset(spec.name, spec.shape, spec.stored_dtype, **told)

    def arrays(self, specs: Iterable[ArraySpec]) -> Mapping[str, Array]:
        self._arrays = {spec.name: self._array(self._file[spec.name]) for spec in specs}
        return self._arrays

    def _array(self, dataset: Any) -> Array:
        return ARRAYS[self._options.api](self, dataset)

    def files(self) -> set[str]:
        return {self._path}

    def flush(self) -> None:
        """Flush the file; with MPI this syncs it too (``MPI_File_sync``)."""
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def descriptor(self) -> int:
        """Return a descriptor of the file's bytes; it is closed with the store's last reference."""
        if self._bytes is None:
            self._bytes = FileIO(self._path)
        return self._bytes.fileno()

    def transfer_list(self, collective: bool) -> Any:
        """Return the transfer property list, one for each mode."""
        if collective not in self._transfers:
            h5p, h5fd = self._h5py.h5p, self._h5py.h5fd
            transfer = h5p.create(h5p.DATASET_XFER)
            if self._rank is not None:
                mode = h5fd.MPIO_COLLECTIVE if collective else h5fd.MPIO_INDEPENDENT
                transfer.set_dxpl_mpio(mode)
            self._transfers[collective] = transfer
        return self._transfers[collective]

    def moved_collectively(self, collective: bool) -> bool:
        """Whether the last transfer really was collective, which passes the chunk cache by."""
        if self._rank is None or not collective:
            return False
        from pffbench.backends.libhdf5 import actual_io_mode

        return actual_io_mode(self.transfer_list(True).id) != "independent"

    def transfer_facts(self) -> dict[str, str]:
        """Tell the mode that the last transfer used and why it was not collective."""
        if self._rank is None:
            return {}
        from pffbench.backends.libhdf5 import actual_io_mode, no_collective_cause

        facts = {}
        for collective, transfer in self._transfers.items():
            facts["hdf5_io_mode"] = actual_io_mode(transfer.id)
            if collective and (causes := no_collective_cause(transfer.id)):
                facts["hdf5_no_collective_cause"] = causes
        return facts


def _creation(spec: ArraySpec) -> dict[str, Any]:
    """Return what ``create_dataset`` is told beyond name, shape and type."""
    told: dict[str, Any] = {}
    if isinstance(spec.chunks, tuple):
        told["chunks"] = spec.chunks
    if spec.growth:
        told["maxshape"] = (None, *spec.shape[1:])
    if spec.fill == "none":
        told["fill_time"] = "never"
    if spec.codec == "gzip":
        told.update(compression="gzip", compression_opts=spec.level)
    elif spec.codec == "szip":
        told.update(compression="szip", compression_opts=("nn", filters.SZIP_BLOCK))
    elif spec.codec == "lzf":
        told.update(compression="lzf")
    elif plugin := filters.plugin_filter(spec):
        told.update(compression=plugin.number, compression_opts=plugin.values)
    if filters.shuffles_before(spec):
        told["shuffle"] = True
    return told
