"""Raw bytes through MPI-IO: a shared file without a format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import finalize

from pffbench.backends.array_spec import EVERY_ARRAYS, EVERY_TRANSFER, ArraySpec, Capabilities
from pffbench.backends.base import MPI_CALL_LIMIT, Array, Buffer, Call, Store
from pffbench.backends.file_layout import ArrayInFile
from pffbench.backends.hints import FileHints, Hints, Striping, check_hints, info_of, read_hints
from pffbench.backends.raw.layout import RawArray, RawBackend, RawOptions, RawStore, place_of
from pffbench.geometry.box import Box
from pffbench.geometry.stretches import Stretches
from pffbench.units import Size

if TYPE_CHECKING:
    from mpi4py import MPI

    #: The status of each transfer and the bytes that it is to move.
    Told = list[tuple[MPI.Status, int]]


class MpiIoOptions(RawOptions, frozen=True, kw_only=True):
    """Options of MPI-IO; every default is the library's own."""

    #: MPI-IO hints, such as ``{cb_nodes: 4, romio_ds_write: disable}``. The hints in force are read
    #: back into `run.json`. A hint without effect causes a warning.
    hints: Hints = {}  # noqa: RUF012 -- msgspec copies a mutable default
    #: Stripes of new files on Lustre: ``count`` servers (-1 for all), ``size`` bytes on each.
    striping: Striping | None = None

    def __post_init__(self) -> None:
        check_hints(self)


class ChunkedMpiIoOptions(MpiIoOptions, frozen=True, kw_only=True):
    """Options of the raw transfers that pffbench adds to cold reads, see `ChunkedRawOptions`."""

    call: Size


class MpiIo(RawBackend[MpiIoOptions]):
    """Arrays one after the other in a plain file that ranks open together."""

    name = "mpiio"
    summary = "raw bytes, MPI-IO explicit offsets and subarray views (roofline)"
    libraries = ("mpi4py",)
    capabilities = Capabilities(
        arrays=EVERY_ARRAYS, transfers=EVERY_TRANSFER, raw=True, stretches=True
    )
    call_limit = MPI_CALL_LIMIT
    mpi_io = "all"
    chunked_options = ChunkedMpiIoOptions

    def create(self, path: str, comm: MPI.Intracomm | None) -> Store:
        from mpi4py import MPI

        store = MpiIoStore(path, comm, MPI.MODE_CREATE | MPI.MODE_RDWR, self.options)
        if self.options.header and (comm is None or comm.rank == 0):
            store.file.Write_at(0, bytes(self.options.header))
        return store

    def open(self, path: str, comm: MPI.Intracomm | None) -> Store:
        from mpi4py import MPI

        store = MpiIoStore(path, comm, MPI.MODE_RDONLY, self.options)
        if self.options.header:
            store.file.Read_at(0, bytearray(self.options.header))
        return store

    def reopen(self, path: str, comm: MPI.Intracomm | None) -> Store:
        from mpi4py import MPI

        return MpiIoStore(path, comm, MPI.MODE_RDWR, self.options)


class MpiIoStore(RawStore):
    """A plain file, opened through MPI-IO."""

    _options: MpiIoOptions

    def __init__(
        self, path: str, comm: MPI.Intracomm | None, mode: int, options: MpiIoOptions
    ) -> None:
        from mpi4py import MPI

        with info_of(options, MPI.INFO_NULL) as info:
            self.file = MPI.File.Open(comm or MPI.COMM_SELF, path, mode, info)
        self._comm = comm
        self._path = path
        self._options = options

    def wrap(self, specs: Sequence[ArraySpec], returned: Any) -> Mapping[str, Array]:
        return {
            spec.name: MpiIoArray(
                self.file, self._comm, place_of(spec, self._options), owned=spec.owner is not None
            )
            for spec in specs
        }

    def flush(self) -> None:
        """Sync the file, the only flush that MPI-IO knows (it also reaches the device)."""
        self.file.Sync()

    def close(self) -> None:
        self.file.Close()

    def file_hints(self) -> FileHints | None:
        if self._comm is not None and self._comm.rank > 0:
            return None
        return read_hints(self.file, self._path, self._options)


