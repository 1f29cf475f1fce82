"""One phase of one case over its repetitions: spread, rates, imbalance, caveats."""

from __future__ import annotations

import mmap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

import msgspec
import numpy as np

from pffbench.median import median_of
from pffbench.phases import ARRIVING, MOVING, TOTALS
from pffbench.record.repetitions import PhaseTimes, Repetition
from pffbench.record.run import MeasuredRun, Seconds
from pffbench.results.spread import Caveat, Spread, spread, warnings_for

#: Fraction of the bytes of a read in new memory from which on it is reported.
MUCH_FAULTED = 0.5


class PhaseSummary(msgspec.Struct, frozen=True):
    """One phase, or sum of phases, of one case over the repetitions that count."""

    #: Name of the phase.
    phase: str
    #: Job time of each repetition.
    seconds: Spread
    #: The same seconds for each repetition.
    by_round: Mapping[int, float]
    #: The seconds for each repetition of the phases that it is the sum of, or of itself.
    parts: Seconds
    #: Median bytes per second of all ranks together; None where no data move.
    rate: float | None
    #: Median seconds divided by the number of arrays of all ranks.
    per_array: float
    #: Library calls of all ranks per second of the median; None for sums of phases.
    operations_rate: float | None
    #: Spread of the ranks; None for sums of phases, whose slowest rank is not recorded.
    ranks: RankSpread | None
    #: Bytes per second if all ranks had taken as long as the fastest one; `rate` is that of the
    #: slowest one. None where no data move, and for sums.
    first_done: float | None
    #: Fraction of the speed of the fastest raw transfer of the same bytes: its median seconds over
    #: those of the case, over their common repetitions.
    roofline: float | None
    #: Median processor seconds of all ranks together.
    cpu_seconds: float
    #: Bytes of new memory over the bytes moved; None if none are moved.
    faulted: float | None
    #: Seconds that new memory takes of a read, by its bytes and the measured rate; None for other
    #: phases, and where the rate is not known.
    new_memory_seconds: float | None
    #: Caveats about the numbers.
    warnings: tuple[Caveat, ...]

    def warned(self, code: str) -> bool:
        """Whether a caveat has a code, such as ``below_resolution``."""
        return any(caveat.code == code for caveat in self.warnings)


def phase_summary(
    phase: str,
    seconds: Seconds,
    repetitions: Sequence[Repetition],
    roof: float | None,
    run: MeasuredRun,
) -> PhaseSummary:
    """Summarise a phase, or sum of phases, of one case.

    Parameters
    ----------
    phase : str
        Its name.
    seconds : dict of str to dict
        Seconds of each repetition of the case that counts, by phase or total; those of this phase
        are not empty.
    repetitions : sequence of Repetition
        Repetitions of the case, warm-ups included.
    roof : float, optional
        Part of the speed of raw bytes that was reached.
    run : MeasuredRun
        The run.
    """
    counted = [one for one in repetitions if not one.warmup]
    warmup = [one.seconds[phase] for one in repetitions if one.warmup and phase in one.seconds]
    last = counted[-1].by_phase
    # A sum of phases is described by its transfer, or its first phase if no data are moved.
    parts = [part for part in TOTALS.get(phase, (phase,)) if part in last]
    part = next((part for part in parts if part in MOVING), parts[0])
    arrived = last[part].bytes if part in MOVING else 0
    # Data that one rank reads and passes on move in two phases of a total.
    moved = sum(last[name].bytes for name in parts if name in MOVING or name in ARRIVING)
    by_round = seconds[phase]
    values = list(by_round.values())
    found = spread(values)
    ranks = None
    if phase not in TOTALS:
        ranks = rank_spread([one.by_phase[phase] for one in counted], run.record.topology.hosts)
    new = _new_memory(counted, part)
    faulted = new / arrived if arrived else None
    rate = run.record.floor.memory_new_bytes_per_second
    new_seconds = new / rate if part == "read" and rate else None
    caveats = warnings_for(values, warmup, run.resolution)
    if faulted is not None and faulted >= MUCH_FAULTED and part == "read":
        caveats.append(_much_new_memory(faulted, new_seconds, found.median))
    return PhaseSummary(
        phase=phase,
        seconds=found,
        by_round=by_round,
        parts={name: seconds[name] for name in parts if name in seconds},
        rate=moved / found.median if moved and found.median else None,
        per_array=found.median / max(1, run.record.cases[counted[0].case].cost.arrays),
        operations_rate=_operations(phase, last[part].operations, found.median),
        ranks=ranks,
        first_done=_per_second(moved, ranks.first) if ranks and moved else None,
        roofline=roof,
        cpu_seconds=_cpu_seconds(counted, parts),
        faulted=faulted,
        new_memory_seconds=new_seconds,
        warnings=(*caveats, *_unproved(phase, counted)),
    )


