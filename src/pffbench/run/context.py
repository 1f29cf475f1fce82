"""The context of a run on a rank, which its parts share."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pffbench.job.batch_job import StopSignals
from pffbench.job.watchdog import Watchdog
from pffbench.mpi.topology import Team
from pffbench.run.spec import RunSpec
from pffbench.storage.scratch import Scratch

if TYPE_CHECKING:
    from pffbench.run.recorder import Recorder


class RunContext(NamedTuple):
    """The ranks, specification, directory and services of a run."""

    #: The ranks.
    team: Team
    #: Specification of the run.
    spec: RunSpec
    #: Directory of the files.
    scratch: Scratch
    #: Recorder on rank 0; None on the other ranks.
    recorder: Recorder | None
    #: Receives the current step of the ranks.
    watchdog: Watchdog
    #: Reports whether the run has been asked to end.
    stop: StopSignals
