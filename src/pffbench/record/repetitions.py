"""`repetitions.jsonl`: a line for each repetition, appended and synced before the next one begins.

A line is whole or absent: one that a killed run left incomplete counts as never written. In a run
of two jobs, one that writes and one that reads, a repetition has a line of each.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import Annotated, Literal

import msgspec

from pffbench.record.plausible import Count, Natural, Positive
from pffbench.regular_files import KeptFile, append_regular, open_regular, replacing
from pffbench.storage.durability import DiskUsage
from pffbench.text import escaped, json_needs_escaping, one_line

FILE = "repetitions.jsonl"
#: Maximum bytes of a line; one of a hundred phases has some 30 KB.
_LONGEST_LINE = 2**24
Part = Literal["all", "write", "read"]
#: Seconds; an INVALID repetition may have those of a clock that ran backwards, or -1 for what is
#: no number.
Seconds = float
Fraction = Annotated[float, msgspec.Meta(ge=0, le=1)]


class PhaseTimes(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One phase of a repetition, over all ranks."""

    #: The phase that was timed.
    phase: str
    #: The time of the job, from which all statistics are made: `own_max` if each rank has a
    #: separate core. If ranks share cores (``clock`` in `run.json`) it is `synced_max` less the
    #: time of an empty phase, and never less than `own_max`.
    seconds: Seconds
    #: Own time of the slowest, the middle and the fastest rank: from leaving the barrier before the
    #: phase until its own end of the phase. For data in several batches the times of the slowest
    #: rank of each batch are added up.
    own_max: Seconds
    own_median: Seconds
    own_min: Seconds
    #: Largest time of any rank from the same barrier until the barrier after the phase. It includes
    #: one barrier.
    synced_max: Seconds
    #: Array data moved by all ranks, before compression. 0 if no data move.
    bytes: Natural = 0
    #: Library calls of all ranks: arrays in `define` and `open_array`, transfers in `write` and
    #: `read`, files and directories in `sync`.
    operations: Natural = 0
    #: Rank with the largest own time.
    slowest_rank: Natural = 0
    #: Processor time of all ranks and all their threads.
    cpu_seconds: float = 0.0
    #: Newly mapped pages of all ranks together.
    minor_faults: Natural = 0
    #: Rank that spent the most time of the phase off the processor.
    idlest_rank: Natural = 0
    #: Seconds that this rank spent off the processor in the phase.
    idle_seconds: float = 0.0