def _operations(phase: str, operations: int, seconds: float) -> float | None:
    """Return calls per second; None for sums of phases and uncounted calls."""
    return None if phase in TOTALS or not operations else _per_second(operations, seconds)


def _per_second(amount: int, seconds: float) -> float | None:
    return amount / seconds if seconds else None


def _unproved(phase: str, counted: Sequence[Repetition]) -> Iterator[Caveat]:
    """Report reads before which the requested cache state was not proved."""
    if phase not in (*TOTALS["read_total"], "read_total"):
        return
    reads = [one.read for one in counted if one.read]
    if unproved := sum(read.cache == "unproved" for read in reads):
        text = (
            f"the state of the page cache was not proved in {unproved} of {len(reads)} repetitions"
        )
        yield Caveat("cache_unproved", text)


def _cpu_seconds(counted: Sequence[Repetition], parts: Sequence[str]) -> float:
    """Return the median over repetitions of the processor seconds of some phases together."""
    phases = [one.by_phase for one in counted]
    return median(sum(there[part].cpu_seconds for part in parts) for there in phases)


def _new_memory(counted: Sequence[Repetition], part: str) -> float:
    """Return the median bytes of new memory of all ranks together.

    Of phases other than reads page faults alone are counted: of huge pages that is too little.
    """
    return median(
        one.by_phase[part].minor_faults * mmap.PAGESIZE
        if part != "read" or one.read is None or one.read.new_memory is None
        else one.read.new_memory
        for one in counted
    )


def _much_new_memory(part: float, seconds: float | None, median: float) -> Caveat:
    cost = "" if seconds is None else f", about {1e3 * seconds:.3g} of {1e3 * median:.3g} ms"
    text = (
        f"{part:.0%} of the bytes went through memory that was taken anew for each read: the "
        f"allocator is part of the time{cost}. A program that keeps its memory (mallopt, "
        "MALLOC_MMAP_THRESHOLD_, MALLOC_TRIM_THRESHOLD_), or reads in smaller pieces, saves that"
    )
    return Caveat("page_faults", text)


class RankSpread(msgspec.Struct, frozen=True):
    """The spread of the ranks in one phase of one case, over the repetitions that count."""

    #: Seconds of the fastest, the middle and the slowest rank: medians over the repetitions.
    first: float
    middle: float
    last: float
    #: Seconds of the slowest over those of the middle rank, the median over the repetitions. 1
    #: means that all ranks take equally long; NaN where the middle one takes no time.
    imbalance: float
    #: The rank that was the slowest most often.
    slowest_rank: int
    #: Fraction of the repetitions in which it was; of R equal ranks each has about 1 / R.
    slowest_share: float
    #: The host that had the slowest rank most often.
    slowest_host: str
    #: Fraction of the repetitions in which it had.
    host_share: float
    #: The rank that used the smallest processor time most often. In a collective call all ranks
    #: need equally long, and those that wait for another one poll: that rank is idle in the system,
    #: or does not get a processor.
    idlest_rank: int = 0
    #: Fraction of the repetitions in which it did.
    idlest_share: float = 0.0
    #: How much less it used than the median rank, over the time of the phase; the median.
    idle: float = 0.0


def rank_spread(times: Sequence[PhaseTimes], hosts: Sequence[str]) -> RankSpread:
    """Describe the ranks by the times of one phase, one for each repetition.

    Parameters
    ----------
    times : sequence of PhaseTimes
        Not empty.
    hosts : sequence of str
        Host of each rank.
    """
    middle = np.array([one.own_median for one in times])
    last = np.array([one.own_max for one in times])
    ratios = last[middle > 0] / middle[middle > 0]
    rank, often = Counter([one.slowest_rank for one in times]).most_common(1)[0]
    host, visits = Counter([hosts[one.slowest_rank] for one in times]).most_common(1)[0]
    long = [one for one in times if one.seconds > 0] or times
    idlest, idle_often = Counter([one.idlest_rank for one in long]).most_common(1)[0]
    return RankSpread(
        first=median(one.own_min for one in times),
        middle=median_of(middle),
        last=median_of(last),
        imbalance=median_of(ratios) if ratios.size else float("nan"),
        slowest_rank=rank,
        slowest_share=often / len(times),
        slowest_host=host,
        host_share=visits / len(times),
        idlest_rank=idlest,
        idlest_share=idle_often / len(long),
        idle=median(one.idle_seconds / max(one.seconds, 1e-9) for one in long),
    )
