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
    """The state of a rank's node during a repetition."""

    #: Time until earlier writes were on the device, and the remaining bytes.
    settled: Settled
    #: Load of the node; None on ranks that do not monitor it.
    load: MachineLoad | None
    #: Processor time of this process, including untimed work.
    cpu_seconds: float

    @property
    def numbers(self) -> tuple[float, ...]:
        """All fields as numbers, in the order of `STATE`; 0 if unknown."""
        settled, load = self.settled, astuple(self.load or MachineLoad())
        return (settled.seconds, float(settled.dirty_bytes), *load, self.cpu_seconds)


def _numbers(*names: str) -> np.dtype[Any]:
    return np.dtype([(name, np.float64) for name in names])


#: `Conditions` as a rank sends them.
STATE = _numbers("settle_seconds", "dirty_bytes", *MachineLoad.__struct_fields__, "cpu_seconds")


def _sent_numbers(phases: int, counters: Sequence[str]) -> np.dtype[Any]:
    """Return the type of what a rank sends of a repetition: all fields are float64."""
    of_phase = _numbers("own", "synced", "nbytes", "operations", *counters)
    return np.dtype(
        [
            ("peak_memory", np.float64),
            ("verified_bytes", np.float64),
            ("kernel_bytes", np.float64),
            ("device_bytes", np.float64),
            ("added_memory", np.float64),
            ("device_reads", _numbers(*DeviceReads._fields)),
            ("state", STATE),
            ("phases", of_phase, (phases,)),
        ]
    )


def state_of(states: Matrix, nodes: Sequence[int]) -> MachineState:
    """Reduce the states of the ranks, an array of type `STATE`, to the worst of each number.

    What others used is what all used less the processor time of this node's ranks, both in the same
    interval.
    """
    cpu: dict[int, float] = defaultdict(float)
    busy: dict[int, float] = defaultdict(float)
    capacity: dict[int, float] = defaultdict(float)
    by_rank = (states[name].tolist() for name in ("cpu_seconds", "busy", "capacity"))
    for node, seconds, used, all_seconds in zip(nodes, *by_rank, strict=True):
        cpu[node] += seconds
        busy[node] = max(busy[node], used)
        capacity[node] = max(capacity[node], all_seconds, 1e-9)
    others = max(busy[node] - cpu[node] / capacity[node] for node in busy)
    worst = {name: float(states[name].max()) for name in STATE.names or ()}
    from pffbench.record.repetitions import MachineState  # needed on rank 0 only

    return MachineState(
        settle_seconds=worst["settle_seconds"],
        dirty_bytes=int(worst["dirty_bytes"]),
        load=worst["load"],
        busy_others=min(1.0, max(0.0, others)),
        steal=worst["steal"],
        cpu_pressure=worst["cpu_pressure"],
        io_pressure=worst["io_pressure"],
    )


class GatheredRepetition(msgspec.Struct, frozen=True):
    """One repetition of a case, gathered from all ranks on rank 0."""

    #: The case.
    case: Case
    #: Number of the repetition, warm-ups included.
    number: int
    #: Position in the order of its round.
    position: int
    #: Time of its start, by the clock of rank 0.
    started: datetime
    #: Names of the phases.
    phases: tuple[str, ...]
    #: Seconds of the slowest rank, batch by batch: ranks synchronize between batches. Shape
    #: (phases,).
    job: Matrix
    #: Seconds. Shape (phases, ranks).
    own: Matrix
    synced: Matrix
    #: Number of entries into each phase: data moved in batches enter it once per batch. Shape
    #: (phases,).
    entries: Matrix
    #: Bytes moved and calls made by each rank. Shape (phases, ranks).
    nbytes: Matrix
    operations: Matrix
    #: Processor seconds, and page faults that mapped new pages. Shape (phases, ranks).
    cpu: Matrix
    faults: Matrix
    #: Bytes. Shape (ranks,).
    peak_memory: Matrix
    #: State of the nodes.
    machine: MachineState
    #: Descriptions of data that differ from the data written.
    mismatches: tuple[str, ...]
    #: Number of bytes compared, over all ranks.
    verified_bytes: int
    #: State of the page cache before reading.
    cache: CacheProof | None
    #: Size on disk after closing.
    disk: DiskUsage | None
    #: Storage layout of the arrays.
    stored_as: StoredAs | None
    #: The library's reports about the transfers, of all ranks.
    facts: dict[str, str]
    #: Counters of the kernel and of the workload.
    counts: tuple[Counted, ...]
    #: Distinct remarks of the workload.
    remarks: tuple[str, ...] = ()
    #: What became of hints: of the files open for writing, and for reading.
    hints: tuple[FileHints, ...] = ()
    hints_of_reading: tuple[FileHints, ...] = ()
    #: Number of reads of the data; all numbers of read phases are means over them.
    reads: int = 1
    #: Bytes delivered by the kernel, and bytes fetched from a device, for all reads of all ranks
    #: together; NaN if unknown.
    kernel_bytes: float = math.nan
    device_bytes: float = math.nan
    #: With a dropped cache: bytes of the files in the page cache after reading.
    resident_after: int | None = None
    #: With a dropped cache: what the devices of all nodes read meanwhile, for all programs.
    device_reads: DeviceReads = DeviceReads()
    #: Bytes of memory that each rank added in a read, at most. Shape (ranks,).
    added_memory: Matrix | None = None
    #: Seconds of work that only the first repetition of a case does.
    once: float = 0.0

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
    repetition: Repetition,
    number: int,
    position: int,
    started: datetime,
    conditions: Conditions,
) -> GatheredRepetition | None:
    """Gather a repetition on rank 0; collective, None on the other ranks.

    Numbers are gathered unreduced, some hundred bytes per rank. Text reports are merged along a
    tree (`RankReports`), so that rank 0 does not receive one from each rank.
    """
    observed, team = repetition.observed, repetition.place.team
    times = repetition.place.clock.times
    sent = _gathered_numbers(repetition, conditions)
    job = _job_seconds(team, [t.parts for t in times])
    told = team.comm.reduce(RankReports.of(team.rank, observed), op=RankReports.__add__, root=0)
    if sent is None or job is None or told is None:
        return None
    phases = tuple(t.phase for t in times)
    # Data read several times are reported as the mean over the reads.
    each = np.array([observed.reads if phase in READ_PHASES else 1 for phase in phases])
    fields = sent["phases"].dtype.names or ()
    of = {name: sent["phases"][name].T / each[:, np.newaxis] for name in fields}
    return GatheredRepetition(
        case=repetition.subject.case,
        number=number,
        position=position,
        started=started,
        phases=phases,
        job=job / each,
        own=of["own"],
        synced=of["synced"],
        entries=np.array([len(t.parts) for t in times]) / each,
        nbytes=of["nbytes"].astype(np.int64),
        operations=of["operations"].astype(np.int64),
        cpu=of["cpu_seconds"],
        faults=of["minor_faults"],
        peak_memory=sent["peak_memory"].astype(np.int64),
        machine=state_of(sent["state"], team.topology.nodes),
        mismatches=told.all_mismatches,
        verified_bytes=int(sent["verified_bytes"].sum()),
        cache=observed.cache,
        disk=told.disk,
        stored_as=observed.stored_as,
        facts=told.united_facts,
        counts=_counts(phases, of, told.counts),
        remarks=told.remarks,
        hints=told.hints,
        hints_of_reading=told.hints_of_reading,
        reads=observed.reads,
        kernel_bytes=float(sent["kernel_bytes"].sum()),
        device_bytes=float(sent["device_bytes"].sum()),
        resident_after=observed.resident_after,
        device_reads=DeviceReads(
            *(float(sent["device_reads"][name].sum()) for name in DeviceReads._fields)
        ),
        added_memory=sent["added_memory"] / observed.reads,
        once=observed.once,
    )


