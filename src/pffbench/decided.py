"""What a run is to do, as rank 0 has decided it and tells all ranks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from pffbench.case import Stage
from pffbench.experiment.plan import Plan

if TYPE_CHECKING:
    from pffbench.results.whole import Repetitions


class Decided(msgspec.Struct, frozen=True):
    """What rank 0 has found out and decided; equal on all ranks.

    Parameters
    ----------
    plan : Plan
        What to run.
    experiment_file : str
        Where the experiment was read.
    stage : {"all", "write", "read"}
        Which part of it this job does.
    run_id : str
        Identifies the run and its scratch directory.
    scratch_parent : str
        Directory to make the scratch directory in.
    own_scratch_parent : bool
        Whether that one is to be made too, and removed when empty.
    out : str
        Results directory.
    goes_on : bool
        Whether the run has begun before.
    done : frozenset of (str, int)
        Repetitions, as case and number, that need nothing more.
    kept : frozenset of (str, int)
        Repetitions whose files are there and still needed.
    other_hosts : bool
        Whether a run may go on on other hosts than it began on.
    """

    plan: Plan
    experiment_file: str
    stage: Stage
    run_id: str
    scratch_parent: str
    own_scratch_parent: bool
    out: str
    goes_on: bool
    done: Repetitions
    kept: Repetitions
    other_hosts: bool


class NextBlock(msgspec.Struct, frozen=True):
    """What all ranks do in a block of repetitions.

    Parameters
    ----------
    cases : tuple of int
        Places of the cases in the plan; empty where the run has come to its end.
    reads : dict of int to int
        How often each of them reads what it has written.
    """

    cases: tuple[int, ...]
    reads: Mapping[int, int]
