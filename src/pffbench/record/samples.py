"""`samples.csv`: one row per case, repetition and phase, appended and synced."""

from __future__ import annotations

import csv
import io
import math
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, TextIO, get_args, get_type_hints

import msgspec

from pffbench.phases import LAST_PHASE, UPDATE_PHASES, WRITE_PHASES
from pffbench.record.plausible import Count, Natural, Positive, refuse_implausible
from pffbench.regular_files import append_regular, open_regular, write_replacing
from pffbench.text import escape_controls, has_controls, one_line

#: Characters, about a hundred rows, converted to samples at once: few enough to stay in a
#: processor's cache, which makes reading more than twice as fast as thousands of rows do.
_TEXT_AT_ONCE = 25_000
#: Maximum length: a row has some 300 characters; a hole in a file can make one of any length.
_LONGEST_LINE = 2**16


class Sample(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One phase of one repetition, over all ranks: a row of `samples.csv`.

    A run can have a million samples; a struct is several times faster than a dataclass. Cells are
    empty where a value does not apply.

    Parameters
    ----------
    case : str
        Name of the case: backend, workload, layout, transfer, settings and a digest of all
        parameters. It is the same in every run; `run.json` has the parameters under this name.
    repetition : int
        Number of the repetition, from 0, warm-ups included. All cases with one number ran in the
        same block. With ``repetitions: auto`` a case stops when it is decided, so not every case
        has every number.
    warmup : bool
        ``true`` for a warm-up: it is kept here and left out of all statistics.
    position : int
        Position of the case in the random order of its block. Cases of a comparison run next to
        each other, and each of them follows each other one equally often.
    phase : str
        The phase that was timed.
    backend : str
        Backend of the case.
    workload : str
        Workload of the case.
    layout : str
        Layout of the case.
    transfer : str
        Transfer that was asked for. What HDF5 really did is in ``transfer_facts`` of `run.json`.
    settings : str
        Settings of the case: ``matched`` or ``defaults``.
    group : str
        The comparison that the case belongs to: all cases of a group do the same work.
    ranks : int
        Number of MPI ranks.
    nodes : int
        Number of nodes.
    arrays : int
        Number of arrays of all ranks together.
    operations : int
        Library calls of all ranks in the phase: arrays in `define` and `open_array`, transfers in
        `write` and `read`, files and directories in `sync`. A transfer can be one system call or
        thousands.
    bytes : int
        Array data moved by all ranks, before compression; 0 where no data move. It is not the
        number of bytes that reached the device.
    own_max : float
        Largest own time of any rank, in seconds. The own time runs from when the rank left the
        barrier before the phase until its own end of it. Of data that move in several batches the
        slowest rank of each batch is added up. Where ranks share cores it can be several times
        smaller than the time of the job: see `seconds`.
    own_median : float
        Own time of the middle rank. Far below `own_max` means imbalance, or one rank that does all
        the work, as in `remove` of a shared file.
    own_min : float
        Own time of the fastest rank.
    synced_max : float
        Largest time of any rank from the same barrier until the barrier after the phase. It
        includes one barrier, so part of it is the harness.
    slowest_rank : int
        Rank with the largest own time; some rank is always slowest, and only the same one each time
        points at more work or a slow node.
    slowest_host : str
        Host of that rank.
    below_resolution : bool
        Whether `seconds` is under 100 times the floor, so that the harness shows in it: take larger
        data.
    cache : str
        Rows of `read`: the proved state of the page cache, or ``unproved``. Caches of servers, RAID
        controllers and disks are not seen.
    resident : float or None
        Rows of `read`: part of the pages of the files to be read that was in the page cache before
        `open`, 0 to 1.
    verified_bytes : int or None
        Rows of `read`: bytes compared with what they should be, over all ranks. They are always all
        bytes that the phases of reading moved, times `reads`, or the run is INVALID.
    peak_memory : int
        Largest peak of resident memory of any rank in this repetition, in bytes; the same in all
        rows of a repetition. Interpreter, buffers and verification are in it. Where Linux does not
        let the peak be reset it is that of the process so far.
    disk_bytes : int or None
        Rows of `close`: bytes of the blocks allocated. Space that the file system allocates later,
        directories, and copies that it keeps are not in it.
    disk_files : int or None
        Rows of `close`: number of regular files.
    valid : bool
        ``false``: something read was wrong, or the cache state asked for was not reached;
        `run.json` has the reason.
    started : str
        When the repetition began, in UTC by the clock of rank 0; the same in all its rows.
    seconds : float
        The time of the job, of which all statistics are made: `own_max` where each rank has a core
        of its own. Where ranks share cores (``clock`` in `run.json`) it is `synced_max` less the
        time of an empty phase, and never less than `own_max`.
    reads : int
        How often everything was read; numbers of the phases of reading are means over so many. More
        than 1 only with ``repetitions: auto`` and reads from the page cache that take under 0.1 s.
    cpu_seconds : float
        Processor time of all ranks and all their threads in user and kernel mode, without waiting
        at barriers. It varies less than `seconds` on a busy machine. Work that the kernel or a
        server does for the job elsewhere is not in it.
    minor_faults : int or None
        Pages mapped anew, of all ranks together: memory that the allocator got from the kernel
        within the phase, or files that are mapped; a page may be a huge one.
    device_bytes : int or None
        Rows of `read`: bytes that the kernel fetched from a device for these processes, in all
        reads; 0 on file systems without a device of their own.
    resident_after : int or None
        Rows of `read` with cache ``dropped``: bytes of the files in the page cache after reading.
        The job must have fetched all of them (`device_bytes`), or the run is INVALID.
    settle_seconds : float
        Seconds, before the repetition and not timed, until earlier writes were on their device. Of
        several nodes, here and in the columns that follow, the largest value.
    dirty_bytes : int or None
        Bytes of earlier writes, of all programs and file systems of the node, that were not on
        their device when the repetition began. ``settle`` in the experiment limits the wait.
    load : float
        Load average of the last minute; processes that wait for devices are in it.
    busy_others : float
        Part of the node's processor time in the repetition that other processes took, 0 to 1;
        kernel threads that write for this job are among them.
    steal : float
        Part of the processor time that the host of a virtual machine took, 0 to 1.
    cpu_pressure : float
        Part of the repetition in which some process waited for a processor, 0 to 1; 0 where the
        kernel does not report it.
    io_pressure : float
        Part of the repetition in which some process waited for a device, 0 to 1; 0 where the kernel
        does not report it.
    idlest_rank : int or None
        Rank that spent most of the phase off the processor. In collective calls and `sync` all
        ranks take equally long; this is the one that the others, which spin in MPI, waited for.
        With MPI libraries that wait without spinning it means nothing.
    idle_seconds : float
        Seconds that this rank spent off the processor in the phase.
    environment : str
        Environment of the case in a run of several (``environments``); else empty.
    disk_inodes : int or None
        Rows of `close`: number of files and directories of the store, each of which takes an inode.
    new_memory : int or None
        Rows of `read`: bytes of memory that all ranks together got from the kernel in the phase.
    """

    case: str
    repetition: Count
    warmup: bool
    position: Count
    phase: str
    backend: str
    workload: str
    layout: str
    transfer: str
    settings: str
    group: str
    ranks: Positive
    nodes: Count
    arrays: Count
    operations: Count
    bytes: Count
    own_max: float
    own_median: float
    own_min: float
    synced_max: float
    slowest_rank: Count
    slowest_host: str
    below_resolution: bool
    cache: str
    resident: float | None
    verified_bytes: Natural | None
    peak_memory: Count
    disk_bytes: Natural | None
    disk_files: Natural | None
    valid: bool
    started: str
    seconds: float
    reads: Positive = 1
    cpu_seconds: float = math.nan
    minor_faults: Natural | None = None
    device_bytes: Natural | None = None
    resident_after: Natural | None = None
    settle_seconds: float = math.nan
    dirty_bytes: Natural | None = None
    load: float = math.nan
    busy_others: float = math.nan
    steal: float = math.nan
    cpu_pressure: float = math.nan
    io_pressure: float = math.nan
    idlest_rank: Natural | None = None
    idle_seconds: float = math.nan
    environment: str = ""
    disk_inodes: Natural | None = None
    new_memory: Natural | None = None


COLUMNS = Sample.__struct_fields__


def claim(directory: str) -> None:
    """Claim a results directory: of two concurrent runs one is rejected.

    Raises
    ------
    FileExistsError
        Another run has claimed the directory.
    """
    with Path(directory, "samples.csv").open("x"):
        return


class SamplesLog:
    """Appends samples; each repetition is on the device before the next one begins.

    Parameters
    ----------
    path : str
        Path of the file; a header is written if it does not exist or is empty.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        if not Path(path).exists() or Path(path).stat().st_size == 0:
            append_rows(path, [COLUMNS])

    def append(self, samples: Iterable[Sample]) -> None:
        """Write the rows of one repetition with one call and sync them."""
        append_rows(self._path, (_texts(sample) for sample in samples))


def append_rows(path: str | Path, rows: Iterable[Iterable[object]]) -> None:
    """Append rows to a table with one call, and sync them."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    with append_regular(path) as file:
        file.write(text.getvalue().encode("utf-8", "backslashreplace"))
        file.flush()
        os.fsync(file.fileno())


def _texts(sample: Sample) -> Iterator[str]:
    for value in msgspec.structs.astuple(sample):
        if value is None:
            yield ""
        elif isinstance(value, bool):
            yield str(value).lower()
        elif isinstance(value, float):
            yield repr(value)
        else:
            yield str(value)


def read_samples(path: str | Path) -> list[Sample]:
    """Read all complete rows; an incomplete last line, left by a killed run, is omitted.

    Raises
    ------
    ValueError
        The file is not a table of samples, or a row other than the last is broken.
    """
    samples: list[Sample] = []
    with io.TextIOWrapper(open_regular(path), encoding="utf-8", newline="") as file:
        try:
            header = tuple(next(csv.reader([file.readline(_LONGEST_LINE)]), ()))
            if header != COLUMNS:
                raise ValueError(f"{path} is not a table of samples of this version of pffbench")
            for text in _texts_of(file):
                samples += _samples(_cells(text), f"{path} line", len(samples) + 2)
        except (csv.Error, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is not a table of samples: {error}") from None
    refuse_implausible(samples, path)
    return samples


def whole_lines(file: TextIO) -> Iterator[str]:
    """Yield the lines of a table; an incomplete last one is omitted.

    Raises
    ------
    csv.Error
        A line is longer than any valid row.
    """
    while text := file.readline(_LONGEST_LINE):
        if len(text) == _LONGEST_LINE:
            raise csv.Error(f"a line is longer than {_LONGEST_LINE} characters")
        if text.endswith("\n"):
            yield escape_controls(text)


def _texts_of(file: TextIO) -> Iterator[str]:
    """Yield complete lines, many at once; an incomplete last one is omitted."""
    while text := file.read(_TEXT_AT_ONCE):
        text += (rest := file.readline(_LONGEST_LINE))
        if len(rest) == _LONGEST_LINE:
            raise csv.Error(f"a line is longer than {_LONGEST_LINE} characters")
        whole = text[: text.rfind("\n") + 1]
        yield escape_controls(whole) if has_controls(whole) else whole


def _cells(text: str) -> list[list[str]]:
    """Split lines into cells; without a parser if nothing is quoted, as usual."""
    if '"' in text or "\r" in text:
        return list(csv.reader(io.StringIO(text, newline="")))
    return [line.split(",") for line in text.split("\n")[:-1]]


def is_torn(path: str | Path) -> bool:
    """Return whether a file ends in an incomplete line, as left by a killed run."""
    with open_regular(path) as file:
        file.seek(0, os.SEEK_END)
        if file.tell() == 0:
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


@cache
def _text_and_optional() -> tuple[list[int], list[int]]:
    """Return the places of the columns of text, and of those whose cells may be empty."""
    kinds = get_type_hints(Sample)
    texts = [place for place, name in enumerate(COLUMNS) if kinds[name] is str]
    optional = [place for place, name in enumerate(COLUMNS) if NoneType in get_args(kinds[name])]
    return texts, optional


def _samples(rows: list[list[Any]], where: str, first: int) -> list[Sample]:
    """Convert rows, which are changed, to samples; names the first broken one."""
    texts, optional = _text_and_optional()
    for line, row in enumerate(rows, start=first):
        if len(row) != len(COLUMNS):
            raise ValueError(f"{where} {line}: {len(row)} cells, not {len(COLUMNS)}")
        for place in texts:
            row[place] = sys.intern(row[place])  # equal ones share their memory
        for place in optional:
            row[place] = row[place] or None
    try:
        return msgspec.convert(rows, list[Sample], strict=False)
    except msgspec.ValidationError as error:
        told, _, where_in_rows = str(error).replace("`", "").partition(" - at ")
        at, column = map(int, re.findall(r"\d+", where_in_rows))
        cell = one_line(str(rows[at][column]), 40)
        said = f"{COLUMNS[column]} is {cell}: {told}"
        raise ValueError(f"{where} {first + at}: {said}") from None


Repetitions = frozenset[tuple[str, int]]


class CompletedRepetitions(msgspec.Struct, frozen=True):
    """The completed repetitions of a table of samples."""

    #: Repetitions, as case and number, with all phases recorded.
    finished: Repetitions
    #: For a run in two stages: repetitions with all phases up to the last write phase recorded.
    written: Repetitions = frozenset()

    def holds(self, case: str, repetition: int, phase: str) -> bool:
        """Return whether a row belongs to a completed repetition."""
        key = (case, repetition)
        of_writing = phase in WRITE_PHASES or phase in UPDATE_PHASES
        return key in self.finished or (key in self.written and of_writing)


def whole(
    samples: Iterable[Sample], last_written: Mapping[str, str] | None = None
) -> CompletedRepetitions:
    """Find the completed repetitions.

    Parameters
    ----------
    samples : iterable of Sample
        The rows of a run.
    last_written : mapping of str to str, optional
        For a run in two stages, the last write phase of each case.
    """
    last = last_written or {}
    rows = list(samples)
    return CompletedRepetitions(
        frozenset((s.case, s.repetition) for s in rows if s.phase == LAST_PHASE),
        frozenset((s.case, s.repetition) for s in rows if last and s.phase == last.get(s.case)),
    )


def drop_unfinished(path: str, last_written: Mapping[str, str] | None = None) -> str | None:
    """Cut off the rows of an unfinished repetition (`keep_only`); `last_written`: see `whole`."""
    return keep_only(path, whole(read_samples(path), last_written))


def keep_only(path: str, complete: CompletedRepetitions) -> str | None:
    """Keep the rows of some repetitions, and put the others into another file.

    Returns
    -------
    str or None
        The file with the removed text, None if nothing was removed.
    """
    with open_regular(path) as data:
        text = data.read().decode("utf-8")
    kept: list[str] = []
    cut: list[str] = []
    for line in text.splitlines(keepends=True):
        (kept if _stays(line, complete) else cut).append(line)
    if not cut:
        return None
    aside = path + ".unfinished"
    with append_regular(aside) as file:
        file.write(("".join(cut).rstrip("\n") + "\n").encode())
    write_replacing(path, "".join(kept))
    return aside


def _stays(line: str, complete: CompletedRepetitions) -> bool:
    cells = next(csv.reader([line]))
    if tuple(cells) == COLUMNS:
        return True
    if len(cells) != len(COLUMNS) or not line.endswith("\n"):
        return False
    row = dict(zip(COLUMNS, cells, strict=True))
    return complete.holds(row["case"], int(row["repetition"]), row["phase"])
