"""Gathering the times and observations of one repetition on rank 0.

The ranks' text reports are usually equal. They are merged along a tree, so that no rank receives
from more than a few others and rank 0 receives little more than one report.
"""

from __future__ import annotations

import math
import mmap
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from msgspec.structs import astuple

from pffbench.backends.hints import FileHints
from pffbench.backends.inspection import StoredAs
from pffbench.case import Case
from pffbench.mpi.single import mpi_of
from pffbench.mpi.topology import Team
from pffbench.observe.machine import MachineLoad
from pffbench.observe.process_counters import COUNTERS, IO
from pffbench.phases import READ_PHASES
from pffbench.storage.block_device import DeviceReads
from pffbench.storage.durability import DiskUsage, Settled
from pffbench.storage.page_cache import CacheProof

if TYPE_CHECKING:
    from pffbench.record.repetitions import Counted, MachineState
    from pffbench.workloads.repetition import Observed, Repetition


Matrix = np.ndarray[Any, Any]
#: By phase and counter: the total over all ranks, and the largest value.
Counts = Mapping[tuple[str, str], tuple[float, float]]


class Conditions(msgspec.Struct, frozen=True):
    """The state of a rank's node during a repetition.

    Parameters
    ----------
    settled : Settled
        Time until earlier writes were on the device, and the remaining bytes.
    load : MachineLoad or None
        Load of the node; None on ranks that do not monitor it.
    cpu_seconds : float
        Processor time of this process, including untimed work.
    """

    settled: Settled
    load: MachineLoad | None
    cpu_seconds: float

    @property
    def numbers(self) -> tuple[float, ...]:
        """All fields as numbers; 0 if unknown."""
        settled, load = self.settled, astuple(self.load or MachineLoad())
        return (settled.seconds, float(settled.dirty_bytes), *load, self.cpu_seconds)


def state_of(numbers: Matrix, nodes: Sequence[int]) -> MachineState:
    """Reduce the ranks' numbers, shape (ranks, numbers), to the worst of each.

    What others used is what all used less the processor time of this node's ranks, both in the same
    interval.
    """
    seconds, dirty, load, _, *held_up, _, _ = numbers.max(axis=0).tolist()
    cpu: dict[int, float] = defaultdict(float)
    busy: dict[int, float] = defaultdict(float)
    capacity: dict[int, float] = defaultdict(float)
    for node, row in zip(nodes, numbers, strict=True):
        cpu[node] += float(row[-1])
        busy[node] = max(busy[node], float(row[3]))
        capacity[node] = max(capacity[node], float(row[-2]), 1e-9)
    others = max(busy[node] - cpu[node] / capacity[node] for node in busy)
    from pffbench.record.repetitions import MachineState  # needed on rank 0 only

    return MachineState(seconds, int(dirty), load, min(1.0, max(0.0, others)), *held_up)


class GatheredRepetition(msgspec.Struct, frozen=True):
    """One repetition of a case, gathered from all ranks on rank 0.

    Parameters
    ----------
    case : Case
        The case.
    number : int
        Number of the repetition, warm-ups included.
    position : int
        Position in the order of its round.
    started : datetime
        Time of its start, by the clock of rank 0.
    phases : tuple of str
        Names of the phases.
    job : array of float64, shape (phases,)
        Seconds of the slowest rank, batch by batch: ranks synchronize between batches.
    own, synced : array of float64, shape (phases, ranks)
        Seconds.
    entries : array of float64, shape (phases,)
        Number of entries into each phase: data moved in batches enter it once per batch.
    nbytes, operations : array of int64, shape (phases, ranks)
        Bytes moved and calls made by each rank.
    cpu, faults : array of float64, shape (phases, ranks)
        Processor seconds, and page faults that mapped new pages.
    peak_memory : array of int64, shape (ranks,)
        Bytes.
    machine : MachineState
        State of the nodes.
    reads : int
        Number of reads of the data; all numbers of read phases are means over them.
    kernel_bytes, device_bytes : float
        Bytes delivered by the kernel, and bytes fetched from a device, for all reads of all ranks
        together; NaN if unknown.
    resident_after : int or None
        With a dropped cache: bytes of the files in the page cache after reading.
    device_reads : DeviceReads
        With a dropped cache: what the devices of all nodes read meanwhile, for all programs.
    added_memory : array of float64, shape (ranks,), optional
        Bytes of memory that each rank added in a read, at most.
    mismatches : tuple of str
        Descriptions of data that differ from the data written.
    verified_bytes : int
        Number of bytes compared, over all ranks.
    cache : CacheProof or None
        State of the page cache before reading.
    disk : DiskUsage or None
        Size on disk after closing.
    stored_as : StoredAs or None
        Storage layout of the arrays.
    facts : dict of str to str
        The library's reports about the transfers, of all ranks.
    hints, hints_of_reading : tuple of FileHints
        What became of hints: of the files open for writing, and for reading.
    counts : tuple of Counted
        Counters of the kernel and of the workload.
    remarks : tuple of str
        Distinct remarks of the workload.
    """

    case: Case
    number: int
    position: int
    started: datetime
    phases: tuple[str, ...]
    job: Matrix
    own: Matrix
    synced: Matrix
    entries: Matrix
    nbytes: Matrix
    operations: Matrix
    cpu: Matrix
    faults: Matrix
    peak_memory: Matrix
    machine: MachineState
    mismatches: tuple[str, ...]
    verified_bytes: int
    cache: CacheProof | None
    disk: DiskUsage | None
    stored_as: StoredAs | None
    facts: dict[str, str]
    counts: tuple[Counted, ...]
    remarks: tuple[str, ...] = ()
    hints: tuple[FileHints, ...] = ()
    hints_of_reading: tuple[FileHints, ...] = ()
    reads: int = 1
    kernel_bytes: float = math.nan
    device_bytes: float = math.nan
    resident_after: int | None = None
    device_reads: DeviceReads = DeviceReads()
    added_memory: Matrix | None = None

    @property
    def own_device_reads(self) -> int | None:
        """Requests of this job to the devices; None if unknown.

        The kernel counts requests of a device for all programs, but bytes for each process. Where
        the device delivered as many bytes as this job fetched, no request was another program's.
        """
        requests, nbytes = self.device_reads
        return int(requests) if nbytes == self.device_bytes else None

    @property
    def new_memory(self) -> int | None:
        """Bytes of memory that all ranks together took anew in a read; None without reads.

        Page faults count pages, of which huge ones hold hundreds of times as many bytes. What the
        process has grown by counts their bytes, but not memory that is taken several times.
        """
        if "read" not in self.phases:
            return None
        faulted = self.faults[self.phases.index("read")] * mmap.PAGESIZE
        grown = 0.0 if self.added_memory is None else self.added_memory
        return int(np.maximum(faulted, grown).sum())


