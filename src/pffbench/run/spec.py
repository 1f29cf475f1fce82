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
    """The specification of a run, decided on rank 0 and broadcast to all ranks."""

    #: Plan of the run.
    plan: Plan
    #: Path of the experiment.
    experiment_file: str
    #: The part of the run done by this job.
    stage: Stage
    #: Identifies the run and its scratch directory.
    run_id: str
    #: Directory that contains the scratch directory.
    scratch_parent: str
    #: Whether that directory is to be created too, and removed when empty.
    own_scratch_parent: bool
    #: Results directory.
    out: str
    #: Whether the run is resumed.
    goes_on: bool
    #: Completed repetitions, as case and number.
    done: Done
    #: Repetitions whose files exist and are still needed.
    kept: Done
    #: Bytes that each rank may take, on the node with the fewest.
    memory: int
    #: Options of the command line.
    options: RunOptions


class RoundSpec(msgspec.Struct, frozen=True):
    """The next round, on all ranks."""

    #: Indices of the cases in the plan; empty when the run is complete.
    cases: tuple[int, ...]
    #: Number of reads of the data by each of them.
    reads: Mapping[int, int]


def repetition_directory(case: str, number: int) -> str:
    """Return the name of a repetition's own directory in the scratch directory."""
    return f"{number:04d}-{case}"
