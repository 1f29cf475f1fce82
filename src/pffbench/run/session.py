"""A session: from the command line to a verdict, on all ranks.

Rank 0 first checks for all errors and broadcasts the result; only then is anything created. Modules
that only rank 0 needs are imported where they are used: with more ranks than cores, every import of
a rank delays all of them.
"""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pffbench.errors import (
    INTERRUPTED,
    VALID,
    ResultsLostError,
    StoppedError,
    UserError,
)
from pffbench.job.alarm import PATIENCE, Alarm, patience_around
from pffbench.job.batch_job import StopSignals
from pffbench.job.launcher import is_launched
from pffbench.job.watchdog import Watchdog
from pffbench.mpi.agreement import sleeping_barrier
from pffbench.mpi.collectives import any_of, kept_by_root, largest, on_root
from pffbench.mpi.topology import Team
from pffbench.observe.clock import Floor, measure_floor
from pffbench.phases import UPDATE_PHASES, WRITE_PHASES
from pffbench.provenance.collect import collect_provenance
from pffbench.record.lock import NAME as LOCK
from pffbench.record.lock import RunLock
from pffbench.run.context import RunContext
from pffbench.run.options import RunOptions
from pffbench.run.resources import available_resources, seconds_since_start
from pffbench.run.runner import Runner
from pffbench.run.scratch_directory import create_scratch, remove_scratch
from pffbench.run.spec import RunSpec
from pffbench.storage.ownership import MARKER

if TYPE_CHECKING:
    from mpi4py import MPI

    from pffbench.backends.base import Store
    from pffbench.run.prepare import RunRequest
    from pffbench.run.recorder import Recorder


