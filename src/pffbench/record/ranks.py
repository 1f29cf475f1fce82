"""`ranks.h5`: times of every rank, as arrays over (repetition, phase, rank) for each case."""

from __future__ import annotations

import errno
import math
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pffbench.regular_files import KeptFile
from pffbench.text import escape_controls

#: Bytes of HDF5 metadata in addition to a repetition's data: headers, indexes, a group's names.
_METADATA = 2**18
#: Errors of file systems that do not support reservation.
_CANNOT_TELL = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)

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

    Parameters
    ----------
    path : str
        Path of the file; created if it does not exist.
    hosts : sequence of str
        Host name of every rank, stored once at the top.
    hosts_name : str
        Name of the dataset of hosts.
    """

    def __init__(self, path: str, hosts: Sequence[str], hosts_name: str = "host") -> None:
        import h5py

        self._h5py = h5py
        self._path = path
        #: New path of a file that could no longer be opened, as after a crash during a write.
        self.damaged: str | None = None
        if _cannot_go_on(path):
            self.damaged = f"{path}.damaged"
            Path(path).replace(self.damaged)
        self._begin(hosts, hosts_name)
        self._kept = KeptFile(path)

    def _begin(self, hosts: Sequence[str], hosts_name: str) -> None:
        _reserve(self._path, _METADATA)
        with self._h5py.File(self._path, "a") as file:
            if hosts_name not in file:
                kind = self._h5py.string_dtype()
                names = [escape_controls(host) for host in hosts]
                file.create_dataset(hosts_name, data=names, dtype=kind)

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
        _reserve(self._path, _METADATA + 4 * own.nbytes)
        with self._h5py.File(self._path, "a") as file:
            group = file.require_group(case)
            known = [str(name) for name in group.attrs.get("phases", [])]
            names = [*known, *(name for name in phases if name not in known)]
            if names != known:
                group.attrs["phases"] = names
            columns = [names.index(name) for name in phases]
            row = _row_of(group, repetition)
            _put_phases(group, "own", row, columns, own, math.nan)
            _put_phases(group, "synced", row, columns, synced, math.nan)
            _put_phases(group, "bytes", row, columns, nbytes, 0)
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


def read_ranks(
    path: str | Path, cases: Iterable[str]
) -> Iterator[tuple[str, dict[int, RecordedTimes]]]:
    """Yield the times of cases by repetition, from a file that this user's ranks have written.

    Raises
    ------
    OSError
        The file cannot be read.
    """
    import h5py

    with h5py.File(path, "r") as file:
        for case in cases:
            if case in file:
                yield case, _times_of(file[case])


def _times_of(group: Any) -> dict[int, RecordedTimes]:
    phases = [str(name) for name in group.attrs["phases"]]
    names = ("own", "synced", "bytes", "peak_memory")
    own, synced, nbytes, peak = (group[name][()] for name in names)
    return {
        int(number): RecordedTimes(phases, own[row], synced[row], nbytes[row], peak[row])
        for row, number in enumerate(group["repetition"][:])
        if row < min(map(len, (own, synced, nbytes, peak)))
    }


def _cannot_go_on(path: str) -> bool:
    """Return whether an existing path cannot, or should not, be appended to."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(status.st_mode):  # a link would lead to another file
        return True
    if not status.st_size:
        return False
    from pffbench.record.ranks_reader import trouble_with  # only for a resumed run

    return trouble_with(path) is not None


def _reserve(path: str, nbytes: int) -> None:
    """Reserve `nbytes` more bytes, or fail before HDF5 has begun to change the file.

    HDF5 cannot undo a partial change when the file system is full. It truncates unused space when
    it closes the file.
    """
    if not Path(path).exists() or not Path(path).stat().st_size:
        return  # there are no data to lose
    descriptor = os.open(path, os.O_RDWR)
    try:
        size = os.fstat(descriptor).st_size
        try:
            os.posix_fallocate(descriptor, size, nbytes)
        except OSError as error:
            os.ftruncate(descriptor, size)
            if error.errno not in _CANNOT_TELL:
                raise
    finally:
        os.close(descriptor)


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
    fill: float,
) -> None:
    """Write the phases of one repetition, extending the datasets for it and for new phases."""
    dataset = _dataset(group, name, values, fill)
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


def _dataset(group: Any, name: str, values: np.ndarray[Any, Any], fill: float | None = None) -> Any:
    """Return the dataset of the values of all repetitions, made with the first of them."""
    if name not in group:
        group.create_dataset(
            name,
            shape=(0, *values.shape),
            maxshape=(None,) * (values.ndim + 1),
            chunks=(1, *values.shape),
            dtype=values.dtype,
            fillvalue=fill,
        )
    return group[name]
