"""A gathered repetition reduced to a line of `repetitions.jsonl`, with the times of the job."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pffbench.case import Stage
from pffbench.median import median_of
from pffbench.observe.clock import Clock
from pffbench.phases import TOTALS
from pffbench.record.gather import GatheredRepetition
from pffbench.record.repetitions import PhaseTimes, ReadState, Repetition


def reduce_repetition(
    r: GatheredRepetition,
    *,
    clock: Clock,
    empty_phase: float,
    warmup: bool,
    valid: bool,
    stage: Stage,
) -> Repetition:
    """Reduce the times and observations of all ranks.

    Parameters
    ----------
    r : GatheredRepetition
        The repetition.
    clock : {"own", "synced"}
        Which time of a phase is the job's (rule 1 of the method).
    empty_phase : float
        Seconds of an empty phase until all ranks have ended it.
    warmup, valid : bool
        Whether it is a warm-up, and whether nothing speaks against it.
    stage : {"all", "write", "read"}
        The part of it that this job did.
    """
    seconds = [_job_seconds(r, i, clock, empty_phase) for i in range(len(r.phases))]
    return Repetition(
        case=r.case.id,
        round=r.number,
        position=r.position,
        started=r.started.isoformat(timespec="milliseconds"),
        phases=tuple(_times_of(r, i, seconds[i]) for i in range(len(r.phases))),
        totals=_totals_of(r, seconds, clock),
        warmup=warmup,
        valid=valid,
        part=stage,
        peak_memory=int(r.peak_memory.max()),
        machine=r.machine,
        read=_read_state(r) if "read" in r.phases else None,
        disk=r.disk if "close" in r.phases else None,
        counts=r.counts,
    )


def _times_of(r: GatheredRepetition, i: int, seconds: float) -> PhaseTimes:
    own = r.own[i]
    return PhaseTimes(
        phase=r.phases[i],
        seconds=_number(seconds),
        own_max=_number(float(r.job[i])),
        own_median=_number(median_of(own)),
        own_min=_number(float(own.min())),
        synced_max=_number(float(r.synced[i].max())),
        bytes=int(r.nbytes[i].sum()),
        operations=int(r.operations[i].sum()),
        slowest_rank=int(np.argmax(own)),
        cpu_seconds=float(r.cpu[i].sum()),
        minor_faults=int(r.faults[i].sum()),
        idlest_rank=int(np.argmin(r.cpu[i])),
        idle_seconds=median_of(r.cpu[i]) - float(r.cpu[i].min()),
    )


def _totals_of(r: GatheredRepetition, seconds: Sequence[float], clock: Clock) -> dict[str, float]:
    """Return the seconds of each total (rule 1 of the method).

    A rank's own times are added up first: a sum of the slowest ranks of each phase would be
    that of a program which waits for all ranks between the calls. Where ranks share
    processors, own times are not those of the job, and the phases are added up.
    """
    found = {}
    for total, parts in TOTALS.items():
        there = [i for i, phase in enumerate(r.phases) if phase in parts]
        if there and clock == "own":
            found[total] = _number(float(r.own[there].sum(axis=0).max()))
        elif there:
            found[total] = _number(sum(seconds[i] for i in there))
    return found


def _job_seconds(r: GatheredRepetition, i: int, clock: Clock, empty_phase: float) -> float:
    """Return the time of the job in a phase, by the clock of the run (rule 1 of the method).

    If ranks share processors, their own times begin one after the other, so the job's time is
    the time until all have ended, less that of an empty phase. Otherwise it is the slowest
    rank's own time.
    """
    own = float(r.job[i])
    if clock == "own":
        return own
    floor = float(r.entries[i]) * empty_phase
    return max(own, float(r.synced[i].max()) - floor)


def _read_state(r: GatheredRepetition) -> ReadState:
    fraction = math.nan if r.cache is None else r.cache.fraction
    return ReadState(
        cache=_cache_state(r),
        resident=None if math.isnan(fraction) else fraction,
        verified_bytes=r.verified_bytes,
        times=r.reads,
        device_bytes=None if math.isnan(r.device_bytes) else int(r.device_bytes),
        resident_after=r.resident_after,
        device_reads=r.own_device_reads,
        new_memory=r.new_memory,
    )


def _cache_state(r: GatheredRepetition) -> str:
    """Return the requested cache state if proved, else that it is unproved."""
    if r.cache is None:
        return ""
    return r.cache.wanted if r.cache.proved else "unproved"


def _number(seconds: float) -> float:
    """Return seconds; -1 for what is no number, from a clock that failed."""
    return seconds if math.isfinite(seconds) else -1.0
