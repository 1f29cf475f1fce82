"""Gathering times and observations of one repetition from all ranks to rank 0.

Ranks mostly say the same, so what is said of all of them is no more than what is said of one: it
goes to rank 0 through a tree, in which each rank joins what it hears with what it has to say. No
rank hears from more than a few others, however many there are.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from pffbench.backends.base import StoredAs
from pffbench.case import Case
from pffbench.parallel.machine import MachineLoad
from pffbench.parallel.process_counters import COUNTERS, IO
from pffbench.parallel.topology import Team
from pffbench.phases import READ_PHASES
from pffbench.storage.durability import DiskUsage, Settled
from pffbench.storage.page_cache import CacheProof

if TYPE_CHECKING:
    from pffbench.workloads.repetition import Observed, Repetition


Matrix = np.ndarray[Any, Any]
#: In a phase, of something: what all ranks counted, and the one with most.
Counts = Mapping[tuple[str, str], tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Count:
    """What was counted in a phase, over all ranks.

    Parameters
    ----------
    phase, what : str
        In which phase, and what.
    total, largest : float
        Of all ranks together, and of the one with most.
    """

    phase: str
    what: str
    total: float
    largest: float


@dataclass(frozen=True, slots=True)
class Conditions:
    """The state of a rank's node during a repetition.

    Parameters
    ----------
    settled : Settled
        How long it took until earlier writes were on the device, and what was left.
    load : MachineLoad or None
        What the node did; None on ranks that do not watch it.
    cpu_seconds : float
        Processor time of this process, everything off the timer included.
    """

    settled: Settled
    load: MachineLoad | None
    cpu_seconds: float

    @property
    def numbers(self) -> tuple[float, ...]:
        """All that there is, as numbers; 0 where a rank knows nothing."""
        load = self.load or MachineLoad()
        return (
            self.settled.seconds,
            float(self.settled.dirty_bytes),
            load.load,
            load.busy,
            load.steal,
            load.cpu_pressure,
            load.io_pressure,
            self.cpu_seconds,
        )


@dataclass(frozen=True, slots=True)
class Machine:
    """The state of the nodes during a repetition; of several, that of the worst.

    Parameters
    ----------
    settle_seconds, dirty_bytes : float, int
        How long it took until earlier writes were on the device, and what was left of them.
    load : float
        Load average of the last minute.
    busy_others : float
        Part of a node's processor time that other processes took, 0 to 1.
    steal : float
        Part of a node's processor time that its host took, 0 to 1.
    cpu_pressure, io_pressure : float
        Part of the time in which processes waited for a processor or a device, 0 to 1.
    """

    settle_seconds: float = 0.0
    dirty_bytes: int = 0
    load: float = 0.0
    busy_others: float = 0.0
    steal: float = 0.0
    cpu_pressure: float = 0.0
    io_pressure: float = 0.0

    @classmethod
    def of(cls, numbers: Matrix, nodes: Sequence[int], seconds: float, cores: int) -> Machine:
        """Reduce what the ranks know, shape (ranks, numbers), to the worst of each."""
        worst = numbers.max(axis=0)
        cpu: dict[int, float] = defaultdict(float)
        busy: dict[int, float] = defaultdict(float)
        for node, row in zip(nodes, numbers, strict=True):
            cpu[node] += float(row[-1])
            busy[node] = max(busy[node], float(row[3]))
        capacity = max(seconds * cores, 1e-9)
        others = max(busy[node] - cpu[node] / capacity for node in busy)
        return cls(
            float(worst[0]),
            int(worst[1]),
            float(worst[2]),
            min(1.0, max(0.0, others)),
            float(worst[4]),
            float(worst[5]),
            float(worst[6]),
        )


@dataclass(frozen=True)
class GatheredRepetition:
    """One repetition of a case, as rank 0 has it from all ranks.

    Parameters
    ----------
    case : Case
        What ran.
    number : int
        Number of the repetition, warm-ups included.
    position : int
        Place in the order of its block.
    started : datetime
        When it began, by the clock of rank 0.
    phases : tuple of str
        Names of the phases.
    job : array of float64, shape (phases,)
        Seconds of the slowest rank, batch by batch: ranks wait for each other between batches.
    own, synced : array of float64, shape (phases, ranks)
        Seconds.
    entries : array of float64, shape (phases,)
        How often each phase was entered: data that are moved in batches enter it once a batch.
    nbytes, operations : array of int64, shape (phases, ranks)
        What each rank moved and how many calls it made.
    cpu, faults : array of float64, shape (phases, ranks)
        Processor seconds, and pages that were mapped anew.
    peak_memory : array of int64, shape (ranks,)
        Bytes.
    machine : Machine
        State of the nodes.
    reads : int
        How often everything was read: all numbers of the phases of reading are means of so many.
    kernel_bytes, device_bytes : float
        Bytes that the kernel delivered, and that it fetched from a device, for all reads of all
        ranks together; NaN where that is not known.
    resident_after : int or None
        With a dropped cache: bytes of the files in the page cache after reading.
    mismatches : tuple of str
        What was read and is not what was written, in words.
    verified_bytes : int
        Bytes that were compared, over all ranks.
    cache : CacheProof or None
        State of the page cache before reading.
    disk : DiskUsage or None
        What lay on disk after closing.
    stored_as : StoredAs or None
        How the arrays were really stored.
    facts : dict of str to str
        What the library said about the transfers, of all ranks.
    counts : tuple of Count
        What the kernel and the workload counted.
    remarks : tuple of str
        What the workload has to say of it, each thing once.
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
    machine: Machine
    mismatches: tuple[str, ...]
    verified_bytes: int
    cache: CacheProof | None
    disk: DiskUsage | None
    stored_as: StoredAs | None
    facts: dict[str, str]
    counts: tuple[Count, ...]
    remarks: tuple[str, ...] = ()
    reads: int = 1
    kernel_bytes: float = math.nan
    device_bytes: float = math.nan
    resident_after: int | None = None


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

    Every rank's numbers come as they are, some hundred bytes of each; what ranks say in words is
    joined on the way (`RankReports`), so that rank 0 does not hear from each of them.
    """
    times, observed = repetition.clock.times, repetition.observed
    own = [n for t in times for n in (t.own, t.synced, t.nbytes, t.operations, *t.counters)]
    reading = (observed.verified_bytes, observed.kernel_bytes, observed.device_bytes)
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
    # Everything that was read several times is told of once: as the mean.
    each = np.array([observed.reads if phase in READ_PHASES else 1 for phase in phases])
    by_kind /= each[:, np.newaxis]
    verified, kernel, device = everywhere[:, 1:4].sum(axis=0)
    seconds = (datetime.now(UTC) - started).total_seconds()
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
        machine=Machine.of(
            everywhere[:, 4:first], team.topology.nodes, seconds, os.cpu_count() or 1
        ),
        mismatches=told.all_mismatches,
        verified_bytes=int(verified),
        cache=observed.cache,
        disk=observed.disk,
        stored_as=observed.stored_as,
        facts=told.united_facts,
        counts=_counts(phases, by_kind[4:], told.counts),
        remarks=told.remarks,
        reads=observed.reads,
        kernel_bytes=float(kernel),
        device_bytes=float(device),
        resident_after=observed.resident_after,
    )


def _job_seconds(team: Team, parts: Sequence[tuple[float, ...]]) -> Matrix | None:
    """Add up on rank 0, for each phase, the slowest rank of each batch; collective."""
    from mpi4py import MPI

    here = np.array([second for phase in parts for second in phase], dtype=np.float64)
    slowest = np.empty_like(here) if team.is_root else None
    team.comm.Reduce(here, slowest, op=MPI.MAX, root=0)
    if slowest is None:
        return None
    begins = np.cumsum([0, *(len(phase) for phase in parts[:-1])])
    return np.add.reduceat(slowest, begins)


def _counts(phases: Sequence[str], metered: Matrix, told: Counts) -> tuple[Count, ...]:
    """Sum up over ranks what the kernel counted, shape (counters, phases, ranks), and workloads."""
    # Without bytes and calls the experiment did not ask to count: the rest is in `samples.csv`.
    found = [
        Count(phase, what, float(of_ranks.sum()), float(of_ranks.max()))
        for i, phase in enumerate(phases)
        for what, of_ranks in zip(COUNTERS, metered[:, i], strict=False)
        if len(metered) > len(COUNTERS) - len(IO)
    ]
    found += [Count(*key, *told[key]) for key in sorted(told)]
    return tuple(found)


#: Mismatches that are kept of each rank, and of all: one is enough to make a run invalid.
_OF_A_RANK = 3
_OF_ALL = 30


@dataclass(frozen=True, slots=True)
class RankReports:
    """What some neighbouring ranks have to say.

    Parameters
    ----------
    mismatches : tuple of str
        What was read and is not what was written, in words; the first ones, by rank.
    unsaid : int
        How many mismatches there are beside these.
    facts : dict of str to frozenset of str
        What the library said about the transfers: all answers to each question.
    counts : dict of (str, str) to (float, float)
        What was counted in a phase: of all these ranks, and of the one with most.
    remarks : tuple of str
        What the workload has to say, each thing once.
    """

    mismatches: tuple[str, ...] = ()
    unsaid: int = 0
    facts: Mapping[str, frozenset[str]] = field(default_factory=dict)
    counts: Mapping[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    @classmethod
    def of(cls, rank: int, observed: Observed) -> RankReports:
        """Return what one rank has to say."""
        words = tuple(f"rank {rank}: {m}" for m in observed.mismatches[:_OF_A_RANK])
        return cls(
            mismatches=words,
            unsaid=len(observed.mismatches) - len(words),
            facts={key: frozenset({text}) for key, text in observed.facts.items()},
            counts={key: (amount, amount) for key, amount in observed.counts.items()},
            remarks=tuple(dict.fromkeys(observed.remarks)),
        )

    def __add__(self, other: RankReports) -> RankReports:
        """Join what these ranks say with what those after them say."""
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
        )

    @property
    def all_mismatches(self) -> tuple[str, ...]:
        """The mismatches in words, with how many more there are."""
        more = (f"and {self.unsaid} mismatches more",) if self.unsaid else ()
        return self.mismatches + more

    @property
    def united_facts(self) -> dict[str, str]:
        """What the library said; where ranks were told different things, all of them."""
        return {key: " | ".join(sorted(self.facts[key])) for key in sorted(self.facts)}
