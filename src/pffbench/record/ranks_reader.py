"""Reading `ranks.h5`, of any origin, in a separate process.

HDF5 follows a damaged pointer, and then it crashes, or never returns. So the process that reads the
file (`ranks_process`) is not the process that needs the times. It is started again after a crash,
for the cases that follow the unreadable one.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np

from pffbench.record.ranks import RecordedTimes
from pffbench.record.ranks_process import DATASETS, CaseHead, Opening, Request

NAME = "ranks.h5"
#: Starts the process.
COMMAND = (sys.executable, "-P", "-m", "pffbench.record.ranks_process")
#: Seconds in which the process opens the file or reads a case, and seconds for each byte of the
#: file in addition, which may be on a slow file system.
_PATIENCE, _PER_BYTE = 60.0, 1e-7
#: Crashes after which the rest of the file counts as unreadable.
_MOST_CRASHES = 4
_CRASHED = "the HDF5 library crashed, or did not return"

T = TypeVar("T", Opening, CaseHead)


class CaseTimes(NamedTuple):
    """Times of one case in the file."""

    #: Name of the case.
    case: str
    #: Names of the phases, the second axis of most datasets.
    phases: list[str]
    #: Numbers of the repetitions, the first axis; each once, in ascending order.
    repetition: list[int]
    #: The requested datasets.
    arrays: Mapping[str, np.ndarray[Any, Any]]


class UnreadableCase(NamedTuple):
    """A case of the file that cannot be read, and why."""

    case: str
    why: str


class RanksContents(NamedTuple):
    """Contents of the file."""

    #: By name of a dataset, the host of every rank.
    hosts: Mapping[str, list[str]]
    #: The cases, read on demand.
    cases: Iterator[CaseTimes | UnreadableCase]


def read_ranks_file(
    path: str | Path,
    cases: Mapping[str, Sequence[int] | None] | None = None,
    datasets: Sequence[str] = tuple(DATASETS),
    most: int | None = None,
    *,
    plausible: bool = False,
) -> RanksContents:
    """Read the times of some cases.

    Parameters
    ----------
    path : str or Path
        The file.
    cases : dict of str to list of int, or None; optional
        Requested cases, each with its repetitions, None for all of them; None for all cases. Cases
        not in the file are omitted.
    datasets : sequence of str
        Names of the requested datasets.
    most : int, optional
        Maximum number of repetitions per case; of more, evenly spaced ones are read.
    plausible : bool
        Whether a case with times that no clock shows counts as unreadable.

    Raises
    ------
    ValueError
        The file cannot be read, or has another layout.
    """
    wanted = None if cases is None else {name: _numbers(some) for name, some in cases.items()}
    request = Request(os.fsencode(path), wanted, list(datasets), most, plausible)
    try:
        process = _ReadingProcess(request)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: no process to read it: {error}") from None
    opening = process.receive(Opening)
    if opening is None or opening.why:
        process.end()
        raise ValueError(f"{path} cannot be read: {_CRASHED if opening is None else opening.why}")
    return RanksContents(opening.hosts, _cases(request, process, opening.cases))


def read_ranks(path: str | Path, cases: Iterable[str]) -> Mapping[str, dict[int, RecordedTimes]]:
    """Return the times of cases by repetition.

    Raises
    ------
    ValueError
        The file cannot be read, or one of the cases.
    """
    found = {}
    for one in read_ranks_file(path, dict.fromkeys(cases)).cases:
        if isinstance(one, UnreadableCase):
            raise ValueError(f"{path} cannot be read: {one.case}: {one.why}")
        found[one.case] = dict(zip(one.repetition, _times_of(one), strict=True))
    return found


def _times_of(one: CaseTimes) -> Iterator[RecordedTimes]:
    own, synced, nbytes, peak = (
        one.arrays[name] for name in ("own", "synced", "bytes", "peak_memory")
    )
    for row in range(len(one.repetition)):
        yield RecordedTimes(one.phases, own[row], synced[row], nbytes[row], peak[row])


def _numbers(repetitions: Sequence[int] | None) -> list[int] | None:
    return None if repetitions is None else list(map(int, repetitions))


def _cases(
    request: Request, process: _ReadingProcess, names: Sequence[str]
) -> Iterator[CaseTimes | UnreadableCase]:
    wanted, crashes, left = request.cases or {}, 0, list(names)
    while left and crashes < _MOST_CRASHES:
        if crashes:
            rest = {name: wanted.get(name) for name in left}
            process = _ReadingProcess(msgspec.structs.replace(request, cases=rest))
            process.receive(Opening)
        with process:
            while left and (one := process.receive_case()) is not None:
                left.pop(0)
                yield one
        if left:
            crashes += 1
            yield UnreadableCase(left.pop(0), _CRASHED)
    yield from (UnreadableCase(name, _CRASHED) for name in left)


class _ReadingProcess:
    """A process that reads the file; when it has crashed, nothing more is received.

    Parameters
    ----------
    request : Request
        What it is to read.
    """

    def __init__(self, request: Request) -> None:
        self._patience = _PATIENCE
        with suppress(OSError):
            self._patience += _PER_BYTE * Path(os.fsdecode(request.path)).stat().st_size
        self._process = subprocess.Popen(
            COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self._process.stdin is not None
        with suppress(BrokenPipeError), self._process.stdin as file:
            file.write(msgspec.json.encode(request))

    def __enter__(self) -> _ReadingProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def end(self) -> None:
        """End the process, whatever it does."""
        assert self._process.stdout is not None
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()

    def receive(self, kind: type[T]) -> T | None:
        """Return the next message; None if none comes."""
        line = self._read(None)
        return msgspec.json.decode(line, type=kind) if line.endswith(b"\n") else None

    def receive_case(self) -> CaseTimes | UnreadableCase | None:
        """Return the next case; None if none comes."""
        head = self.receive(CaseHead)
        if head is None:
            return None
        if head.why:
            return UnreadableCase(head.case, head.why)
        arrays = {}
        for one in head.arrays:
            dtype = np.dtype(one.dtype)
            data = self._read(math.prod(one.shape) * dtype.itemsize)
            if len(data) < math.prod(one.shape) * dtype.itemsize:
                return None
            arrays[one.name] = np.frombuffer(data, dtype).reshape(one.shape)
        return CaseTimes(head.case, head.phases, head.repetition, arrays)

    def _read(self, nbytes: int | None) -> bytes:
        """Return a line or some bytes; less if the process ends, or does not go on."""
        file = self._process.stdout
        assert file is not None
        alarm = threading.Timer(self._patience, self._process.kill)
        alarm.start()
        try:
            return file.readline() if nbytes is None else file.read(nbytes)
        finally:
            alarm.cancel()
