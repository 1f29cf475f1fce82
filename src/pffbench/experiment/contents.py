"""Which arrays cases have, whatever their options and values: found out once for all."""

from __future__ import annotations

from functools import lru_cache
from typing import TypeVar

import msgspec

from pffbench.backends.base import ArraySpec, Cuts
from pffbench.case import Parameters
from pffbench.workloads.base import Volume
from pffbench.workloads.registry import workload

P = TypeVar("P", bound=Parameters)


class Contents(msgspec.Struct, frozen=True):
    """What a plan needs to know of the arrays of a case.

    Parameters
    ----------
    volume : Volume
        How many arrays and bytes.
    kinds : list of ArraySpec
        An array of each kind, that of rank 0 first; empty where rank 0 opens none.
    largest_write : int
        Bytes of the longest call of any rank.
    cuts : tuple of tuple of int
        Where the arrays that all ranks write together are cut; empty where there are none.
    """

    volume: Volume
    kinds: list[ArraySpec]
    largest_write: int
    cuts: Cuts


def of_arrays(parameters: P) -> P:
    """Return parameters without what arrays hold and what becomes of it: equal for equal arrays.

    A sweep over such parameters finds out about its arrays once.
    """
    return msgspec.structs.replace(
        parameters, source="uniform", file=None, variable=None, durability="close", cache="warm"
    )


def contents_of(parameters: Parameters, ranks: int) -> Contents:
    """Return what cases hold whose parameters have been found to make sense together."""
    return _contents(of_arrays(parameters), ranks)


@lru_cache(maxsize=1024)
def _contents(parameters: Parameters, ranks: int) -> Contents:
    pattern = workload(parameters.workload)
    return Contents(
        pattern.volume(parameters, ranks),
        pattern.kinds(parameters, ranks),
        pattern.largest_write(parameters, ranks),
        pattern.cuts(parameters, ranks) if parameters.layout == "shared" else (),
    )
