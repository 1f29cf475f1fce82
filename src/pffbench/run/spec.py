"""The specification of a run: options of the command line, decisions of rank 0, the next block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from pffbench.case import Stage
from pffbench.experiment.plan import Plan

if TYPE_CHECKING:
    from pffbench.record.samples import Repetitions


class RunSpec(msgspec.Struct, frozen=True):
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


class BlockSpec(msgspec.Struct, frozen=True):
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


@dataclass(frozen=True)
class RunOptions:
    """How to run, beside what to run.

    Parameters
    ----------
    fail_fast : bool
        Stop at the first case that fails, instead of going on with the others.
    drop_hook : str, optional
        The site's command that drops the page cache of a node.
    stage : {"all", "write", "read"}
        Which part of every repetition this job does.
    seconds : float, optional
        How long the run may go on from now; None without a limit.
    hang_timeout : float, optional
        How long a step may take before the run counts as hung; by what the case does when None.
    """

    fail_fast: bool = False
    drop_hook: str | None = None
    stage: Stage = "all"
    seconds: float | None = None
    hang_timeout: float | None = None
