"""`ranks.h5`: every rank's seconds, as arrays over (repetition, phase, rank) for each case."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

Times = np.ndarray[Any, np.dtype[np.float64]]


class RanksFile:
    """Appends the times of all ranks; the file is closed and synced after each repetition.

    Each case is a group with the datasets ``own`` and ``synced`` (seconds, shape repetition ×
    phase × rank), ``bytes`` (the same shape), ``peak_memory`` (bytes, repetition × rank) and
    ``repetition`` (number of each repetition). The attribute ``phases`` names the phases.

    Parameters
    ----------
    path : str
        The file; it is created when it does not exist.
    hosts : sequence of str
        Host name of every rank, kept once at the top.
    """

    def __init__(self, path: str, hosts: Sequence[str]) -> None:
        import h5py

        self._h5py = h5py
        self._path = path
        with h5py.File(path, "a") as file:
            if "host" not in file:
                file.create_dataset("host", data=list(hosts), dtype=h5py.string_dtype())

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
            Names of the phases; the same for all repetitions of a case.
        own, synced : array of float64, shape (phases, ranks)
            Seconds.
        nbytes : array of int64, shape (phases, ranks)
            Bytes that each rank moved.
        peak_memory : array of int64, shape (ranks,)
            Peak resident memory of each rank in bytes.
        """
        with self._h5py.File(self._path, "a") as file:
            group = file.require_group(case)
            if "phases" not in group.attrs:
                group.attrs["phases"] = list(phases)
            row = _row_of(group, repetition)
            _put(group, "own", row, own)
            _put(group, "synced", row, synced)
            _put(group, "bytes", row, nbytes)
            _put(group, "peak_memory", row, peak_memory)
            _put(group, "repetition", row, np.array(repetition, dtype=np.int64))
        descriptor = os.open(self._path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _row_of(group: Any, repetition: int) -> int:
    """Return the row of a repetition: a new one, or that of a run which was killed in it."""
    known = [] if "repetition" not in group else group["repetition"][:].tolist()
    return known.index(repetition) if repetition in known else len(known)


def _put(group: Any, name: str, row: int, values: np.ndarray[Any, Any]) -> None:
    if name not in group:
        group.create_dataset(
            name,
            shape=(0, *values.shape),
            maxshape=(None, *values.shape),
            chunks=(1, *values.shape),
            dtype=values.dtype,
        )
    dataset = group[name]
    dataset.resize(max(dataset.shape[0], row + 1), axis=0)
    dataset[row] = values
