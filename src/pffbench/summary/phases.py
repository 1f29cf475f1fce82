"""One phase of one case over its repetitions: spread, rates, imbalance, caveats."""

from __future__ import annotations

import math
import mmap
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np

from pffbench.phases import ARRIVING, MOVING, TOTALS
from pffbench.record.run import Seconds
from pffbench.record.samples import Sample
from pffbench.summary.rank_test import Ratio
from pffbench.summary.statistics import Caveat, Spread, spread, warnings_for

#: Fraction of the bytes of a read in new memory from which on it is reported.
MUCH_FAULTED = 0.5


class PhaseSummary(msgspec.Struct, frozen=True):
    """One phase, or sum of phases, of one case over the repetitions that count.

    Parameters
    ----------
    phase : str
        Name of the phase.
    seconds : Spread
        Job time of each repetition.
    by_block : dict of int to float
        The same seconds for each repetition.
    parts : dict of str to dict
        The seconds for each repetition of the phases that it is the sum of, or of itself.
    rate : float or None
        Median bytes per second of all ranks together; None where no data move.
    per_array : float
        Median seconds divided by the number of arrays of all ranks.
    operations_rate : float or None
        Library calls of all ranks per second of the median; None for sums of phases.
    ratio : Ratio or None
        Time over that of the fastest case of the comparison, over their common repetitions;
        None for raw bytes, for invalid cases and without another case.
    cpu_seconds : float or None
        Median processor seconds of all ranks together; None where they were not recorded.
    faulted : float or None
        Bytes of new memory over the bytes moved; None if none are moved or it was not recorded.
    new_memory_seconds : float or None
        Seconds that new memory takes of a read, by its bytes and the measured rate; None for other
        phases, and where the rate is not known.
    ranks : RankSpread or None
        Spread of the ranks; None for sums of phases, whose slowest rank is not recorded, and for
        results of other programs without it.
    first_done : float or None
        Bytes per second if all ranks had taken as long as the fastest one; `rate` is that of the
        slowest one. None where no data move, and for sums.
    roofline : float or None
        Fraction of the speed of the fastest raw transfer of the same bytes: its median seconds
        over those of the case, over their common repetitions.
    warnings : tuple of Caveat
        Caveats about the numbers.
    """

    phase: str
    seconds: Spread
    by_block: Mapping[int, float]
    parts: Seconds
    rate: float | None
    per_array: float
    operations_rate: float | None
    ranks: RankSpread | None
    first_done: float | None
    ratio: Ratio | None
    roofline: float | None
    cpu_seconds: float | None
    faulted: float | None
    new_memory_seconds: float | None
    warnings: tuple[Caveat, ...]

    def warned(self, code: str) -> bool:
        """Whether a caveat has a code, such as ``below_resolution``."""
        return any(caveat.code == code for caveat in self.warnings)


def phase_summary(
    phase: str,
    seconds: Seconds,
    rows: Mapping[str, Sequence[Sample]],
    ratio: Ratio | None,
    roof: float | None,
    resolution: float,
    inflation: float,
    new_memory_rate: float | None = None,
) -> PhaseSummary:
    """Summarise a phase, or sum of phases, of one case.

    Parameters
    ----------
    phase : str
        Its name.
    seconds : dict of str to dict
        Seconds of each repetition of the case that counts, by phase or total; those of this phase
        are not empty.
    rows : dict of str to sequence of Sample
        The rows of the case, by phase, warm-ups included.
    ratio : Ratio, optional
        Time over that of the fastest case of the comparison.
    roof : float, optional
        Part of the speed of raw bytes that was reached.
    resolution : float
        Resolution of the harness in seconds.
    inflation : float
        Variance inflation by dependent repetitions.
    new_memory_rate : float, optional
        Bytes of new memory that all ranks together get from the kernel in a second.
    """
    # A sum of phases is described by its transfer, or its first phase if no data are moved.
    by_block = seconds[phase]
    parts = [part for part in TOTALS.get(phase, (phase,)) if part in rows]
    part = next((part for part in parts if part in MOVING), parts[0])
    counted = [row for row in rows[part] if not row.warmup]
    warmup = [row.seconds for row in rows.get(phase, ()) if row.warmup]
    arrived = counted[0].bytes if part in MOVING else 0
    # Data that one rank reads and passes on move in two phases of a total.
    moved = sum(rows[name][-1].bytes for name in parts if name in MOVING or name in ARRIVING)
    values = list(by_block.values())
    found = spread(values, inflation)
    ranks = None if phase in TOTALS else rank_spread(counted)
    new = _new_memory(counted)
    faulted = new / arrived if arrived and new is not None else None
    new_seconds = None
    if part == "read" and new is not None and new_memory_rate:
        new_seconds = new / new_memory_rate
    caveats = warnings_for(values, warmup, resolution)
    if faulted is not None and faulted >= MUCH_FAULTED and part == "read":
        caveats.append(_much_new_memory(faulted, new_seconds, found.median))
    return PhaseSummary(
        phase=phase,
        seconds=found,
        by_block=by_block,
        parts={name: seconds[name] for name in parts if name in seconds},
        rate=moved / found.median if moved and found.median else None,
        per_array=found.median / counted[0].arrays,
        operations_rate=_operations(phase, counted[0].operations, found.median),
        ranks=ranks,
        first_done=_per_second(moved, ranks.first) if ranks and moved else None,
        ratio=ratio,
        roofline=roof,
        cpu_seconds=_cpu_seconds([rows[name] for name in parts]),
        faulted=faulted,
        new_memory_seconds=new_seconds,
        warnings=(*caveats, *_unproved(phase, rows)),
    )