class MachineState(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The state of the nodes during a repetition; for each quantity, that of the worst node."""

    #: Seconds, before the repetition and not timed, until earlier writes were on their device.
    settle_seconds: float = 0.0
    #: Bytes of earlier writes, of all programs and file systems of the node, that were not on their
    #: device when the repetition began.
    dirty_bytes: Natural = 0
    #: Load average of the last minute, including processes that wait for devices.
    load: float = 0.0
    #: Part of the node's processor time that other processes used, 0 to 1.
    busy_others: float = 0.0
    #: Part of the processor time that the host of a virtual machine used, 0 to 1.
    steal: float = 0.0
    #: Part of the repetition in which a process waited for a processor, or for a device.
    cpu_pressure: float = 0.0
    io_pressure: float = 0.0


class ReadState(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What is known of the reads of a repetition."""

    #: The proved state of the page cache, or ``unproved``. Caches of servers, RAID controllers and
    #: disks are not seen.
    cache: str
    #: Part of the pages of the files to be read that was in the page cache before `open`.
    resident: Fraction | None = None
    #: Bytes compared with the expected ones, over all ranks: all bytes that the phases of reading
    #: moved, times `times`, or the run is INVALID.
    verified_bytes: Natural = 0
    #: Number of times that all data were read. Numbers of the phases of reading are means over
    #: them.
    times: Positive = 1
    #: Bytes that the kernel fetched from a device for these processes, in all reads. 0 on file
    #: systems without a device.
    device_bytes: Natural | None = None
    #: With cache ``dropped``: bytes of the files in the page cache after reading.
    resident_after: Natural | None = None
    #: With cache ``dropped``: requests that the block devices of the nodes answered in all reads.
    #: None if the file system has none, or if they delivered more bytes than this job fetched,
    #: because then they answered other programs too.
    device_reads: Natural | None = None
    #: Bytes of memory that all ranks together got from the kernel in the phase `read`.
    new_memory: Natural | None = None


class Counted(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A counter of a phase."""

    #: The phase and the counter.
    phase: str
    name: str
    #: Of all ranks together, and of the rank with the largest count.
    total: float
    largest: float = 0.0


class Repetition(msgspec.Struct, frozen=True, omit_defaults=True):
    """One repetition of a case, over all ranks: a line of the file."""

    #: Name of the case; `run.json` has its parameters under this name.
    case: str
    #: Number of the round, from 0, warm-ups included. All cases ran once in a round.
    round: Natural
    #: Position of the case in the random order of its round.
    position: Natural
    #: When it began, in UTC by the clock of rank 0.
    started: str
    #: The phases in their order.
    phases: tuple[PhaseTimes, ...]
    #: Seconds of each total. If each rank has a separate core, it is the largest sum over the ranks
    #: of a rank's own times of the phases of the total. Otherwise it is the sum of the phases.
    totals: dict[str, float]
    #: Whether it is left out of all statistics.
    warmup: bool = False
    #: False if bytes read were wrong, or the requested cache state was not reached. `run.json` has
    #: the reason.
    valid: bool = True
    #: The part of the repetition that the job did.
    part: Part = "all"
    #: Largest peak of resident memory of any rank, in bytes, or -1 if Linux does not report it.
    peak_memory: Count = -1
    #: The nodes.
    machine: MachineState = MachineState()
    #: Of a repetition that reads.
    read: ReadState | None = None
    #: Of a repetition that writes, when the store was closed.
    disk: DiskUsage | None = None
    #: With `counters`: counts of the kernel and of the workload.
    counts: tuple[Counted, ...] = ()

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds by phase and by total."""
        return {times.phase: times.seconds for times in self.phases} | self.totals

    @property
    def by_phase(self) -> dict[str, PhaseTimes]:
        """Its phases by their names."""
        return {times.phase: times for times in self.phases}


#: Names of cases with numbers of rounds.
Done = frozenset[tuple[str, int]]


def done_parts(repetitions: Iterable[Repetition]) -> tuple[Done, Done]:
    """Return the repetitions that are finished, and those that are written but not yet read."""
    parts: dict[tuple[str, int], set[Part]] = {}
    for one in repetitions:
        parts.setdefault((one.case, one.round), set()).add(one.part)
    finished = frozenset(key for key, some in parts.items() if some != {"write"})
    return finished, frozenset(parts) - finished


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Repetition)


class RepetitionsLog:
    """Appends repetitions; each is on the device before the next one begins.

    Parameters
    ----------
    directory : str or Path
        The results directory.
    """

    def __init__(self, directory: str | Path) -> None:
        self._path = Path(directory) / FILE
        append_regular(self._path).close()
        self._kept = KeptFile(self._path)
        self._size = self._kept.size

    def check(self) -> None:
        """Check that the results directory is still the one of this run, with all of its lines.

        Raises
        ------
        OSError
            It was removed, renamed or replaced, or another program has changed the file.
        """
        self._kept.check()
        if self._kept.size != self._size:
            raise OSError(f"{self._path} was changed by another program")

    def append(self, repetition: Repetition) -> None:
        """Write a repetition with one call and sync it."""
        self.check()
        try:
            with append_regular(self._path) as file:
                file.write(_ENCODER.encode(repetition) + b"\n")
                file.flush()
                os.fsync(file.fileno())
        finally:  # a full disk may hold a part of the line
            self._size = self._kept.size

    def keep(self, repetitions: Iterable[Repetition]) -> None:
        """Replace the file by one with some repetitions, to which others are then appended."""
        self.check()
        keep(self._path.parent, repetitions)
        self._kept = KeptFile(self._path)
        self._size = self._kept.size


def claim(directory: str | Path) -> None:
    """Claim a results directory: of two concurrent runs one is rejected.

    Raises
    ------
    FileExistsError
        Another run has claimed the directory.
    """
    with Path(directory, FILE).open("x"):
        return


def read_repetitions(directory: str | Path) -> list[Repetition]:
    """Read all repetitions of a results directory, in the order in which they ended.

    Raises
    ------
    ValueError
        A line other than an incomplete last one is not a repetition, or is there twice.
    OSError
        The file cannot be read.
    """
    path = Path(directory) / FILE
    found: list[Repetition] = []
    known: set[tuple[str, int, str]] = set()
    for number, line in enumerate(_whole_lines(path), start=1):
        try:
            repetition = _decoded(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            why = one_line(str(error), 200).replace("`", "")
            raise ValueError(f"{path} line {number}: not a repetition: {why}") from None
        if reason := _implausible(repetition, known):
            raise ValueError(f"{path} line {number}: {reason}")
        found.append(repetition)
    return found


def _decoded(line: bytes) -> Repetition:
    """Return a repetition, without text that would act on a terminal."""
    if json_needs_escaping(line):
        return msgspec.convert(escaped(msgspec.json.decode(line)), Repetition)
    return _DECODER.decode(line)


def merged(repetitions: Iterable[Repetition]) -> list[Repetition]:
    """Join the parts of repetitions that two jobs did; parts without the other stay as they are."""
    found: dict[tuple[str, int], Repetition] = {}
    for one in repetitions:
        key = one.case, one.round
        written = found.get(key)
        found[key] = one if written is None else _joined(written, one)
    return list(found.values())


def _joined(written: Repetition, read: Repetition) -> Repetition:
    return msgspec.structs.replace(
        written,
        phases=(*written.phases, *read.phases),
        totals=written.totals | read.totals,
        valid=written.valid and read.valid,
        part="all",
        peak_memory=max(written.peak_memory, read.peak_memory),
        read=read.read,
        counts=(*written.counts, *read.counts),
    )


def median_counts(repetitions: Iterable[Repetition]) -> dict[tuple[str, str], float]:
    """Return the counters of the repetitions of a case, by phase and name.

    Median over those that count, of all ranks together. Of a counter that only warm-ups have
    (``memory_added``) these are used.
    """
    values: dict[tuple[str, str], list[float]] = {}
    warmups: dict[tuple[str, str], list[float]] = {}
    for one in repetitions:
        for count in one.counts:
            into = warmups if one.warmup else values
            into.setdefault((count.phase, count.name), []).append(count.total)
    return {key: median(some) for key, some in (warmups | values).items()}


def keep(directory: str | Path, repetitions: Iterable[Repetition]) -> None:
    """Replace the file by one with some repetitions."""
    with replacing(Path(directory) / FILE, "wb", durable=True) as file:
        file.writelines(_ENCODER.encode(one) + b"\n" for one in repetitions)


def is_torn(directory: str | Path) -> bool:
    """Return whether the file ends in an incomplete line, as left by a killed run."""
    with open_regular(Path(directory) / FILE) as file:
        return _end_of_whole_lines(file.read()) != file.tell()


def cut_torn(directory: str | Path) -> Path | None:
    """Move an incomplete last line into a file of its own; return that file, or None."""
    path = Path(directory) / FILE
    with open_regular(path) as file:
        data = file.read()
    end = _end_of_whole_lines(data)
    if end == len(data):
        return None
    aside = path.with_name(FILE + ".unfinished")
    with append_regular(aside) as file:
        file.write(data[end:] + b"\n")
    os.truncate(path, end)
    return aside


def _end_of_whole_lines(data: bytes) -> int:
    return data.rfind(b"\n") + 1


def _whole_lines(path: Path) -> Iterator[bytes]:
    with open_regular(path) as file:
        while line := file.readline(_LONGEST_LINE):
            if len(line) == _LONGEST_LINE:
                raise ValueError(f"{path} has a line of more than {_LONGEST_LINE >> 20} MiB")
            if line.endswith(b"\n"):
                yield line


def _implausible(one: Repetition, known: set[tuple[str, int, str]]) -> str:
    """Return why a line cannot have been written by a run; empty if it can."""
    key = (one.case, one.round, one.part)
    if key in known:
        return f"round {one.round} of {one_line(one.case, 80)} is there twice"
    known.add(key)
    names = [times.phase for times in one.phases]
    if len(set(names)) < len(names):
        return "a phase is there twice"
    # A repetition that is not valid may hold the times of a clock that ran backwards.
    if one.valid and any(not 0 <= s < math.inf for s in one.seconds.values()):
        return "a time is not a number of seconds"
    return ""
