"""Times of all ranks from `ranks.h5`, grouped so that a figure can show them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pffbench.record.ranks_reader import NAME, CaseTimes, UnreadableCase, read_ranks_file

#: Largest number of ranks shown individually; of more, neighbours are grouped.
MOST_RANKS = 128
#: Largest number of repetitions read; of more, evenly spaced ones.
MOST_REPETITIONS = 100

Times = np.ndarray[Any, np.dtype[np.float64]]


class RankTimes(NamedTuple):
    """Times of the ranks in one phase of one case, in seconds."""

    #: The ranks; of groups of neighbours the first one.
    first: list[int]
    #: Median of each over the repetitions; of a group the median of its ranks.
    median: list[float]
    #: The extremes over the repetitions, and the ranks of a group.
    low: list[float]
    high: list[float]


class Ranks(NamedTuple):
    """Times of the ranks by case and phase; or why there are none."""

    cases: Mapping[str, Mapping[str, RankTimes]] = {}
    missing: str = ""


def read_ranks(directory: str | Path, cases: Mapping[str, frozenset[int]]) -> Ranks:
    """Read the times of all ranks; report a missing or broken file.

    Parameters
    ----------
    directory : str or Path
        The results directory.
    cases : dict of str to frozenset of int
        Cases to read, and the numbers of their rounds that count.
    """
    path = Path(directory) / NAME
    if not os.path.lexists(path):
        return Ranks(missing=f"{NAME} is missing, so no times of single ranks are shown")
    wanted = {name: sorted(numbers) for name, numbers in cases.items()}
    found, unreadable = {}, []
    try:
        contents = read_ranks_file(path, wanted, ("own",), MOST_REPETITIONS, plausible=True)
        for one in contents.cases:
            if isinstance(one, UnreadableCase):
                unreadable.append(one)
            else:
                found[one.case] = _phases(one)
    except ValueError as error:
        why = str(error).removeprefix(f"{path} cannot be read: ")
        return Ranks(missing=f"{NAME} cannot be read ({why}), so no times of ranks are shown")
    if unreadable:
        case, why = unreadable[0]
        told = f"{len(unreadable)} of {len(cases)} cases, such as {case} ({why})"
        return Ranks(found, f"{NAME} cannot be read for {told}")
    absent = len(cases) - len(found)
    return Ranks(found, f"{NAME} lacks {absent} of {len(cases)} cases" if absent else "")


def _phases(found: CaseTimes) -> dict[str, RankTimes]:
    by_phase = zip(found.phases, np.moveaxis(found.arrays["own"], 1, 0), strict=True)
    return {phase: _grouped(times) for phase, times in by_phase if not np.isnan(times).all()}


def _grouped(times: Times) -> RankTimes:
    """Group the times of one phase, given by repetition and rank."""
    times = times[~np.isnan(times).any(axis=1)]
    ranks = times.shape[1]
    groups = np.array_split(np.arange(ranks), min(ranks, MOST_RANKS))
    first = [int(group[0]) for group in groups]
    medians = np.median(times, axis=0)
    return RankTimes(
        first,
        [float(np.median(medians[group])) for group in groups],
        np.minimum.reduceat(times.min(axis=0), first).tolist(),
        np.maximum.reduceat(times.max(axis=0), first).tolist(),
    )
