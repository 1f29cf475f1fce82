"""Reading `ranks.h5`, of any origin, in a separate process.

HDF5 trusts its files: a damaged one can crash the library, keep it busy forever or exhaust memory,
and a malicious one can store its data in any other file. A small process with limited resources
therefore reads it. It checks every object before reading and passes on plain numbers; if it ends
early, the file is unreadable.

Run as ``python -m pffbench.record.ranks_reader FILE`` with a query as JSON on standard input.
"""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import pffbench
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
#: Limits of the process beyond its initial use: memory as a constant plus a multiple of the file's
#: size, processor seconds as a constant plus the file's size over a rate in bytes per second.
_MEMORY, _MEMORY_TIMES = 2**29, 4
_CPU_SECONDS, _CPU_BYTES = 10, 20e6
#: Seconds, plus the file's size over a rate, after which it ends if a file system hangs.
_SECONDS, _BYTES = 60, 1e6
#: Bytes of a line that introduces an answer of the process.
_LONGEST_LINE = 2**24


class CaseTimes(msgspec.Struct, frozen=True):
    """Times of one case in the file.

    Parameters
    ----------
    case : str
        Name of the case.
    phases : list of str
        Names of the phases, the second axis of most datasets.
    repetition : list of int
        Numbers of the repetitions, the first axis; each once, in ascending order.
    arrays : dict of str to array
        The requested datasets.
    """

    case: str
    phases: list[str]
    repetition: list[int]
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
    question = {"cases": cases, "datasets": list(datasets), "most": most}
    answers = _answers(Path(path), question)
    (hosts, _) = next(answers)
    return [str(host) for host in hosts["hosts"]], _times(answers)


def names_of_cases(path: str | Path) -> list[str]:
    """Return the names of all cases in the file; raises as `read_times` does."""
    answers = _answers(Path(path), {"cases": {}, "datasets": [], "most": None})
    (told, _) = next(answers)
    return [str(name) for name in told["names"]]


def trouble_with(path: str | Path) -> str | None:
    """Return the reason why the file is unreadable, or None; all cases are checked."""
    try:
        _, times = read_times(path, dict.fromkeys(names_of_cases(path)), ())
        for _ in times:
            pass
    except ValueError as error:
        return str(error)
    return None


def _times(answers: Iterator[tuple[dict[str, Any], list[np.ndarray[Any, Any]]]]) -> Iterator[Any]:
    for told, arrays in answers:
        named = dict(zip(told["datasets"], arrays, strict=True))
        yield CaseTimes(told["case"], told["phases"], told["repetition"], named)


def _answers(
    path: Path, question: Mapping[str, Any]
) -> Iterator[tuple[dict[str, Any], list[np.ndarray[Any, Any]]]]:
    """Start the process and yield its answers: facts, and the arrays that belong to them."""
    try:
        check_regular(path)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    root = str(Path(pffbench.__file__).parents[1])
    paths = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-P", "-m", "pffbench.record.ranks_reader", str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": paths},
    ) as process:  # fmt: skip
        assert process.stdin is not None
        try:
            with suppress(BrokenPipeError), process.stdin as stream:
                stream.write(json.dumps(question).encode())
            assert isinstance(process.stdout, BufferedReader)
            while (told := _told(process.stdout, path)) is not None:
                yield told
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        why = f"by signal {-process.returncode}" if process.returncode < 0 else "before its time"
        raise ValueError(f"{path} cannot be read: the process that reads it ended {why}")


def _told(stream: BufferedReader, path: Path) -> tuple[dict[str, Any], list[Any]] | None:
    line = stream.readline(_LONGEST_LINE)
    if not line:
        return None
    told = json.loads(line)
    if "error" in told:
        raise ValueError(f"{path} cannot be read: {told['error']}")
    arrays = []
    for shape, kind in told.get("arrays", ()):
        array = np.empty(shape, kind)
        if array.size and stream.readinto(array.data.cast("B")) != array.nbytes:
            return None
        arrays.append(array)
    return told, arrays


def main(arguments: Sequence[str]) -> None:
    """Answer a query about the named file."""
    (path,) = arguments
    answer = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)  # no library may print between the answers
    question = json.load(sys.stdin)
    with suppress(ImportError):  # an h5py that was built with MPI would initialise it
        import mpi4py

        mpi4py.rc.initialize = False
    import h5py

    status = Path(path).stat()
    size = min(status.st_size, status.st_blocks * 512)  # holes in the file hold no data
    _take_little(size)
    try:
        with h5py.File(path, "r") as file:
            for told, arrays in _Reader(file, h5py, size).answers(question):
                shapes = [(array.shape, array.dtype.str) for array in arrays]
                answer.write(json.dumps({**told, "arrays": shapes}).encode() + b"\n")
                for array in arrays:
                    answer.write(np.ascontiguousarray(array).data.cast("B"))
    except (OSError, KeyError, ValueError, TypeError, RuntimeError, AttributeError) as error:
        told = {"error": one_line(" ".join(str(error).split()), _LONGEST_NAME)}
        answer.write(json.dumps(told).encode() + b"\n")
    except MemoryError:
        told = {"error": "it would take more memory than such a file needs"}
        answer.write(json.dumps(told).encode() + b"\n")
    answer.flush()