class Session:
    """A run, from the check of its options to the verdict; every method is collective.

    It is made when nothing is wrong, and then has the scratch and the results directory.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        All ranks.
    options : RunOptions
        Options of the run.
    stop : StopSignals
        Tells whether the run has been asked to end.

    Raises
    ------
    UserError
        On every rank, when the input is wrong; nothing has been created then.
    StoppedError
        On every rank, when the run was asked to end before anything was created.
    """

    def __init__(self, comm: MPI.Intracomm, options: RunOptions, stop: StopSignals) -> None:
        self._began = time.monotonic()
        self._seconds_to_main = seconds_since_start()
        self._team = Team.of(comm)
        self._stop = stop
        self._lock = RunLock()
        #: Ends this rank while no watchdog does: before the first case, and after the last one.
        self._alarm = Alarm()
        #: Of rank 0 alone.
        self._recorder: Recorder | None = None
        #: Stores that a failure left open, which must not be released; and whether any rank has
        #: one, so that all must leave at once.
        self._open_stores: list[Store] = []
        self.abandoned = False
        try:
            self.spec = self._decide(options)
            if any_of(comm, stop.asked):
                raise StoppedError(
                    "a signal asked the run to end before it began; nothing was made"
                )
            self._alarm.step()
            self._scratch = create_scratch(self._team, self.spec)
            self._alarm.step()
            self._begin()
        except BaseException:
            self._lock.release()
            raise

    def _decide(self, options: RunOptions) -> RunSpec:
        """Check for all errors on rank 0, and broadcast the specification of the run."""
        request = self._read_request(options)
        allowance = available_resources(self._team)

        def decide_on_root() -> RunSpec:
            from pffbench.run.prepare import prepare_run

            assert request is not None
            spec = prepare_run(request, self._team, allowance)
            if spec.plan.experiment.environments:
                raise UserError(
                    f"{spec.experiment_file}: a run with environments or starts starts its ranks "
                    "itself: start it as one process without mpiexec or srun, and name the "
                    "launcher in the experiment (launcher: mpiexec -n 4)"
                )
            return spec

        return on_root(self._team.comm, decide_on_root)

    def _read_request(self, options: RunOptions) -> RunRequest | None:
        """Read the experiment on rank 0, which keeps it; its limit holds on all ranks."""

        def read_on_root() -> RunRequest:
            from pffbench.run.prepare import read_request

            return read_request(options, self._team, self._lock)

        request = kept_by_root(self._team.comm, read_on_root)
        given = None if request is None else request.loaded.experiment.hang_timeout
        limit = patience_around(self._team.comm.bcast(given))
        if is_launched(os.environ):  # a process alone waits for nobody
            self._alarm.begin(limit)
        return request

    def _begin(self) -> None:
        """Have rank 0 create the record of the run; if that fails, remove the scratch directory."""
        team, spec, directory = self._team, self.spec, self._scratch.directory
        try:
            floor = measure_floor(team.comm)
            to_main = largest(team.comm, self._seconds_to_main)
            # Last, since rank 0 goes on alone in it: the others wait asleep for the record.
            facts = collect_provenance(team, spec.plan, directory)
            open_recorder = partial(self._open_recorder, floor, to_main, facts)
            self._recorder = kept_by_root(team.comm, open_recorder)
        except BaseException as error:
            # An error on a single rank ends the job before the others learn of it.
            if (self._keeps_scratch or not isinstance(error, UserError)) and not spec.kept:
                remove_scratch(self._scratch, spec)
            raise

    def _open_recorder(
        self, floor: Floor, to_main: float, facts: dict[str, Any] | None
    ) -> Recorder:
        """Create the record of the run, on rank 0."""
        from pffbench.record.progress import make_progress
        from pffbench.record.run_json import Startup
        from pffbench.run.next_steps import available_processors, more_ranks
        from pffbench.run.recording import new_record, open_recorder

        spec, topology, experiment = self.spec, self._team.topology, self.spec.plan.experiment
        directory = self._scratch.directory
        record = new_record(spec, directory, topology, floor, Startup(to_main), facts)
        progress = make_progress(
            len(spec.plan.cases),
            experiment.rounds,
            experiment.time_budget,
            silent=spec.options.is_silent,
        )
        recorder = open_recorder(spec, record, topology, floor, progress, self._lock)
        if topology.size == 1:
            progress.message(more_ranks(spec.options, os.environ, available_processors()))
        return recorder

    @property
    def _keeps_scratch(self) -> bool:
        """Whether this rank removes a scratch directory: rank 0, or one rank of each node."""
        return self._team.keeps(node_local=self._scratch.node_local)

    @property
    def how_to_go_on(self) -> str:
        """Instruction for resuming the run when it ends early."""
        from pffbench.run.next_steps import to_resume  # needed on rank 0, or at an early end

        return to_resume(self.spec.out, self._team.comm.size, os.environ)

    def _files_of_life(self) -> tuple[str, ...]:
        """Return the files that show that this run lives, which this node touches."""
        marker = str(Path(self._scratch.directory, MARKER))
        if self._team.is_root:
            return marker, str(Path(self.spec.out, LOCK))
        return (marker,) if self._keeps_scratch else ()

    def leave(self) -> None:
        """Remove the bar from the terminal."""
        if self._recorder is not None:
            self._recorder.progress.close()

    def run(self) -> int:
        """Run the plan, remove the scratch directory, print the verdict; return the exit status."""
        limit = self.spec.plan.experiment.hang_timeout
        watched = Watchdog(
            self._team,
            limit,
            self._scratch.directory,
            (*WRITE_PHASES, *UPDATE_PHASES),
            self.spec.out,
            self._files_of_life(),
            self._team.comm.bcast(self.how_to_go_on if self._team.is_root else ""),
        )
        with watched as watchdog:
            self._stop.when_asked = watchdog.asked_to_end
            watchdog.begin("the first round", PATIENCE if limit is None else limit)
            self._remark_on(watchdog)
            context = RunContext(
                team=self._team,
                spec=self.spec,
                scratch=self._scratch,
                recorder=self._recorder,
                watchdog=watchdog,
                stop=self._stop,
            )
            runner = Runner(context)
            try:
                complete = runner.run()
            except ResultsLostError as error:
                return self._lost(error)
        if is_launched(os.environ):  # a process alone waits for nobody
            self._alarm.begin(patience_around(limit))
        status = VALID
        self.leave()
        if complete or self.spec.stage == "all":
            self._destroy_scratch()
        if self._recorder is not None:
            status = self._reported(complete)
            self._lock.release()
        sleeping_barrier(self._team.comm)
        status = int(self._team.comm.bcast(status))
        self._open_stores = runner.abandoned
        self.abandoned = any_of(self._team.comm, bool(self._open_stores))
        return status

    def _reported(self, complete: bool) -> int:
        """Record and print the result, unless what started the ranks prints it; on rank 0."""
        assert self._recorder is not None
        try:
            self._recorder.finish(complete)
        except (OSError, ValueError) as error:
            return self._print_loss(error)
        if self.spec.options.environment:
            return self._recorder.run_record.exit_status
        from pffbench.run.verdict import report_result  # needed on rank 0 only

        return report_result(self._recorder, self.spec.options, self._began)

    def _lost(self, error: ResultsLostError) -> int:
        """Report that nothing more can be recorded; the run can be resumed from its records."""
        if self._keeps_scratch and self.spec.stage == "all":
            remove_scratch(self._scratch, self.spec)
        self.leave()
        if self._recorder is not None:
            self._lock.release()
            self._print_loss(error)
        sleeping_barrier(self._team.comm)
        return INTERRUPTED

    def _print_loss(self, error: Exception) -> int:
        """Say that nothing more can be recorded; return the exit status."""
        assert self._recorder is not None
        text = f"results cannot be written to {self.spec.out} any more: {error}"
        kept = f"what was recorded is kept, {self.how_to_go_on}"
        try:
            self._recorder.check()
        except OSError:
            kept = "nothing is written to what is there now"
        print(f"pffbench: {text}; {kept}", file=sys.stderr, flush=True)
        return INTERRUPTED

    def _remark_on(self, watchdog: Watchdog) -> None:
        """Record where no watchdog runs; collective."""
        missing = self._team.comm.gather(watchdog.missing)
        for why in sorted({why for why in missing or () if why is not None}):
            assert self._recorder is not None
            self._recorder.remark(f"the watchdog is not everywhere: {why}")

    def _destroy_scratch(self) -> None:
        """Remove all files, unless another job is to read them; collective."""
        if self.spec.stage == "write":
            return
        left = remove_scratch(self._scratch, self.spec) if self._keeps_scratch else None
        everywhere = self._team.comm.gather(left) if self._scratch.node_local else [left]
        for text in everywhere or ():
            if text is not None and self._recorder is not None:
                self._recorder.remark(text)


def import_for_rank_0() -> None:
    """Import what rank 0 alone needs, while other ranks are still starting and none waits."""
    import pffbench.provenance.job
    import pffbench.record.progress
    import pffbench.run.next_steps
    import pffbench.run.prepare
    import pffbench.run.recording  # noqa: F401
