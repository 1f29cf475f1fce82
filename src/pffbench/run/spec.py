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
    """The specification of a run, decided on rank 0 and broadcast to all ranks.

    Parameters
    ----------
    plan : Plan
        Plan of the run.
    experiment_file : str
        Path of the experiment.
    stage : {"all", "write", "read"}
        The part of the run done by this job.
    run_id : str
        Identifies the run and its scratch directory.
    scratch_parent : str
        Directory that contains the scratch directory.
    own_scratch_parent : bool
        Whether that directory is to be created too, and removed when empty.
    out : str
        Results directory.
    goes_on : bool
        Whether the run is resumed.
    done : frozenset of (str, int)
        Completed repetitions, as case and number.
    kept : frozenset of (str, int)
        Repetitions whose files exist and are still needed.
    other_hosts : bool
        Whether a run may be resumed on other hosts than it began on.
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
    """The next block of repetitions, on all ranks.

    Parameters
    ----------
    cases : tuple of int
        Indices of the cases in the plan; empty when the run is complete.
    reads : dict of int to int
        Number of reads of the data by each of them.
    """

    cases: tuple[int, ...]
    reads: Mapping[int, int]


@dataclass(frozen=True)
class RunOptions:
    """Options of a run, in addition to its plan.

    Parameters
    ----------
    fail_fast : bool
        Stop at the first failed case, instead of continuing with the others.
    drop_hook : str, optional
        The site's command that drops the page cache of a node.
    stage : {"all", "write", "read"}
        The part of every repetition done by this job.
    seconds : float, optional
        Maximum duration of the run from now; None without a limit.
    hang_timeout : float, optional
        Maximum duration of a step before the run counts as hung; by the case when None.
    """

    fail_fast: bool = False
    drop_hook: str | None = None
    stage: Stage = "all"
    seconds: float | None = None
    hang_timeout: float | None = None
