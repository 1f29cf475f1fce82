"""Reading `ranks.h5` in a process of its own, whoever wrote it.

HDF5 trusts its files: a damaged one can crash the library, keep it busy for ever or have it take
all memory, and one that was made so can have its data in any other file. So a small process reads
it, with limits to what it may take, looks at everything before it is read, and hands on plain
numbers; when it ends before its time the file is not to be read.

Run as ``python -m pffbench.record.ranks_reader FILE`` with a question as JSON on standard input.
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
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np

import pffbench
from pffbench.record.plausible import LARGEST
from pffbench.regular_files import check_regular
from pffbench.text import one_line

NAME = "ranks.h5"
#: Axes of the datasets of a case, and the kinds of numbers that are in them.
_DATASETS = {
    "own": (3, "f"), "synced": (3, "f"), "bytes": (3, "iu"), "peak_memory": (2, "iu"),
    "repetition": (1, "iu"),
}  # fmt: skip
#: Datasets whose declared size is under so many bytes are read whatever the file's own is; larger
#: ones are no longer than so many times the file, since what is written there is not compressed.
_SMALL, _STRETCH = 2**26, 16
_MOST_PHASES = 200
_LONGEST_NAME = 200
#: What the process may take beside what it starts with: memory beyond some times the file, seconds
#: of a processor beyond those for so many bytes a second.
_MEMORY, _MEMORY_TIMES = 2**29, 4
_CPU_SECONDS, _CPU_BYTES = 10, 20e6
#: Seconds, and more for so many bytes a second, after which it ends when a file system hangs.
_SECONDS, _BYTES = 60, 1e6
#: Bytes of a line with which the process begins to tell something.
_LONGEST_LINE = 2**24


@dataclass(frozen=True)
class CaseTimes:
    """What the file has of a case.

    Parameters
    ----------
    case : str
        Its name.
    phases : list of str
        Names of the phases, the second axis of most datasets.
    repetition : list of int
        Numbers of the repetitions, the first axis; each once, in ascending order.
    arrays : dict of str to array
        The datasets that were asked for.
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
        Cases, each with the repetitions that are wanted; None for all of them. A case that is not
        there is left out.
    datasets : sequence of str
        Names of the datasets that are wanted.
    most : int, optional
        So many repetitions of each case are read; of more, evenly spaced ones.

    Returns
    -------
    hosts : list of str
        Host name of every rank.
    times : iterator of CaseTimes
        The cases, read as they are asked for.

    Raises
    ------
    ValueError
        The file cannot be read, or is not laid out as pffbench does; also by the iterator.
    """
    question = {"cases": cases, "datasets": list(datasets), "most": most}
    answers = _answers(Path(path), question)
    (hosts, _) = next(answers)
    return [str(host) for host in hosts["hosts"]], _times(answers)


def names_of_cases(path: str | Path) -> list[str]:
    """Return the names of all cases in the file; errors as of `read_times`."""
    answers = _answers(Path(path), {"cases": {}, "datasets": [], "most": None})
    (told, _) = next(answers)
    return [str(name) for name in told["names"]]


def trouble_with(path: str | Path) -> str | None:
    """Say why the file is not to be read, or None; all cases are looked at."""
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
    """Start the process and yield what it tells: facts, and the arrays that go with them."""
    try:
        check_regular(path)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    root = str(Path(pffbench.__file__).parents[1])
    paths = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "pffbench.record.ranks_reader", str(path)]
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
    """Answer a question about the file that is named."""
    (path,) = arguments
    answer = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 1)  # a library must not print in between
    question = json.load(sys.stdin)
    with suppress(ImportError):  # an h5py that was built with MPI would initialise it
        import mpi4py

        mpi4py.rc.initialize = False
    import h5py

    status = Path(path).stat()
    size = min(status.st_size, status.st_blocks * 512)  # a hole in the file holds nothing
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
    """Limit what this process may take, by the size of the file."""
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
    """Looks at what a file holds before anything of it is read."""

    def __init__(self, file: Any, h5py: Any, size: int) -> None:
        self._file = file
        self._h5py = h5py
        self._size = size

    def answers(
        self, question: Mapping[str, Any]
    ) -> Iterator[tuple[dict[str, Any], list[np.ndarray[Any, Any]]]]:
        """Yield what is to be told: hosts and names first, then the cases."""
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
        # A repetition that a resumed run did again may be there twice; the last one counts.
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
        """Return a dataset that has its numbers in this file, and no more than fit there."""
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