def _take_little(size: int) -> None:
    """Limit the resources of this process by the size of the file."""
    with open("/proc/self/statm") as file:  # noqa: PTH123 -- in memory
        taken = int(file.read().split()[0]) * resource.getpagesize()
    memory = taken + _MEMORY + _MEMORY_TIMES * size
    seconds = math.ceil(time.process_time() + _CPU_SECONDS + size / _CPU_BYTES)
    for limit, most in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CPU, seconds)):
        _, hard = resource.getrlimit(limit)
        resource.setrlimit(limit, (most if hard < 0 else min(most, hard), hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.alarm(_SECONDS + int(size / _BYTES))


class _Reader:
    """Checks the objects of a file before it reads them."""

    def __init__(self, file: Any, h5py: Any, size: int) -> None:
        self._file = file
        self._h5py = h5py
        self._size = size

    def answers(
        self, question: Mapping[str, Any]
    ) -> Iterator[tuple[dict[str, Any], list[np.ndarray[Any, Any]]]]:
        """Yield the answers: hosts and names first, then the cases."""
        hosts = [name for name in ("host", "read_host") if name in self._file]
        names = [name for name in self._file if name not in hosts]
        yield {"hosts": self._hosts(), "names": names}, []
        for case, wanted in question["cases"].items():
            if case in names:
                yield self._case(case, wanted, question["datasets"], question["most"])

    def _hosts(self) -> list[str]:
        dataset = self._plain(self._file, "host", 1, "O")
        return [one_line(str(host), _LONGEST_NAME) for host in dataset.asstr()[:]]

    def _case(
        self, case: str, wanted: Sequence[int] | None, datasets: Sequence[str], most: int | None
    ) -> tuple[dict[str, Any], list[np.ndarray[Any, Any]]]:
        group = self._linked(self._file, case, self._h5py.Group)
        phases = [one_line(str(name), _LONGEST_NAME) for name in group.attrs["phases"]]
        if len(phases) > _MOST_PHASES:
            raise ValueError(f"{len(phases)} phases of {case} are more than there are")
        there = {
            name: self._plain(group, name, *_DATASETS[name]) for name in _DATASETS if name in group
        }
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
        arrays = [self._rows(there[name], [rows[n] for n in kept], name) for name in datasets]
        for name, array in zip(datasets, arrays, strict=True):
            if _DATASETS[name][0] == 3 and array.shape[1] != len(phases):
                raise ValueError(f"{name} of {case} is not of {len(phases)} phases")
        told = {"case": case, "phases": phases, "repetition": kept, "datasets": list(datasets)}
        return told, arrays

    def _rows(self, dataset: Any, rows: list[int], name: str) -> np.ndarray[Any, Any]:
        if rows == list(range(len(dataset))):
            found = dataset[:]
        else:
            found = np.empty((len(rows), *dataset.shape[1:]), dataset.dtype)
            for place, row in enumerate(rows):
                found[place] = dataset[row]
        if _DATASETS[name][1] == "f" and found.size:
            with np.errstate(invalid="ignore"):
                if np.isinf(found).any() or (found < 0).any():  # NaN: the stage is still to come
                    raise ValueError(f"{name} holds what are no seconds")
        return np.asarray(found)

    def _plain(self, group: Any, name: str, axes: int, kinds: str) -> Any:
        """Return a dataset whose data are in this file and fit there."""
        dataset = self._linked(group, name, self._h5py.Dataset)
        if dataset.is_virtual or dataset.external:
            raise ValueError(f"{name} has its values in another file")
        if dataset.ndim != axes or dataset.dtype.kind not in kinds:
            raise ValueError(f"{name} has {dataset.ndim} axes of {dataset.dtype}")
        declared = math.prod(dataset.shape) * dataset.dtype.itemsize
        if declared > max(_SMALL, _STRETCH * self._size):
            raise ValueError(f"{name} says that it has {math.prod(dataset.shape)} elements")
        return dataset

    def _linked(self, group: Any, name: str, kind: type) -> Any:
        link = group.get(name, getlink=True)
        if not isinstance(link, self._h5py.HardLink) or group.get(name, getclass=True) is not kind:
            raise ValueError(f"{name} is not what pffbench writes")
        return group[name]


if __name__ == "__main__":
    main(sys.argv[1:])
