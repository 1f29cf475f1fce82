"""Reading `ranks.h5`, of any origin.

HDF5 trusts its files: a file can declare arrays that no memory holds, and lead to other files. So
every object is checked before it is read: it lies in the file itself, and its size fits there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from pffbench.job.launcher import mpi_unstarted
from pffbench.record.plausible import LARGEST
from pffbench.regular_files import check_regular
from pffbench.text import one_line

NAME = "ranks.h5"
#: Axes of the datasets of a case, and their numeric kinds.
_DATASETS = {
    "own": (3, "f"), "synced": (3, "f"), "bytes": (3, "iu"), "peak_memory": (2, "iu"),
    "repetition": (1, "iu"),
}  # fmt: skip
#: Datasets with a declared size below this number of bytes are read whatever the size of the file;
#: larger ones exceed it at most by this factor, since its data are not compressed.
_SMALL, _STRETCH = 2**26, 16
_MOST_PHASES = 200
_LONGEST_NAME = 200
#: Errors of h5py at a file that is damaged, or that holds something else.
_UNREADABLE = (
    OSError, ImportError, KeyError, ValueError, TypeError, RuntimeError, AttributeError,
    MemoryError,
)  # fmt: skip


class CaseTimes(msgspec.Struct, frozen=True):
    """Times of one case in the file."""

    #: Name of the case.
    case: str
    #: Names of the phases, the second axis of most datasets.
    phases: list[str]
    #: Numbers of the repetitions, the first axis; each once, in ascending order.
    repetition: list[int]
    #: The requested datasets.
    arrays: Mapping[str, np.ndarray[Any, Any]]


def read_times(
    path: str | Path,
    cases: Mapping[str, Sequence[int] | None],
    datasets: Sequence[str] = ("own",),
    most: int | None = None,
) -> tuple[list[str], Iterator[CaseTimes]]:
    """Read the times of some cases.

    Parameters
    ----------
    path : str or Path
        The file.
    cases : dict of str to list of int, or None
        Requested cases, each with its repetitions; None for all. Cases not in the file are
        omitted.
    datasets : sequence of str
        Names of the requested datasets.
    most : int, optional
        Maximum number of repetitions per case; of more, evenly spaced ones are read.

    Returns
    -------
    hosts : list of str
        Host name of every rank.
    times : iterator of CaseTimes
        The cases, read on demand.

    Raises
    ------
    ValueError
        The file cannot be read, or has another layout; also raised by the iterator.
    """
    with _opened(path) as file:
        names = _plain(file, "host", 1, "O").asstr()[:]
    hosts = [one_line(str(name), _LONGEST_NAME) for name in names]
    return hosts, _times(path, cases, datasets, most)


def _times(
    path: str | Path,
    cases: Mapping[str, Sequence[int] | None],
    datasets: Sequence[str],
    most: int | None,
) -> Iterator[CaseTimes]:
    with _opened(path) as file:
        names = _names(file)
        for case, wanted in cases.items():
            if case in names:
                yield _case(file, case, wanted, datasets, most)


def names_of_cases(path: str | Path) -> list[str]:
    """Return the names of all cases in the file; raises as `read_times` does."""
    with _opened(path) as file:
        return _names(file)


def trouble_with(path: str | Path) -> str | None:
    """Return the reason why the file is unreadable, or None; all cases are checked."""
    try:
        _, times = read_times(path, dict.fromkeys(names_of_cases(path)), ())
        for _ in times:
            pass
    except ValueError as error:
        return str(error)
    return None


@contextmanager
def _opened(path: str | Path) -> Iterator[Any]:
    """Open the file; what h5py raises in the ``with`` block says that it cannot be read."""
    try:
        check_regular(path)
        with mpi_unstarted():
            import h5py
        with h5py.File(path, "r") as file:
            yield file
    except _UNREADABLE as error:
        why = "it would take too much memory" if isinstance(error, MemoryError) else error
        if isinstance(error, OSError):
            why = error.strerror or error
        told = one_line(" ".join(str(why).split()), _LONGEST_NAME)
        raise ValueError(f"{path} cannot be read: {told}") from None


def _names(file: Any) -> list[str]:
    return [name for name in file if name not in ("host", "read_host")]


def _case(
    file: Any, case: str, wanted: Sequence[int] | None, datasets: Sequence[str], most: int | None
) -> CaseTimes:
    import h5py

    group = _linked(file, case, h5py.Group)
    phases = _phases(group, case)
    there = {name: _plain(group, name, *kind) for name, kind in _DATASETS.items() if name in group}
    needed = {"repetition", *datasets} if datasets else set()
    if missing := needed - there.keys():
        raise ValueError(f"{case} has no {min(missing)}")
    length = min((len(dataset) for dataset in there.values()), default=0)
    numbers = there["repetition"][:length].tolist() if "repetition" in there else []
    if any(not 0 <= number <= LARGEST for number in numbers):
        raise ValueError(f"{case} has the repetition {min(numbers)}")
    # A repetition repeated by a resumed run may occur twice; the last one counts.
    rows = {number: row for row, number in enumerate(numbers)}
    kept = sorted(rows if wanted is None else rows.keys() & set(wanted))
    if most is not None and len(kept) > most:
        kept = [kept[i] for i in np.linspace(0, len(kept) - 1, most).round().astype(int)]
    arrays = {name: _rows(there[name], [rows[n] for n in kept], name) for name in datasets}
    for name, array in arrays.items():
        if array.ndim == 3 and array.shape[1] != len(phases):
            raise ValueError(f"{name} of {case} is not of {len(phases)} phases")
    return CaseTimes(case, phases, kept, arrays)


def _phases(group: Any, case: str) -> list[str]:
    count = math.prod(group.attrs.get_id("phases").shape)
    if count > _MOST_PHASES:
        raise ValueError(f"{count} phases of {case} are more than there are")
    return [one_line(str(name), _LONGEST_NAME) for name in group.attrs["phases"]]


def _rows(dataset: Any, rows: list[int], name: str) -> np.ndarray[Any, Any]:
    if rows == list(range(len(dataset))):
        found = dataset[:]
    else:
        found = np.empty((len(rows), *dataset.shape[1:]), dataset.dtype)
        for place, row in enumerate(rows):
            found[place] = dataset[row]
    wrong = np.isinf(found) | (found < 0)  # NaN is right: the stage is still to come
    if wrong.any() and dataset.dtype.kind == "f":
        raise ValueError(f"{name} contains invalid times")
    return np.asarray(found)


def _plain(group: Any, name: str, axes: int, kinds: str) -> Any:
    """Return a dataset whose data are in this file and fit there."""
    import h5py

    dataset = _linked(group, name, h5py.Dataset)
    if dataset.is_virtual or dataset.external:
        raise ValueError(f"{name} has its values in another file")
    if dataset.ndim != axes or dataset.dtype.kind not in kinds:
        raise ValueError(f"{name} has {dataset.ndim} axes of {dataset.dtype}")
    status = Path(group.file.filename).stat()
    size = min(status.st_size, status.st_blocks * 512)  # holes in the file hold no data
    if math.prod(dataset.shape) * dataset.dtype.itemsize > max(_SMALL, _STRETCH * size):
        raise ValueError(f"{name} says that it has {math.prod(dataset.shape)} elements")
    return dataset


def _linked(group: Any, name: str, kind: type) -> Any:
    import h5py

    link = group.get(name, getlink=True)
    if not isinstance(link, h5py.HardLink) or group.get(name, getclass=True) is not kind:
        raise ValueError(f"{name} is not what pffbench writes")
    return group[name]
