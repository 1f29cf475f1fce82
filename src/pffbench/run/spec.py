"""The specification of a run and of its next round, decided on rank 0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from pffbench.case import Stage
from pffbench.experiment.plan import Plan
from pffbench.run.options import RunOptions

if TYPE_CHECKING:
    from pffbench.record.repetitions import Done


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
    memory : int
        Bytes that each rank may take, on the node with the fewest.
    options : RunOptions
        Options of the command line.
    """

    plan: Plan
    experiment_file: str
    stage: Stage
    run_id: str
    scratch_parent: str
    own_scratch_parent: bool
    out: str
    goes_on: bool
    done: Done
    kept: Done
    memory: int
    options: RunOptions


class RoundSpec(msgspec.Struct, frozen=True):
    """The next round, on all ranks.

    Parameters
    ----------
    cases : tuple of int
        Indices of the cases in the plan; empty when the run is complete.
    reads : dict of int to int
        Number of reads of the data by each of them.
    """

    cases: tuple[int, ...]
    reads: Mapping[int, int]


def repetition_directory(case: str, number: int) -> str:
    """Return the name of a repetition's own directory in the scratch directory."""
    return f"{number:04d}-{case}"