class MpiIoArray(RawArray):
    """A piece of the file, moved by explicit offset or through a subarray view.

    Parameters
    ----------
    file : MPI.File
        The open file.
    comm : MPI.Intracomm or None
        The ranks that have the file open; None for one rank.
    place : ArrayInFile
        Where it lies.
    owned : bool
        Whether only one rank moves data of the array.
    """

    def __init__(
        self, file: MPI.File, comm: MPI.Intracomm | None, place: ArrayInFile, *, owned: bool
    ) -> None:
        self._file = file
        self._comm = comm
        self._place = place
        self._owned = owned
        # MPI status of the transfers of each call, and the bytes that they are to move.
        self._told: dict[Call, Told] = {}

    def writer(self, box: Box, buffer: Buffer, collective: bool) -> Call:
        move = self._file.Write_at_all if collective else self._file.Write_at
        return self._transfer(move, box, buffer, collective)

    def reader(self, box: Box, out: Buffer, collective: bool) -> Call:
        move = self._file.Read_at_all if collective else self._file.Read_at
        return self._transfer(move, box, out, collective)

    def missing(self, call: Call, nbytes: int) -> int:
        """Query the status of each transfer: for MPI-IO a short transfer is no error."""
        from mpi4py import MPI

        told = self._told.pop(call, ())
        return sum(wanted - status.Get_count(MPI.BYTE) for status, wanted in told)

    def _transfer(self, move: Any, box: Box, buffer: Buffer, collective: bool) -> Call:
        """Prepare to move a box from or to a buffer.

        Views are set collectively. So ranks that write an array together agree, even for
        independent calls, and an array of a single rank is moved run by run.
        """
        from mpi4py import MPI

        element = MPI._typedict[buffer.dtype.char]
        scattered = self._place.run_count(box) > 1
        if self._comm is not None and self._owned and not collective:
            if scattered:
                return self._run_by_run(move, box, buffer, element)
        elif self._comm is not None:
            scattered = bool(self._comm.allreduce(scattered))
        status = MPI.Status()
        memory = [buffer, buffer.size, element]
        call: Call
        if scattered:
            call = self._through_view(box, element, partial(move, 0, memory, status))
        else:
            begin = self._place.first_byte(box) if box.size else self._place.begin
            call = partial(move, begin, memory, status)
        self._told[call] = [(status, buffer.nbytes)]
        return call

    def _through_view(self, box: Box, element: MPI.Datatype, move: Call) -> Call:
        """Prepare to set a view of a box, move it and reset the view.

        Setting the view is a part of moving a box that is not contiguous, as HDF5 does it.
        """
        from mpi4py import MPI

        set_view, begin, file_type = self._file.Set_view, self._place.begin, element
        if box.size:  # a subarray must not be empty; nothing is moved through the view then
            file_type = _file_type(box, self._place, element)

        def move_through_view() -> None:
            set_view(begin, element, file_type)
            move()
            set_view(0, MPI.BYTE, MPI.BYTE)

        if box.size:  # MPI keeps the type, as long as all elements of a stride, until it is freed
            finalize(move_through_view, file_type.Free).atexit = False
        return move_through_view

    def _run_by_run(self, move: Any, box: Box, buffer: Buffer, element: MPI.Datatype) -> Call:
        """Prepare a call for each run of the file in a box."""
        from mpi4py import MPI

        runs = self._place.runs(box)
        parts = buffer.reshape(len(runs.offsets), -1)
        moves = [
            (int(offset), [part, part.size, element], MPI.Status())
            for offset, part in zip(runs.offsets, parts, strict=True)
        ]

        def move_runs() -> None:
            for begin, memory, status in moves:
                move(begin, memory, status)

        self._told[move_runs] = [(status, runs.length) for _, _, status in moves]
        return move_runs


def _file_type(box: Box, place: ArrayInFile, element: MPI.Datatype) -> MPI.Datatype:
    from mpi4py import MPI

    if isinstance(box, Stretches):
        places = box.offsets * element.Get_size()
        file_type = element.Create_hindexed(box.lengths.tolist(), places.tolist())
    elif box.stride:
        runs = place.runs(box)
        places, length = runs.offsets - place.begin, runs.length // element.Get_size()
        file_type = element.Create_hindexed_block(length, places.tolist())
    else:
        file_type = element.Create_subarray(place.shape, box.shape, box.start, MPI.ORDER_C)
    file_type.Commit()
    return file_type
