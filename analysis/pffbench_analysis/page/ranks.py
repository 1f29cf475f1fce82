"""Times of all ranks from `ranks.h5`, aggregated to a size that suits a page."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pffbench.record.ranks_reader import NAME, CaseTimes, read_times

#: Largest number of ranks shown individually; beyond it, neighbours are grouped.
MOST_RANKS = 128
#: Largest number of rank values in a page.
_MOST_NUMBERS = 300_000
_FEWEST_RANKS = 8
#: Largest number of repetitions read; of more, evenly spaced ones.
MOST_REPETITIONS = 100
#: Quantiles kept of the distribution over the ranks.
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)

Times = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class RankTimes:
    """Times of the ranks, as held by a page.

    Parameters
    ----------
    cases : dict of str to dict
        For each case and phase: ``quantiles`` (of the ranks' medians over the repetitions, at
        `QUANTILES`), ``median``, ``low`` and ``high`` (for each rank, or group of neighbouring
        ranks: the median and the extremes over its ranks and the repetitions), in seconds; with
        ``first`` (the first rank of each group) and ``hosts``.
    missing : str
        Reason for the absence of times, or empty.
    """

    cases: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    missing: str = ""

    def of(self, case: str) -> Mapping[str, Any] | None:
        """Return the times of a case, or None."""
        return self.cases.get(case)


def read_ranks(directory: str | Path, cases: Mapping[str, frozenset[int]]) -> RankTimes:
    """Read the times of all ranks; report a missing or broken file.

    Parameters
    ----------
    directory : str or Path
        The results directory.
    cases : dict of str to frozenset of int
        Cases to read, and the numbers of their counted repetitions.
    """
    path = Path(directory) / NAME
    if not os.path.lexists(path):
        return RankTimes(missing=f"{NAME} is missing: there is nothing of the single ranks")
    wanted = {name: sorted(numbers) for name, numbers in cases.items()}
    try:
        hosts, times = read_times(path, wanted, most=MOST_REPETITIONS)
        found = {one.case: _case(one, hosts, len(cases)) for one in times}
    except ValueError as error:
        why = str(error).removeprefix(f"{path} cannot be read: ")
        return RankTimes(missing=f"{NAME} cannot be read ({why}): nothing of the single ranks")
    absent = len(cases) - len(found)
    told = f"ranks.h5 has nothing of {absent} of {len(cases)} cases" if absent else ""
    return RankTimes(found, told)


def _case(found: CaseTimes, hosts: list[str], cases: int) -> dict[str, Any]:
    phases, own = found.phases, found.arrays["own"]
    room = _MOST_NUMBERS // (3 * max(1, cases * len(phases)))
    groups = _groups(own.shape[2], min(MOST_RANKS, max(_FEWEST_RANKS, room)))
    return {
        "first": [int(ranks[0]) for ranks in groups],
        "hosts": [hosts[r[0]] if r[0] < len(hosts) else "" for r in groups],
        "repetitions": len(found.repetition),
        "phases": {
            phase: _phase(times, groups)
            for phase, times in zip(phases, np.moveaxis(own, 1, 0), strict=True)
            if times.size and not np.isnan(times).all()
        },
    }


def _groups(ranks: int, most: int) -> list[np.ndarray[Any, np.dtype[np.int64]]]:
    """Divide ranks into groups of neighbours of about the same size."""
    return [part for part in np.array_split(np.arange(ranks), min(ranks, most) or 1) if part.size]


def _phase(times: Times, groups: list[Any]) -> dict[str, list[float | None]]:
    """Aggregate the times of one phase, given by repetition and rank."""
    times = times[~np.isnan(times).any(axis=1)]
    medians = np.median(times, axis=0)
    starts = [ranks[0] for ranks in groups]
    alone = len(groups) == medians.size
    middle = medians if alone else np.array([np.median(medians[ranks]) for ranks in groups])
    return {
        "quantiles": np.quantile(medians, QUANTILES).tolist(),
        "median": middle.tolist(),
        "low": np.minimum.reduceat(times.min(axis=0), starts).tolist(),
        "high": np.maximum.reduceat(times.max(axis=0), starts).tolist(),
    }