def gather(
    team: Team,
    repetition: Repetition,
    number: int,
    position: int,
    started: datetime,
    peak: int,
    conditions: Conditions,
) -> GatheredRepetition | None:
    """Gather a repetition on rank 0; collective, None on the other ranks.

    Numbers are gathered unreduced, some hundred bytes per rank. Text reports are merged along a
    tree (`RankReports`), so that rank 0 does not receive one from each rank.
    """
    times, observed = repetition.clock.times, repetition.observed
    own = [n for t in times for n in (t.own, t.synced, t.nbytes, t.operations, *t.counters)]
    reading = (
        observed.verified_bytes, observed.kernel_bytes, observed.device_bytes,
        observed.added_memory, *observed.device_reads,
    )  # fmt: skip
    apart = [peak, *reading, *conditions.numbers]
    here = np.array([*apart, *own], dtype=np.float64)
    everywhere = np.empty((team.size, len(here))) if team.is_root else None
    team.comm.Gather(here, everywhere, root=0)
    job = _job_seconds(team, [t.parts for t in times])
    told = team.comm.reduce(RankReports.of(team.rank, observed), op=RankReports.__add__, root=0)
    if everywhere is None or job is None or told is None:
        return None
    first = len(apart)
    by_kind = everywhere[:, first:].reshape(team.size, len(times), -1).transpose(2, 1, 0)
    phases = tuple(t.phase for t in times)
    # Data read several times are reported as the mean over the reads.
    each = np.array([observed.reads if phase in READ_PHASES else 1 for phase in phases])
    by_kind /= each[:, np.newaxis]
    begin = 1 + len(reading)
    verified, kernel, device, _, *device_reads = everywhere[:, 1:begin].sum(axis=0).tolist()
    return GatheredRepetition(
        case=repetition.case,
        number=number,
        position=position,
        started=started,
        phases=phases,
        job=job / each,
        own=by_kind[0],
        synced=by_kind[1],
        entries=np.array([len(t.parts) for t in times]) / each,
        nbytes=by_kind[2].astype(np.int64),
        operations=by_kind[3].astype(np.int64),
        cpu=by_kind[4],
        faults=by_kind[5],
        peak_memory=everywhere[:, 0].astype(np.int64),
        machine=state_of(everywhere[:, begin:first], team.topology.nodes),
        mismatches=told.all_mismatches,
        verified_bytes=int(verified),
        cache=observed.cache,
        disk=told.disk,
        stored_as=observed.stored_as,
        facts=told.united_facts,
        counts=_counts(phases, by_kind[4:], told.counts),
        remarks=told.remarks,
        hints=told.hints,
        hints_of_reading=told.hints_of_reading,
        reads=observed.reads,
        kernel_bytes=float(kernel),
        device_bytes=float(device),
        resident_after=observed.resident_after,
        device_reads=DeviceReads(*device_reads),
        added_memory=everywhere[:, 4] / observed.reads,
    )


def _job_seconds(team: Team, parts: Sequence[tuple[float, ...]]) -> Matrix | None:
    """Add up on rank 0, for each phase, the slowest rank of each batch; collective."""
    here = np.array([second for phase in parts for second in phase], dtype=np.float64)
    slowest = np.empty_like(here) if team.is_root else None
    team.comm.Reduce(here, slowest, op=mpi_of(team.comm).MAX, root=0)
    if slowest is None:
        return None
    begins = np.cumsum([0, *(len(phase) for phase in parts[:-1])])
    return np.add.reduceat(slowest, begins)


