"""The process that reads `ranks.h5`, of any origin, for `ranks_reader`.

HDF5 trusts its files: a file can declare arrays that no memory holds, and lead to other files. So
every object is checked before it is read: it lies in the file itself, and its size fits there. A
damaged file can still crash the library, and then it crashes this process alone.

``python -m pffbench.record.ranks_process`` reads a `Request` from standard input. It writes an
`Opening`, and for each case a `CaseHead` and the bytes of its arrays.
"""

from __future__ import annotations

import math
import os
import resource
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np

from pffbench.interpreter import ask_no_processor
from pffbench.job.launcher import mpi_unstarted
from pffbench.phases import PHASES
from pffbench.record.plausible import LARGEST
from pffbench.regular_files import check_regular
from pffbench.text import one_line

#: Datasets with the host of every rank: of the job that wrote, and of one that only reads.
HOSTS = ("host", "read_host")
#: Axes of the datasets of a case, and their numeric kinds.
DATASETS = {
    "own": (3, "f"), "synced": (3, "f"), "bytes": (3, "iu"), "peak_memory": (2, "iu"),
    "repetition": (1, "iu"),
}  # fmt: skip
#: Datasets with a declared size below this number of bytes are read whatever the size of the file;
#: larger ones exceed it at most by this factor, since its data are not compressed.
_SMALL, _STRETCH = 2**26, 16
_PHASES = frozenset(phase.name for phase in PHASES)
_LONGEST_NAME = 200
#: Errors of h5py at a file that is damaged, or that holds something else.
_UNREADABLE = (
    OSError, ImportError, KeyError, ValueError, TypeError, RuntimeError, AttributeError,
    MemoryError,
)  # fmt: skip


class Request(msgspec.Struct, frozen=True):
    """What is to be read."""

    #: The file, as the system names it.
    path: bytes
    #: Requested cases, each with its repetitions, None for all of them; None for all cases.
    cases: dict[str, list[int] | None] | None
    #: The requested datasets.
    datasets: list[str]
    #: Maximum number of repetitions per case; of more, evenly spaced ones are read.
    most: int | None = None
    #: Whether a case with times that no clock shows counts as unreadable.
    plausible: bool = False


class Opening(msgspec.Struct, frozen=True):
    """What is in the file, or why it is unreadable."""

    #: By name of a dataset, the host of every rank.
    hosts: dict[str, list[str]] = {}
    #: The requested cases that are in the file, in the order in which they follow.
    cases: list[str] = []
    why: str = ""


class ArrayHead(msgspec.Struct, frozen=True):
    """An array, whose bytes follow the head of its case."""

    name: str
    dtype: str
    shape: list[int]


class CaseHead(msgspec.Struct, frozen=True):
    """A case, or why it is unreadable."""

    case: str
    phases: list[str] = []
    repetition: list[int] = []
    arrays: list[ArrayHead] = []
    why: str = ""