def _operations(phase: str, operations: int, seconds: float) -> float | None:
    """Return calls per second; None for sums of phases and uncounted calls."""
    return None if phase in TOTALS or not operations else _per_second(operations, seconds)


def _per_second(amount: int, seconds: float) -> float | None:
    return amount / seconds if seconds else None


def _unproved(phase: str, rows: Mapping[str, Sequence[Sample]]) -> Iterator[Caveat]:
    """Report reads before which the requested cache state was not proved."""
    if phase not in (*TOTALS["read_total"], "read_total"):
        return
    reads = [row for row in rows.get("read", ()) if not row.warmup]
    if unproved := sum(row.cache == "unproved" for row in reads):
        text = (
            f"the state of the page cache was not proved in {unproved} of {len(reads)} repetitions"
        )
        yield Caveat("cache_unproved", text)


def _cpu_seconds(parts: Sequence[Sequence[Sample]]) -> float | None:
    """Return the median over repetitions of the processor seconds of some phases together."""
    total: dict[int, float] = defaultdict(float)
    for rows in parts:
        for row in rows:
            if not row.warmup:
                total[row.repetition] += row.cpu_seconds
    median = float(np.median(list(total.values())))
    return None if math.isnan(median) else median


def _new_memory(counted: Sequence[Sample]) -> float | None:
    """Return the median bytes of new memory of all ranks together; None if not recorded.

    Phases other than reads count page faults alone: of huge pages that is too little.
    """
    known = [
        row.minor_faults * mmap.PAGESIZE if row.new_memory is None else row.new_memory
        for row in counted
        if row.minor_faults is not None
    ]
    return float(np.median(known)) if known else None


def _much_new_memory(part: float, seconds: float | None, median: float) -> Caveat:
    cost = "" if seconds is None else f", about {1e3 * seconds:.3g} of {1e3 * median:.3g} ms"
    text = (
        f"{part:.0%} of the bytes went through memory that was taken anew for each read: the "
        f"allocator is part of the time{cost}. A program that keeps its memory (mallopt, "
        "MALLOC_MMAP_THRESHOLD_, MALLOC_TRIM_THRESHOLD_), or reads in smaller pieces, saves that"
    )
    return Caveat("page_faults", text)


class RankSpread(msgspec.Struct, frozen=True):
    """The spread of the ranks in one phase of one case, over the repetitions that count.

    Parameters
    ----------
    first, middle, last : float
        Seconds of the fastest, the middle and the slowest rank: medians over the repetitions.
    imbalance : float
        Seconds of the slowest over those of the middle rank, the median over the repetitions.
        1 means that all ranks take equally long; NaN where the middle one takes no time.
    slowest_rank : int
        The rank that was the slowest most often.
    slowest_share : float
        Fraction of the repetitions in which it was; of R equal ranks each has about 1 / R.
    slowest_host : str
        The host that had the slowest rank most often.
    host_share : float
        Fraction of the repetitions in which it had.
    idlest_rank : int or None
        The rank that used the smallest processor time most often; None if not recorded. In a
        collective call all ranks take equally long, and those that wait for another one poll:
        that one is idle in the system, or does not get a processor.
    idlest_share : float
        Fraction of the repetitions in which it did.
    idle : float
        How much less it used than the median rank, over the time of the phase; the median.
    """

    first: float
    middle: float
    last: float
    imbalance: float
    slowest_rank: int
    slowest_share: float
    slowest_host: str
    host_share: float
    idlest_rank: int | None = None
    idlest_share: float = 0.0
    idle: float = 0.0


def rank_spread(rows: Sequence[Sample]) -> RankSpread:
    """Describe the ranks by the samples of one phase, one for each repetition; not empty."""
    middle = np.array([row.own_median for row in rows])
    last = np.array([row.own_max for row in rows])
    ratios = last[middle > 0] / middle[middle > 0]
    rank, times = Counter([row.slowest_rank for row in rows]).most_common(1)[0]
    host, visits = Counter([row.slowest_host for row in rows]).most_common(1)[0]
    idlest, idle_times, idle = _idlest(rows)
    return RankSpread(
        first=float(np.median([row.own_min for row in rows])),
        middle=float(np.median(middle)),
        last=float(np.median(last)),
        imbalance=float(np.median(ratios)) if ratios.size else float("nan"),
        slowest_rank=rank,
        slowest_share=times / len(rows),
        slowest_host=host,
        host_share=visits / len(rows),
        idlest_rank=idlest,
        idlest_share=idle_times / len(rows),
        idle=idle,
    )


def _idlest(rows: Sequence[Sample]) -> tuple[int | None, int, float]:
    """Return the idlest rank, its frequency, and its difference from the median."""
    known = [row for row in rows if row.idlest_rank is not None and row.seconds > 0]
    if not known:
        return None, 0, 0.0
    rank, times = Counter(row.idlest_rank for row in known).most_common(1)[0]
    return rank, times, float(np.median([row.idle_seconds / row.seconds for row in known]))