def _counts(phases: Sequence[str], metered: Matrix, told: Counts) -> tuple[Counted, ...]:
    """Sum the kernel's counters, shape (counters, phases, ranks), and the workloads' over ranks."""
    from pffbench.record.repetitions import Counted  # needed on rank 0 only

    # Without bytes and calls, counting was not requested: the rest is in each repetition.
    found = [
        Counted(phase, what, float(of_ranks.sum()), float(of_ranks.max()))
        for i, phase in enumerate(phases)
        for what, of_ranks in zip(COUNTERS, metered[:, i], strict=False)
        if len(metered) > len(COUNTERS) - len(IO)
    ]
    if found:
        found += [Counted(*moving) for moving in _moving_ranks(phases, metered)]
    found += [Counted(*key, *told[key]) for key in sorted(told)]
    return tuple(found)


def _moving_ranks(
    phases: Sequence[str], metered: Matrix
) -> Iterator[tuple[str, str, float, float]]:
    """Count the ranks that write, and read, by calls: in collective transfers only some may.

    A rank whose calls move under a hundredth of the bytes of the busiest one does not count: MPI
    wakes processes by writing some bytes to them.
    """
    for phase, what, bytes_of in (
        ("write", "writing_ranks", "written_bytes"),
        ("read", "reading_ranks", "read_bytes"),
    ):
        if phase in phases:
            moved = metered[COUNTERS.index(bytes_of), phases.index(phase)]
            count = float(np.count_nonzero(moved > moved.max() / _BUSIEST))
            yield phase, what, count, count


#: Part of the busiest rank's bytes below which a rank moves none.
_BUSIEST = 100
#: Mismatches kept per rank, and in total: one is enough to make a run invalid.
_OF_A_RANK = 3
_OF_ALL = 30


class RankReports(msgspec.Struct, frozen=True):
    """Merged text reports of some neighbouring ranks.

    Parameters
    ----------
    mismatches : tuple of str
        Descriptions of data that differ from the data written; the first ones, by rank.
    unsaid : int
        Number of mismatches not included.
    facts : dict of str to frozenset of str
        The library's reports about the transfers: all values of each key.
    counts : dict of (str, str) to (float, float)
        By phase and counter: sum and maximum over these ranks.
    remarks : tuple of str
        Distinct remarks of the workload.
    disk : DiskUsage or None
        Size on disk, in the directories that these ranks look after.
    hints, hints_of_reading : tuple of FileHints
        What became of hints, of each file that has an answer of its own.
    """

    mismatches: tuple[str, ...] = ()
    unsaid: int = 0
    facts: Mapping[str, frozenset[str]] = {}
    counts: Mapping[tuple[str, str], tuple[float, float]] = {}
    remarks: tuple[str, ...] = ()
    disk: DiskUsage | None = None
    hints: tuple[FileHints, ...] = ()
    hints_of_reading: tuple[FileHints, ...] = ()

    @classmethod
    def of(cls, rank: int, observed: Observed) -> RankReports:
        """Return the report of one rank."""
        words = tuple(f"rank {rank}: {m}" for m in observed.mismatches[:_OF_A_RANK])
        return cls(
            mismatches=words,
            unsaid=len(observed.mismatches) - len(words),
            facts={key: frozenset({text}) for key, text in observed.facts.items()},
            counts={key: (amount, amount) for key, amount in observed.counts.items()},
            remarks=tuple(dict.fromkeys(observed.remarks)),
            disk=observed.disk,
            hints=tuple(observed.hints),
            hints_of_reading=tuple(observed.hints_of_reading),
        )

    def __add__(self, other: RankReports) -> RankReports:
        """Merge these reports with those of the ranks that follow."""
        mismatches = self.mismatches + other.mismatches
        kept = mismatches[:_OF_ALL]
        facts = dict(self.facts)
        for key, texts in other.facts.items():
            facts[key] = facts.get(key, frozenset()) | texts
        counts = dict(self.counts)
        for place, (total, largest) in other.counts.items():
            here, most = counts.get(place, (0.0, 0.0))
            counts[place] = (here + total, max(most, largest))
        return RankReports(
            kept,
            self.unsaid + other.unsaid + len(mismatches) - len(kept),
            facts,
            counts,
            tuple(dict.fromkeys(self.remarks + other.remarks)),
            other.disk if self.disk is None else self.disk.with_more(other.disk),
            tuple(dict.fromkeys(self.hints + other.hints)),
            tuple(dict.fromkeys(self.hints_of_reading + other.hints_of_reading)),
        )

    @property
    def all_mismatches(self) -> tuple[str, ...]:
        """Mismatches in words, with the number of those omitted."""
        more = (f"and {self.unsaid} mismatches more",) if self.unsaid else ()
        return self.mismatches + more

    @property
    def united_facts(self) -> dict[str, str]:
        """The library's reports; all values where ranks differ."""
        return {key: " | ".join(sorted(self.facts[key])) for key in sorted(self.facts)}