def _gathered_numbers(repetition: Repetition, conditions: Conditions) -> Matrix | None:
    """Gather the numbers of each rank on rank 0, an array of `_sent_numbers`; collective."""
    place, observed = repetition.place, repetition.observed
    team, times = place.team, place.clock.times
    counters = COUNTERS[: len(times[0].counters)]  # those of IO are only read if asked for
    here = np.zeros(1, _sent_numbers(len(times), counters))
    here["peak_memory"] = place.peak.read()
    for name in ("verified_bytes", "kernel_bytes", "device_bytes", "added_memory"):
        here[name] = getattr(observed, name)
    here["device_reads"] = tuple(observed.device_reads)
    here["state"] = conditions.numbers
    here["phases"] = [(t.own, t.synced, t.nbytes, t.operations, *t.counters) for t in times]
    everywhere = np.empty(team.size, here.dtype) if team.is_root else None
    received = None if everywhere is None else everywhere.view(np.float64)
    team.comm.Gather(here.view(np.float64), received, root=0)
    return everywhere


def _job_seconds(team: Team, parts: Sequence[tuple[float, ...]]) -> Matrix | None:
    """Add up on rank 0, for each phase, the slowest rank of each batch; collective."""
    here = np.array([second for phase in parts for second in phase], dtype=np.float64)
    slowest = np.empty_like(here) if team.is_root else None
    team.comm.Reduce(here, slowest, op=mpi_of(team.comm).MAX, root=0)
    if slowest is None:
        return None
    begins = np.cumsum([0, *(len(phase) for phase in parts[:-1])])
    return np.add.reduceat(slowest, begins)


def _counts(phases: Sequence[str], of: Mapping[str, Matrix], told: Counts) -> tuple[Counted, ...]:
    """Sum the kernel's counters, each of shape (phases, ranks), and the workloads' over ranks."""
    from pffbench.record.repetitions import Counted  # needed on rank 0 only

    found = []
    if of.keys() >= set(IO):  # otherwise counting was not requested
        found += [
            Counted(phase, what, float(of[what][i].sum()), float(of[what][i].max()))
            for i, phase in enumerate(phases)
            for what in COUNTERS
        ]
        found += [Counted(*moving) for moving in _moving_ranks(phases, of)]
    found += [Counted(*key, *told[key]) for key in sorted(told)]
    return tuple(found)


def _moving_ranks(
    phases: Sequence[str], of: Mapping[str, Matrix]
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
            moved = of[bytes_of][phases.index(phase)]
            count = float(np.count_nonzero(moved > moved.max() / _BUSIEST))
            yield phase, what, count, count


#: Part of the busiest rank's bytes below which a rank moves none.
_BUSIEST = 100
#: Mismatches kept per rank, and in total: one is enough to make a run invalid.
_OF_A_RANK = 3
_OF_ALL = 30


class RankReports(msgspec.Struct, frozen=True):
    """Merged text reports of some neighbouring ranks."""

    #: Descriptions of data that differ from the data written; the first ones, by rank.
    mismatches: tuple[str, ...] = ()
    #: Number of mismatches not included.
    unsaid: int = 0
    #: The library's reports about the transfers: all values of each key.
    facts: Mapping[str, frozenset[str]] = {}
    #: By phase and counter: sum and maximum over these ranks.
    counts: Mapping[tuple[str, str], tuple[float, float]] = {}
    #: Distinct remarks of the workload.
    remarks: tuple[str, ...] = ()
    #: Size on disk, in the directories that these ranks look after.
    disk: DiskUsage | None = None
    #: What became of hints, of each file that has an answer of its own.
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
