"""Raw bytes through MPI-IO: what a shared file gives without a format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pffbench.backends.base import (
    MPI_CALL_LIMIT,
    Array,
    ArraySpec,
    Backend,
    Buffer,
    Call,
    Capabilities,
    Store,
)
from pffbench.parallel.decomposition import Box

if TYPE_CHECKING:
    from mpi4py import MPI


class MpiIo(Backend):
    """Arrays one behind the other in a plain file that ranks open together."""

    name = "mpiio"
    summary = "raw bytes, MPI-IO explicit offsets and subarray views (roofline)"
    suffix = ".raw"
    libraries = ("mpi4py",)
    capabilities = Capabilities(formatted=False)
    call_limit = MPI_CALL_LIMIT

    def create(self, path: str, comm: MPI.Intracomm | None) -> Store:
        from mpi4py import MPI

        mode = MPI.MODE_CREATE | MPI.MODE_RDWR
        return MpiIoStore(path, comm or MPI.COMM_SELF, mode, shared=comm is not None)

    def open(self, path: str, comm: MPI.Intracomm | None) -> Store:
        from mpi4py import MPI

        return MpiIoStore(path, comm or MPI.COMM_SELF, MPI.MODE_RDONLY, shared=comm is not None)


class MpiIoStore(Store):
    """A plain file; it describes nothing, so arrays lie where their specifications say."""

    def __init__(self, path: str, comm: MPI.Intracomm, mode: int, shared: bool) -> None:
        from mpi4py import MPI

        self._file = MPI.File.Open(comm, path, mode)
        self._comm = comm if shared else None
        self._path = path

    def define(self, specs: Sequence[ArraySpec]) -> Mapping[str, Array]:
        return self.arrays(specs)

    def arrays(self, specs: Iterable[ArraySpec]) -> Mapping[str, Array]:
        return {spec.name: MpiIoArray(self._file, self._comm, spec) for spec in specs}

    def files(self) -> set[str]:
        return {self._path}

    def flush(self) -> None:
        """Sync the file, the only flush that MPI-IO knows (it also reaches the device)."""
        self._file.Sync()

    def close(self) -> None:
        self._file.Close()


class MpiIoArray(Array):
    """A stretch of the file, moved by explicit offset or through a subarray view."""

    def __init__(self, file: MPI.File, comm: MPI.Intracomm | None, spec: ArraySpec) -> None:
        self._file = file
        self._comm = comm
        self._spec = spec

    def writer(self, box: Box, buffer: Buffer, collective: bool) -> Call:
        call = self._file.Write_at_all if collective else self._file.Write_at
        return self._transfer(call, box, buffer)

    def reader(self, box: Box, out: Buffer, collective: bool) -> Call:
        call = self._file.Read_at_all if collective else self._file.Read_at
        return self._transfer(call, box, out)

    def _transfer(self, call: Any, box: Box, buffer: Buffer) -> Call:
        from mpi4py import MPI

        element = MPI._typedict[buffer.dtype.char]
        memory = [buffer, buffer.size, element]
        status = MPI.Status()
        if not self._needs_view(box):
            first = 0 if box.size == 0 else self._spec.byte_offset(box)

            def move() -> Buffer:
                call(self._spec.offset + first, memory, status)
                _check(status, element, buffer)
                return buffer

            return move

        file_type = _subarray(box, self._spec, element)

        def move_through_view() -> Buffer:
            # Setting the view is a part of moving a box that is not contiguous, as HDF5 does it.
            self._file.Set_view(self._spec.offset, element, file_type)
            call(0, memory, status)
            _check(status, element, buffer)
            self._file.Set_view(0, MPI.BYTE, MPI.BYTE)
            return buffer

        return move_through_view

    def _needs_view(self, box: Box) -> bool:
        """Whether any rank's box is scattered over the file: setting a view is collective."""
        scattered = box.size > 0 and not self._spec.is_contiguous(box)
        if self._spec.owner is not None or self._comm is None:
            return scattered
        return bool(self._comm.allreduce(scattered))


def _check(status: MPI.Status, element: MPI.Datatype, buffer: Buffer) -> None:
    """Refuse a transfer that moved less than asked, which MPI-IO does not call an error."""
    moved = status.Get_count(element)
    if moved != buffer.size:
        raise OSError(f"MPI-IO moved {moved} of {buffer.size} elements")


def _subarray(box: Box, spec: ArraySpec, element: MPI.Datatype) -> MPI.Datatype:
    if box.size == 0:  # a subarray must not be empty; nothing is moved through this view
        return element
    file_type = element.Create_subarray(spec.shape, box.shape, box.start)
    file_type.Commit()
    return file_type
