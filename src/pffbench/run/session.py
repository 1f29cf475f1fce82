"""A session: from the command line to a verdict, on all ranks.

Rank 0 first checks for all errors and broadcasts the result; only then is anything created. Modules
that only rank 0 needs are imported where they are used: with more ranks than cores, every import of
a rank delays all of them.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

import msgspec

from pffbench.errors import (
    INTERRUPTED,
    VALID,
    ResultsLostError,
    StoppedError,
    UserError,
)
from pffbench.parallel.agreement import sleeping_barrier
from pffbench.parallel.batch_job import StopSignals
from pffbench.parallel.clock import Floor, measure_floor
from pffbench.parallel.collectives import any_of, kept_by_root, largest, on_root
from pffbench.parallel.topology import Team
from pffbench.parallel.watchdog import Watchdog
from pffbench.phases import UPDATE_PHASES, WRITE_PHASES
from pffbench.provenance.collect import collect_provenance
from pffbench.record.lock import RunLock
from pffbench.run.options import RunOptions
from pffbench.run.resources import available_resources, seconds_since_start
from pffbench.run.runner import Runner
from pffbench.run.scratch_directory import create_scratch, on_each_node, remove_scratch
from pffbench.run.spec import RunSpec
from pffbench.storage.scratch import Scratch

if TYPE_CHECKING:
    from mpi4py import MPI

    from pffbench.record.progress import Progress
    from pffbench.run.recorder import Recorder


class Session(msgspec.Struct, frozen=True):
    """A checked run, with its scratch and results directories created."""

    team: Team
    spec: RunSpec
    scratch: Scratch
    progress: Progress | None
    recorder: Recorder | None
    lock: RunLock
    stop: StopSignals
    #: Monotonic seconds at which it was prepared.
    began: float

    @classmethod
    def prepare(cls, comm: MPI.Intracomm, options: RunOptions, stop: StopSignals) -> Session:
        """Check for all errors, then create the resources of the run; collective.

        Raises
        ------
        UserError
            On every rank, when the input is wrong; nothing has been created then.
        StoppedError
            On every rank, when the run was asked to end before anything was created.
        """
        lock = RunLock()
        try:
            return cls._prepared(comm, options, lock, stop)
        except BaseException:
            lock.release()
            raise

    @classmethod
    def _prepared(
        cls, comm: MPI.Intracomm, options: RunOptions, lock: RunLock, stop: StopSignals
    ) -> Session:
        began = time.monotonic()
        started = seconds_since_start()
        team = Team.of(comm)
        spec = _decided(team, options, lock)
        if any_of(team.comm, stop.asked):
            raise StoppedError("a signal asked the run to end before it began; nothing was made")
        scratch = create_scratch(team, spec)
        try:
            floor = measure_floor(team.comm)
            progress, recorder = _begun(team, spec, scratch, floor, started, lock)
        except BaseException as error:
            # An error on a single rank ends the job before the others learn of it.
            keeps = team.keeps(node_local=scratch.node_local)
            if (keeps or not isinstance(error, UserError)) and not spec.kept:
                remove_scratch(scratch, spec)
            raise
        return cls(
            team,
            spec,
            scratch,
            progress,
            recorder,
            lock,
            stop,
            began,
        )

    @property
    def how_to_go_on(self) -> str:
        """Instruction for resuming the run when it ends early."""
        return f"go on with: pffbench run --resume {self.spec.out}"

    def leave(self) -> None:
        """Remove the bar from the terminal when the run ends early."""
        if self.progress is not None:
            self.progress.close()

    def run(self) -> int:
        """Run the plan, remove the scratch directory, print the verdict; return the exit status."""
        places = (self.scratch.directory, (*WRITE_PHASES, *UPDATE_PHASES), self.spec.out)
        with Watchdog(self.team, self.spec.options.hang_timeout, *places) as watchdog:
            self.stop.when_asked = watchdog.asked_to_end
            self._remark_on(watchdog)
            runner = Runner(
                team=self.team,
                spec=self.spec,
                scratch=self.scratch,
                recorder=self.recorder,
                watchdog=watchdog,
                stop=self.stop,
            )
            try:
                complete = runner.run()
            except ResultsLostError as error:
                return self._lost(error)
        status = VALID
        if self.progress is not None:
            self.progress.close()
        if complete or self.spec.stage == "all":
            self._destroy_scratch()
        if self.recorder is not None:
            status = self._reported(complete)
            self.lock.release()
        sleeping_barrier(self.team.comm)
        status = int(self.team.comm.bcast(status))
        if any_of(self.team.comm, bool(runner.abandoned)):
            _leave_at_once(status)
        return status

    def _reported(self, complete: bool) -> int:
        """Record and print the result, unless what started the ranks prints it; on rank 0."""
        assert self.recorder is not None
        try:
            self.recorder.finish(complete)
        except OSError as error:
            return self._print_loss(error)
        if self.spec.options.in_turns:
            return self.recorder.exit_status
        from pffbench.run.verdict import report_result  # needed on rank 0 only

        return report_result(self.recorder, self.spec.options, self.began)

    def _lost(self, error: ResultsLostError) -> int:
        """Report that nothing more can be recorded; the run can be resumed from its records."""
        keeps = self.team.keeps(node_local=self.scratch.node_local)
        if keeps and self.spec.stage == "all":
            remove_scratch(self.scratch, self.spec)
        if self.recorder is not None:
            assert self.progress is not None
            self.progress.close()
            self.lock.release()
            self._print_loss(error)
        sleeping_barrier(self.team.comm)
        return INTERRUPTED

    def _print_loss(self, error: Exception) -> int:
        """Say that nothing more can be recorded; return the exit status."""
        text = f"results cannot be written to {self.spec.out} any more: {error}"
        kept = f"what was recorded is kept, {self.how_to_go_on}"
        print(f"pffbench: {text}; {kept}", file=sys.stderr, flush=True)
        return INTERRUPTED

    def _remark_on(self, watchdog: Watchdog) -> None:
        """Record where no watchdog runs; collective."""
        missing = self.team.comm.gather(watchdog.missing)
        for why in sorted({why for why in missing or () if why is not None}):
            assert self.recorder is not None
            self.recorder.remark(f"the watchdog is not everywhere: {why}")

    def _destroy_scratch(self) -> None:
        """Remove all files, unless another job is to read them; collective."""
        if self.spec.stage == "write":
            return
        node_local = self.scratch.node_local
        keeps = self.team.keeps(node_local=node_local)
        left = remove_scratch(self.scratch, self.spec) if keeps else None
        everywhere = self.team.comm.gather(left) if node_local else [left]
        for text in everywhere or ():
            if text is not None and self.recorder is not None:
                self.recorder.remark(text)


def import_for_rank_0() -> None:
    """Import what rank 0 alone needs, while other ranks are still starting and none waits."""
    import pffbench.provenance.job
    import pffbench.record.progress
    import pffbench.run.next_steps
    import pffbench.run.prepare
    import pffbench.run.recording  # noqa: F401


def _decided(team: Team, options: RunOptions, lock: RunLock) -> RunSpec:
    """Create the specification of the run on rank 0 and broadcast it; collective."""
    allowance = available_resources(team)

    def decide_on_root() -> RunSpec:
        from pffbench.run.prepare import prepare_run

        spec = prepare_run(options, team, allowance, lock)
        if spec.plan.experiment.environments:
            raise UserError(
                f"{spec.experiment_file}: a run of several environments starts its ranks itself: "
                "start it as one process without mpiexec or srun, and name the launcher in the "
                "experiment (launcher: mpiexec -n 4)"
            )
        return spec

    return on_root(team.comm, decide_on_root)


def _begun(
    team: Team,
    spec: RunSpec,
    scratch: Scratch,
    floor: Floor,
    started: float,
    lock: RunLock,
) -> tuple[Progress, Recorder] | tuple[None, None]:
    """Determine the topology, and have rank 0 create the record of the run; collective."""
    options, startup = spec.options, {"seconds_to_main": largest(team.comm, started)}
    # Last, since rank 0 goes on alone in it: the others wait asleep for the record.
    facts = collect_provenance(team, spec.plan, scratch.directory, personal=options.record_account)

    def make() -> tuple[Progress, Recorder]:
        from pffbench.record.progress import make_progress
        from pffbench.run.next_steps import available_processors, more_ranks
        from pffbench.run.recorder import new_record
        from pffbench.run.recording import open_recorder

        record = new_record(
            spec.plan,
            spec.experiment_file,
            spec.run_id,
            scratch.directory,
            team.topology,
            floor,
            startup,
            facts,
        )
        blocks = spec.plan.experiment.blocks
        style = options.progress_style
        if scratch.node_local:
            record.remarks.append(on_each_node(record.provenance))
        budget = spec.plan.experiment.time_budget
        progress = make_progress(style, len(spec.plan.cases), blocks, budget)
        recorder = open_recorder(spec, record, team, floor, progress, lock)
        if team.size == 1:
            progress.message(more_ranks(options, os.environ, available_processors()))
        return progress, recorder

    return kept_by_root(team.comm, make) or (None, None)


def _leave_at_once(status: int) -> None:
    """End the process without the libraries' own clean-up.

    A library with an open file that it failed to write tries to close it when MPI is finalised,
    and hangs or crashes there. Everything is recorded and printed by now.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
