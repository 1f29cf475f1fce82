"""What cases of the same parameters hold, whatever their options: found out once for all."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from pffbench.backends.base import ArraySpec
from pffbench.case import Parameters
from pffbench.workloads.base import Volume
from pffbench.workloads.registry import workload


@dataclass(frozen=True, slots=True)
class Contents:
    """What a plan needs to know of the arrays of a case.

    Parameters
    ----------
    volume : Volume
        How many arrays and bytes.
    kinds : list of ArraySpec
        An array of each kind, that of rank 0 first; empty where rank 0 opens none.
    largest_write : int
        Bytes of the longest call of any rank.
    """

    volume: Volume
    kinds: list[ArraySpec]
    largest_write: int


@lru_cache(maxsize=1024)
def contents_of(parameters: Parameters, ranks: int) -> Contents:
    """Return what cases hold whose parameters have been found to make sense together."""
    pattern = workload(parameters.workload)
    return Contents(
        pattern.volume(parameters, ranks),
        pattern.kinds(parameters, ranks),
        pattern.largest_write(parameters, ranks),
    )
