"""The coordinator of a run of several environments: one process, which starts all ranks.

In each round every environment runs every case as a job step of its own. The steps of a round are
there together and take turns, repetition by repetition: the machine becomes faster and slower from
round to round, which meets all environments. Processes are started anew for each round: the memory
layout of a process changes times for as long as it lives, and would count as a difference of
environments.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec.structs import replace

from pffbench.errors import UserError
from pffbench.experiment.load import LoadedExperiment
from pffbench.experiment.schema import Experiment
from pffbench.job.batch_job import StopSignals
from pffbench.mpi.topology import Topology
from pffbench.record.lock import RunLock
from pffbench.record.progress import make_progress
from pffbench.record.repetitions import Done, Repetition, done_parts
from pffbench.record.run_json import RunRecord, readable
from pffbench.run.options import RunOptions
from pffbench.run.prepare import results_directory, unique_name
from pffbench.run.recorder import Recorder
from pffbench.run.recording import begin_results, writing_results
from pffbench.run.schedule import Schedule
from pffbench.run.verdict import report_result
from pffbench.storage.scratch import scratch_parent
from pffbench_environments.check import CheckedRun, check_run
from pffbench_environments.merge import floor_of
from pffbench_environments.resume import STEPS, stopped_run
from pffbench_environments.rounds import MakesSchedule, Rounds
from pffbench_environments.start import Launch, launch_of, refuse_commands


def run(options: RunOptions, loaded: LoadedExperiment | None, stop: StopSignals) -> int:
    """Run an experiment in all of its environments; return the exit status.

    Parameters
    ----------
    options : RunOptions
        Options of this start of the run.
    loaded : LoadedExperiment or None
        The experiment, which names environments; None where the options name a run to resume.
    stop : StopSignals
        Tells that the run is to end.

    Raises
    ------
    UserError
        The input is wrong, or an environment cannot run it; nothing has been created then. Or the
        run cannot be resumed, or is not the same any more; its record stays as it was.
    """
    began = time.monotonic()
    with measured(options, loaded, stop) as recorder:
        return report_result(recorder, options, began)


@contextmanager
def measured(
    options: RunOptions,
    loaded: LoadedExperiment | None,
    stop: StopSignals,
    schedule: MakesSchedule = Schedule,
) -> Iterator[Recorder]:
    """Run an experiment in all of its environments; the results are locked while the round runs.

    Parameters
    ----------
    options, loaded, stop
        As of `run`.
    schedule : callable
        Makes the schedule of the rounds.

    Raises
    ------
    UserError
        As of `run`.
    """
    lock = RunLock()
    try:
        if loaded is None:
            begun = _resumed(options, stop, lock)
        else:
            begun = _begun(options, loaded, stop, lock)
        yield _executed(*begun, schedule)
    finally:
        lock.release()


_Begun = tuple[CheckedRun, Launch, Recorder, Done]


def _begun(
    options: RunOptions, loaded: LoadedExperiment, stop: StopSignals, lock: RunLock
) -> _Begun:
    """Check a new run and begin its record."""
    if options.stage is not None:
        raise UserError(
            f"--stage: {loaded.path} has environments or starts, whose steps write and read in one "
            "job"
        )
    run_id = unique_name(loaded.experiment.name)
    out = Path(results_directory(options.out, run_id))
    parent, own_parent = scratch_parent(options.scratch)
    if not own_parent and not Path(parent).is_dir():
        raise UserError(f"--scratch {parent}: there is no such directory")
    refuse_commands(_without_typed(loaded, options), loaded.path, trust=options.trust)
    launch = launch_of(loaded, options, stop, out / STEPS)
    checked = check_run(loaded, launch, str(out))
    record = checked.record(run_id, parent, launch)
    begin_results(out, lock, record, options, parent)
    record.remarks += checked.plan.remarks
    with writing_results(out, lock):
        return checked, launch, _recorder(checked, out, record, options), frozenset()


def _without_typed(loaded: LoadedExperiment, options: RunOptions) -> Experiment:
    """Return the experiment without the commands that the user gave in the command line."""
    typed = {text.partition("=")[0].strip() for text in options.overrides}
    nothing = {"launcher": None, "environments": ()}
    given = {key: value for key, value in nothing.items() if key in typed}
    return replace(loaded.experiment, **given)


def _resumed(options: RunOptions, stop: StopSignals, lock: RunLock) -> _Begun:
    """Check a stopped run, and go on with its record."""
    stopped = stopped_run(options, lock)
    out, loaded, options = stopped.directory, stopped.loaded, stopped.options
    try:
        launch = launch_of(loaded, options, stop, out / STEPS)
        checked = check_run(loaded, launch, str(out / STEPS / "run"))
    finally:
        shutil.rmtree(out / STEPS, ignore_errors=True)
    with readable(out):
        plan, said, known = stopped.go_on(checked.plan, checked.records)
        checked = replace(checked, plan=plan)
    with writing_results(out):
        recorder = _recorder(checked, out, stopped.record, options, known)
    for text in said:
        recorder.progress.message(text)
    return checked, launch, recorder, done_parts(known)[0]


def _recorder(
    checked: CheckedRun,
    out: Path,
    record: RunRecord,
    options: RunOptions,
    known: Sequence[Repetition] = (),
) -> Recorder:
    """Create the recorder of a run; `known` are the repetitions of one that is resumed."""
    plan, first = checked.plan, checked.first
    experiment = plan.experiment
    topology = Topology(tuple(first.topology.hosts), tuple(first.topology.nodes))
    progress = make_progress(
        len(plan.cases), experiment.rounds, experiment.time_budget, silent=options.is_silent
    )
    warmup = experiment.warmup
    return Recorder(str(out), record, topology, floor_of(first.floor), warmup, progress, known)


def _executed(
    checked: CheckedRun,
    launch: Launch,
    recorder: Recorder,
    done: Done,
    schedule: MakesSchedule,
) -> Recorder:
    """Run the rounds that are left; return the recorder, which has the verdict."""

    def note_stop() -> None:  # while steps run: this process may be killed before they have ended
        if launch.is_stopped():
            recorder.stopping()

    running = replace(launch, keep_going=note_stop)
    try:
        rounds = Rounds(checked.plan, checked.environments, recorder, running, done, schedule)
        complete = rounds.run()
    finally:
        shutil.rmtree(launch.directory, ignore_errors=True)
        recorder.progress.close()
        if scratch_parent(launch.options.scratch)[1]:
            with suppress(OSError):
                Path(recorder.run_record.scratch).rmdir()
    recorder.finish(complete)
    return recorder
