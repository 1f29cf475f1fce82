"""`ranks.h5`: times of every rank, as arrays over (repetition, phase, rank) for each case."""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pffbench.regular_files import KeptFile
from pffbench.text import escape_controls

#: Bytes of HDF5 metadata in addition to a repetition's data: headers, indexes, a group's names.
METADATA = 2**18
#: Errors of file systems that do not support reservation.
_CANNOT_TELL = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)

#: Values of a phase of the other stage.
_FILL: Mapping[str, float] = {"own": math.nan, "synced": math.nan, "bytes": 0}

Times = np.ndarray[Any, np.dtype[np.float64]]


#: Why a run is refused without h5py, or with one that cannot be imported.
NEEDS_H5PY = "runs are recorded with h5py, which is {}; `pffbench doctor` names the remedy"


class RanksFile:
    """Appends the times of all ranks; the file is closed and synced after each repetition.

    Each case is a group with the datasets ``own`` and ``synced`` (seconds, shape repetition ×
    phase × rank), ``bytes`` (the same shape), ``peak_memory`` (bytes, repetition × rank) and
    ``repetition`` (number of each repetition). The attribute ``phases`` names the phases. In a
    run in two stages the second adds its phases to those of the first; where only one stage has
    a repetition, seconds are NaN and bytes are 0.

    The file of an earlier start is not appended to: `ranks_resume` copies it.

    Parameters
    ----------
    path : str
        Path of the file.
    hosts : sequence of str
        Host name of every rank, stored once at the top.
    hosts_name : str
        Name of the dataset of hosts.
    cases : collection of str
        The cases that an earlier start may have written.
    """

    def __init__(
        self,
        path: str,
        hosts: Sequence[str],
        hosts_name: str = "host",
        cases: Collection[str] = (),
    ) -> None:
        import h5py

        self._h5py = h5py
        self._path = path
        #: What of the file of an earlier start could not be read, and where that file is kept.
        self.loss: str | None = None
        if os.path.lexists(path):
            from pffbench.record.ranks_resume import carry_over  # only for a resumed run

            self.loss = carry_over(path, cases)
        self._begin(hosts, hosts_name)
        self._kept = KeptFile(path)

    def _begin(self, hosts: Sequence[str], hosts_name: str) -> None:
        _reserve(self._path, METADATA)
        with self._h5py.File(self._path, "a") as file:
            if hosts_name not in file:
                put_hosts(file, hosts_name, hosts)

    def append(
        self,
        case: str,
        repetition: int,
        phases: Sequence[str],
        own: Times,
        synced: Times,
        nbytes: np.ndarray[Any, np.dtype[np.int64]],
        peak_memory: np.ndarray[Any, np.dtype[np.int64]],
    ) -> None:
        """Append one repetition.

        Parameters
        ----------
        case : str
            Name of the case.
        repetition : int
            Number of the repetition, warm-ups included.
        phases : sequence of str
            Names of the phases; equal for all repetitions of a case in one stage.
        own, synced : array of float64, shape (phases, ranks)
            Seconds.
        nbytes : array of int64, shape (phases, ranks)
            Bytes moved by each rank.
        peak_memory : array of int64, shape (ranks,)
            Peak resident memory of each rank in bytes.
        """
        self._kept.check()
        _reserve(self._path, METADATA + 4 * own.nbytes)
        with self._h5py.File(self._path, "a") as file:
            group = file.require_group(case)
            known = [str(name) for name in group.attrs.get("phases", [])]
            names = [*known, *(name for name in phases if name not in known)]
            if names != known:
                group.attrs["phases"] = names
            columns = [names.index(name) for name in phases]
            row = _row_of(group, repetition)
            _put_phases(group, "own", row, columns, own)
            _put_phases(group, "synced", row, columns, synced)
            _put_phases(group, "bytes", row, columns, nbytes)
            _put(group, "peak_memory", row, peak_memory)
            _put(group, "repetition", row, np.array(repetition, dtype=np.int64))
        self._kept.sync()


class RecordedTimes(NamedTuple):
    """Times of all ranks in one repetition, as `RanksFile.append` takes them."""

    phases: Sequence[str]
    own: Times
    synced: Times
    nbytes: np.ndarray[Any, np.dtype[np.int64]]
    peak_memory: np.ndarray[Any, np.dtype[np.int64]]


def put_hosts(file: Any, name: str, hosts: Sequence[str]) -> None:
    """Write the host of every rank into a file that does not have them."""
    import h5py

    names = [escape_controls(host) for host in hosts]
    file.create_dataset(name, data=names, dtype=h5py.string_dtype())


def _reserve(path: str, nbytes: int) -> None:
    """Reserve `nbytes` more bytes, or fail before HDF5 has begun to change the file.

    HDF5 cannot undo a partial change when the file system is full. It truncates unused space when
    it closes the file.
    """
    if not Path(path).exists() or not Path(path).stat().st_size:
        return  # there are no data to lose
    descriptor = os.open(path, os.O_RDWR)
    try:
        allocate(descriptor, os.fstat(descriptor).st_size, nbytes)
    finally:
        os.close(descriptor)


def allocate(descriptor: int, size: int, nbytes: int) -> None:
    """Reserve space behind the first `size` bytes of a file, or leave it as it is."""
    try:
        os.posix_fallocate(descriptor, size, nbytes)
    except OSError as error:
        os.ftruncate(descriptor, size)
        if error.errno not in _CANNOT_TELL:
            raise


def _row_of(group: Any, repetition: int) -> int:
    """Return the row of a repetition: a new one, or that of a run killed during it."""
    known = [] if "repetition" not in group else group["repetition"][:].tolist()
    return known.index(repetition) if repetition in known else len(known)


def _put_phases(
    group: Any,
    name: str,
    row: int,
    columns: Sequence[int],
    values: np.ndarray[Any, Any],
) -> None:
    """Write the phases of one repetition, extending the datasets for it and for new phases."""
    dataset = _dataset(group, name, values)
    rows, phases, ranks = dataset.shape
    # By its identifier, as below: h5py's own `resize` takes longer for its checks.
    dataset.id.set_extent((max(rows, row + 1), max(phases, max(columns) + 1), ranks))
    first = columns[0]
    if columns == list(range(first, first + len(columns))):
        dataset[row, first : first + len(columns)] = values  # a list would take twice as long
    else:
        dataset[row, columns] = values


def _put(group: Any, name: str, row: int, values: np.ndarray[Any, Any]) -> None:
    dataset = _dataset(group, name, values)
    dataset.resize(max(dataset.shape[0], row + 1), axis=0)
    dataset[row] = values


def _dataset(group: Any, name: str, values: np.ndarray[Any, Any]) -> Any:
    """Return the dataset of the values of all repetitions, made with the first of them."""
    if name in group:
        return group[name]
    return make_dataset(group, name, values.shape, values.dtype)


def make_dataset(group: Any, name: str, shape: Sequence[int], dtype: np.dtype[Any]) -> Any:
    """Make a dataset without repetitions; their checksums show what a damaged disk changes."""
    return group.create_dataset(
        name,
        shape=(0, *shape),
        maxshape=(None,) * (len(shape) + 1),
        chunks=(1, *shape),
        dtype=dtype,
        fillvalue=_FILL.get(name),
        fletcher32=True,
    )
