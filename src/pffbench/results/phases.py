"""One phase of one case over its repetitions: spread, rates, ranks, ratio and what spoils them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pffbench.results.rankspread import RankSpread, rank_spread, ranks_apart
from pffbench.results.samples import UPDATE_PHASES, WRITE_PHASES, Sample
from pffbench.results.statistics import Caveat, Spread, doubts_about, spread, warnings_for

#: Sums of phases: what it takes until data are written, or changed, as durably as asked, or read.
TOTALS = {
    "write_total": WRITE_PHASES,
    "update_total": UPDATE_PHASES,
    "read_total": ("open", "open_array", "read", "close_read"),
}
#: Phases in which data move: these have rates and a roofline.
MOVING = ("write", "update", "read", *TOTALS)


@dataclass(frozen=True)
class PhaseSummary:
    """One phase, or sum of phases, of one case over the repetitions that count.

    Parameters
    ----------
    phase : str
        Name of the phase.
    seconds : Spread
        Job time: the slowest rank of each repetition.
    by_block : dict of int to float
        The same seconds for each repetition.
    rate : float or None
        Median bytes per second of all ranks together; None where no data move.
    per_array : float
        Median seconds divided by the number of arrays of all ranks.
    operations_rate : float or None
        Library calls of all ranks per second of the median; None for sums of phases.
    ratio : Spread or None
        Time over that of the best case of the comparison, block by block; None for raw bytes.
    ranks : RankSpread or None
        How far the ranks lie apart; None for sums of phases, whose slowest rank no row tells, and
        for what another program measured without telling.
    first_done : float or None
        Bytes per second if all ranks had taken as long as the fastest one; `rate` is that of the
        slowest one. None where no data move, and for sums.
    roofline : float or None
        Part that was reached of the best speed of raw bytes: the smallest seconds of any raw
        transfer of the same bytes, in any repetition that counts, over the median seconds.
    warnings : tuple of Caveat
        What makes the numbers less trustworthy.
    """

    phase: str
    seconds: Spread
    by_block: Mapping[int, float]
    rate: float | None
    per_array: float
    operations_rate: float | None
    ranks: RankSpread | None
    first_done: float | None
    ratio: Spread | None
    roofline: float | None
    warnings: tuple[Caveat, ...]


def phase_summary(
    phase: str,
    by_block: Mapping[int, float],
    rows: Mapping[str, Sequence[Sample]],
    best: Mapping[int, float] | None,
    limit: float | None,
    resolution: float,
) -> PhaseSummary:
    """Summarise a phase, or sum of phases, of one case.

    Parameters
    ----------
    phase : str
        Its name.
    by_block : dict of int to float
        Seconds of each repetition that counts; at least one.
    rows : dict of str to sequence of Sample
        The rows of the case, by phase, warm-ups included.
    best : dict of int to float, optional
        Seconds of each repetition of the best case of the comparison.
    limit : float, optional
        Smallest seconds of any raw transfer of the same bytes.
    resolution : float
        Seconds under which the harness itself shows.
    """
    # A sum of phases is told of by its transfer, or its first phase where nothing is moved.
    parts = [part for part in TOTALS.get(phase, (phase,)) if part in rows]
    part = next((part for part in parts if part in MOVING), parts[0])
    counted = [row for row in rows[part] if not row.warmup]
    warmup = [row.own_max for row in rows.get(phase, ()) if row.warmup]
    moved = counted[0].bytes if part in MOVING else 0
    values = list(by_block.values())
    found = spread(values)
    ratio = _ratio(by_block, best)
    ranks = None if phase in TOTALS else rank_spread(counted)
    caveats = warnings_for(values, warmup, resolution)
    if not any(caveat.code == "below_resolution" for caveat in caveats):
        caveats += doubts_about(ratio)
        caveats += ranks_apart(counted) if moved and phase not in TOTALS else []
    return PhaseSummary(
        phase=phase,
        seconds=found,
        by_block=by_block,
        rate=moved / found.median if moved and found.median else None,
        per_array=found.median / counted[0].arrays,
        operations_rate=_operations(phase, counted[0].operations, found.median),
        ranks=ranks,
        first_done=_per_second(moved, ranks.first) if ranks and moved else None,
        ratio=ratio,
        roofline=limit / found.median if limit and found.median else None,
        warnings=(*caveats, *_unproved(phase, rows)),
    )


def _operations(phase: str, operations: int, seconds: float) -> float | None:
    """Return calls per second; a sum of phases has none, nor has what nobody counted."""
    return None if phase in TOTALS or not operations else _per_second(operations, seconds)


def _per_second(amount: int, seconds: float) -> float | None:
    return amount / seconds if seconds else None


def _unproved(phase: str, rows: Mapping[str, Sequence[Sample]]) -> Iterator[Caveat]:
    """Tell of reads before which the cache state that was asked for was not proved."""
    if phase not in (*TOTALS["read_total"], "read_total"):
        return
    reads = [row for row in rows.get("read", ()) if not row.warmup]
    if unproved := sum(row.cache == "unproved" for row in reads):
        text = (
            f"the state of the page cache was not proved in {unproved} of {len(reads)} repetitions"
        )
        yield Caveat("cache_unproved", text)


def _ratio(by_block: Mapping[int, float], other: Mapping[int, float] | None) -> Spread | None:
    """Return the ratio of times within the blocks that both have."""
    common = sorted(by_block.keys() & other.keys()) if other else []
    if other is None or not common:
        return None
    mine, theirs = (np.array([times[block] for block in common]) for times in (by_block, other))
    return spread(mine / theirs) if theirs.min() > 0 else None