def main() -> None:
    """Answer one request."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the reader expects that this may crash
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=Request)
    try:
        with _opened(os.fsdecode(request.path)) as file:
            names = dict.fromkeys(name for name in file if name not in HOSTS)
            if any(not isinstance(name, str) for name in names):
                raise ValueError("it has names that are not text")
            hosts = {name: _hosts(file, name) for name in HOSTS if name in file}
            wanted = names if request.cases is None else request.cases
            here = [case for case in wanted if case in names]
            _send(sys.stdout.buffer, Opening(hosts, here))
            for case in here:
                _send(sys.stdout.buffer, *_read_case(file, case, wanted[case], request))
    except ValueError as error:
        _send(sys.stdout.buffer, Opening(why=str(error)))


def _send(out: BinaryIO, head: Opening | CaseHead, arrays: Sequence[bytes] = ()) -> None:
    out.write(msgspec.json.encode(head) + b"\n")
    out.writelines(arrays)
    out.flush()


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    """Open the file; what h5py raises in the ``with`` block says that it cannot be read."""
    try:
        check_regular(path)
        ask_no_processor()
        with mpi_unstarted():
            import h5py
        with h5py.File(path, "r") as file:
            yield file
    except _UNREADABLE as error:
        raise ValueError(_reason(error)) from None


def _reason(error: Exception) -> str:
    why = "it would take too much memory" if isinstance(error, MemoryError) else error
    if isinstance(error, OSError):
        why = error.strerror or error
    return one_line(" ".join(str(why).split()), _LONGEST_NAME)


def _hosts(file: Any, name: str) -> list[str]:
    return [one_line(str(host), _LONGEST_NAME) for host in _plain(file, name, 1, "O").asstr()[:]]


def _read_case(
    file: Any, case: str, wanted: Sequence[int] | None, request: Request
) -> tuple[CaseHead, list[bytes]]:
    try:
        return _case(file, case, wanted, request)
    except _UNREADABLE as error:
        return CaseHead(case, why=_reason(error)), []


def _case(
    file: Any, case: str, wanted: Sequence[int] | None, request: Request
) -> tuple[CaseHead, list[bytes]]:
    import h5py

    group = _linked(file, case, h5py.Group)
    phases = _phases(group, case)
    there = {name: _plain(group, name, *kind) for name, kind in DATASETS.items() if name in group}
    if missing := {"repetition", *request.datasets} - there.keys():
        raise ValueError(f"{case} has no {min(missing)}")
    kept, rows = _repetitions(case, there, wanted, request.most)
    heads, data = [], []
    for name in request.datasets:
        array = _rows(there[name], rows)
        if array.ndim == 3 and array.shape[1] != len(phases):
            raise ValueError(f"{name} of {case} is not of {len(phases)} phases")
        if request.plausible and array.dtype.kind == "f":
            _check_times(name, array)
        heads.append(ArrayHead(name, array.dtype.str, list(array.shape)))
        data.append(array.tobytes())
    return CaseHead(case, phases, kept, heads), data


def _repetitions(
    case: str, there: Mapping[str, Any], wanted: Sequence[int] | None, most: int | None
) -> tuple[list[int], list[int]]:
    """Return the numbers of the repetitions to be read, ascending, and their rows."""
    length = min(len(dataset) for dataset in there.values())
    numbers = there["repetition"][:length].tolist()
    if any(not 0 <= number <= LARGEST for number in numbers):
        raise ValueError(f"{case} has the repetition {min(numbers)}")
    # Of a number that is there twice the last one counts.
    rows = {number: row for row, number in enumerate(numbers)}
    kept = sorted(rows if wanted is None else rows.keys() & set(wanted))
    if most is not None and len(kept) > most:
        kept = [kept[i] for i in np.linspace(0, len(kept) - 1, most).round().astype(int)]
    return kept, [rows[number] for number in kept]


def _phases(group: Any, case: str) -> list[str]:
    if math.prod(group.attrs.get_id("phases").shape) > len(_PHASES):
        raise ValueError(f"{case} has more phases than there are")
    names = [str(name) for name in group.attrs["phases"]]
    if not set(names) <= _PHASES or len(set(names)) < len(names):
        raise ValueError(f"{case} has other phases than there are")
    return names


def _rows(dataset: Any, rows: list[int]) -> np.ndarray[Any, Any]:
    if rows == list(range(len(dataset))):
        return np.asarray(dataset[:])
    found = np.empty((len(rows), *dataset.shape[1:]), dataset.dtype)
    for place, row in enumerate(rows):
        found[place] = dataset[row]
    return found


def _check_times(name: str, times: np.ndarray[Any, Any]) -> None:
    """Reject times that no clock shows; NaN is right, because the stage is still to come."""
    if (np.isinf(times) | (times < 0)).any():
        raise ValueError(f"{name} contains invalid times")


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


if __name__ == "__main__":
    main()
