"""Bringing one repetition's times and observations from all ranks to rank 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from pffbench.backends.base import StoredAs
from pffbench.case import Case
from pffbench.parallel.meter import COUNTERS
from pffbench.parallel.topology import Team
from pffbench.results.told import Told
from pffbench.storage.cachestate import CacheProof
from pffbench.storage.durable import DiskUsage

if TYPE_CHECKING:
    from pffbench.workloads.cycle import Cycle

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


@dataclass(frozen=True)
class Repetition:
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
    nbytes, operations : array of int64, shape (phases, ranks)
        What each rank moved and how many calls it made.
    peak_memory : array of int64, shape (ranks,)
        Bytes.
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
    nbytes: Matrix
    operations: Matrix
    peak_memory: Matrix
    mismatches: tuple[str, ...]
    verified_bytes: int
    cache: CacheProof | None
    disk: DiskUsage | None
    stored_as: StoredAs | None
    facts: dict[str, str]
    counts: tuple[Count, ...]
    remarks: tuple[str, ...] = ()


def gather(
    team: Team, cycle: Cycle, number: int, position: int, started: datetime, peak: int
) -> Repetition | None:
    """Gather a repetition on rank 0; collective, None on the other ranks.

    Every rank's numbers come as they are, some hundred bytes of each; what ranks say in words is
    joined on the way (`Told`), so that rank 0 does not hear from each of them.
    """
    times, observed = cycle.clock.times, cycle.observed
    own = [n for t in times for n in (t.own, t.synced, t.nbytes, t.operations, *t.counters)]
    here = np.array([peak, observed.verified_bytes, *own], dtype=np.float64)
    everywhere = np.empty((team.size, len(here))) if team.is_root else None
    team.comm.Gather(here, everywhere, root=0)
    job = _job_seconds(team, [t.parts for t in times])
    told = team.comm.reduce(Told.of(team.rank, observed), op=Told.__add__, root=0)
    if everywhere is None or job is None or told is None:
        return None
    by_kind = everywhere[:, 2:].reshape(team.size, len(times), -1).transpose(2, 1, 0)
    phases = tuple(t.phase for t in times)
    return Repetition(
        case=cycle.case,
        number=number,
        position=position,
        started=started,
        phases=phases,
        job=job,
        own=by_kind[0],
        synced=by_kind[1],
        nbytes=by_kind[2].astype(np.int64),
        operations=by_kind[3].astype(np.int64),
        peak_memory=everywhere[:, 0].astype(np.int64),
        mismatches=told.all_mismatches,
        verified_bytes=int(everywhere[:, 1].astype(np.int64).sum()),
        cache=observed.cache,
        disk=observed.disk,
        stored_as=observed.stored_as,
        facts=told.united_facts,
        counts=_counts(phases, by_kind[4:], told.counts),
        remarks=told.remarks,
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
    found = [
        Count(phase, what, float(of_ranks.sum()), float(of_ranks.max()))
        for i, phase in enumerate(phases)
        for what, of_ranks in zip(COUNTERS, metered[:, i], strict=False)
    ]
    found += [Count(*key, *told[key]) for key in sorted(told)]
    return tuple(found)
