"""The coordinator of a run of several environments: one process, which starts all ranks.

In each block every environment runs every case as a job step of its own. The steps of a block are
there together and take turns, repetition by repetition: the machine becomes faster and slower from
block to block, which meets all environments. Processes are started anew for each block: the memory
layout of a process changes times for as long as it lives, and would count as a difference of
environments.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace as replace_options
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec.structs import replace

from pffbench.case import Case
from pffbench.environments.blocks import Blocks, MakesSchedule
from pffbench.environments.cross_reading import CrossReading
from pffbench.environments.merge import MergingRecorder, merged_record
from pffbench.environments.processes import last_line, run_bounded, stop_before_start
from pffbench.environments.resume import STEPS, experiment_file, stopped_run
from pffbench.environments.start import (
    ANSWER,
    StartedEnvironment,
    commands_of,
    launcher_of,
    start_environment,
)
from pffbench.environments.step import START_SECONDS, JobSteps, arguments_of, as_entry
from pffbench.errors import UserError
from pffbench.experiment.load import LoadedExperiment
from pffbench.experiment.plan import Plan
from pffbench.experiment.sweep import expand
from pffbench.parallel.batch_job import StopSignals
from pffbench.parallel.clock import Floor
from pffbench.parallel.topology import Topology
from pffbench.record.lock import RunLock
from pffbench.record.progress import make_progress
from pffbench.record.run_json import RunRecord, check_layout, readable
from pffbench.record.samples import Repetitions, Sample, whole
from pffbench.run.options import RunOptions
from pffbench.run.prepare import results_directory
from pffbench.run.recording import begin_results, undo_results
from pffbench.run.schedule import Schedule
from pffbench.run.verdict import report_result
from pffbench.storage.filesystem import same_filesystem
from pffbench.storage.scratch import scratch_parent
from pffbench.text import one_line

_TOGETHER = "results are written to the file system under test, off the timer"


def run_environments(options: RunOptions, loaded: LoadedExperiment, stop: StopSignals) -> int:
    """Run an experiment in all of its environments; return the exit status.

    Parameters
    ----------
    options : RunOptions
        Options of the run.
    loaded : LoadedExperiment
        The experiment, which names environments.
    stop : StopSignals
        Tells that the run is to end.

    Raises
    ------
    UserError
        The input is wrong, or an environment cannot run it; nothing has been created then.
    """
    began = time.monotonic()
    with measured(options, loaded, stop) as recorder:
        return report_result(recorder, options, began)


@contextmanager
def measured(
    options: RunOptions,
    loaded: LoadedExperiment,
    stop: StopSignals,
    schedule: MakesSchedule = Schedule,
) -> Iterator[MergingRecorder]:
    """Run an experiment in all of its environments; the results are locked while the block runs.

    Parameters
    ----------
    options, loaded, stop
        As of `run_environments`.
    schedule : callable
        Makes the schedule of the blocks.

    Raises
    ------
    UserError
        As of `run_environments`.
    """
    experiment, path = loaded.experiment, loaded.path
    if options.stage is not None:
        raise UserError(f"--stage: {path} has environments, whose steps write and read in one job")
    run_id = f"{experiment.name}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{os.getpid()}"
    out = Path(results_directory(options.out, run_id))
    parent, own_parent = scratch_parent(options.scratch)
    if not own_parent and not Path(parent).is_dir():
        raise UserError(f"--scratch {parent}: there is no such directory")
    checked = _checked(loaded, options, str(out), stop)
    with readable(*(f"answer of environment {name}" for name in checked.probes)):
        record = merged_record(
            checked.plan, path, run_id, parent, checked.probes, checked.starts
        )
        check_layout(msgspec.structs.asdict(record))
    lock = RunLock()
    begin_results(out, lock)
    try:
        if same_filesystem(str(out), parent):
            record.remarks.append(_TOGETHER)
        recorder = _recorder(checked, out, record, options)
    except OSError as error:
        undo_results(out, lock)
        raise UserError(f"{out}: cannot be written to: {error.strerror or error}") from None
    try:
        yield _executed(
            checked, recorder, options, stop, schedule, own_parent=own_parent
        )
    finally:
        lock.release()


def resume_environments(options: RunOptions, stop: StopSignals) -> int:
    """Go on with a stopped run of several environments; return the exit status.

    Parameters
    ----------
    options : RunOptions
        Options of this start.
    stop : StopSignals
        Tells that the run is to end.

    Raises
    ------
    UserError
        The run cannot be resumed, or is not the same any more; its record stays as it was.
    """
    began = time.monotonic()
    with measured_further(options, stop) as recorder:
        return report_result(recorder, options, began)


@contextmanager
def measured_further(
    options: RunOptions, stop: StopSignals, schedule: MakesSchedule = Schedule
) -> Iterator[MergingRecorder]:
    """Go on with a stopped run; its results are locked while the block runs.

    Parameters
    ----------
    options, stop, schedule
        As of `measured`.

    Raises
    ------
    UserError
        As of `resume_environments`.
    """
    lock = RunLock()
    try:
        run = stopped_run(options, lock)
        options = replace_options(run.options, experiment=str(experiment_file(run)))
        try:
            out = str(run.directory / STEPS / "run")
            checked = _checked(run.loaded, options, out, stop)
        finally:
            shutil.rmtree(run.directory / STEPS, ignore_errors=True)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        with readable(run.directory):
            checked = replace(checked, plan=run.plan(checked.plan))
            said = run.goes_on(checked.probes, now)
            known = run.samples()
        try:
            recorder = _recorder(checked, run.directory, run.record, options, known)
        except OSError as error:
            told = error.strerror or error
            raise UserError(f"{run.directory}: cannot be written to: {told}") from None
        for text in said:
            recorder.progress.message(text)
        done = whole(known).finished
        own = scratch_parent(options.scratch)[1]
        yield _executed(
            checked, recorder, options, stop, schedule, own_parent=own, done=done
        )
    finally:
        lock.release()


class _Checked(msgspec.Struct, frozen=True):
    """The facts of a run before anything is created.

    Parameters
    ----------
    launcher : tuple of str
        Command that starts the ranks.
    environments : tuple of StartedEnvironment
        The environments.
    probes : dict of str to dict
        Facts of each, as `pffbench.environments.probe` prints them.
    plan : Plan
        The cases of all of them.
    """

    launcher: tuple[str, ...]
    environments: tuple[StartedEnvironment, ...]
    probes: Mapping[str, Mapping[str, Any]]
    plan: Plan

    @property
    def starts(self) -> dict[str, str]:
        """Command that starts the ranks of each environment."""
        return {e.name: shlex.join([*self.launcher, *e.command]) for e in self.environments}


def _checked(
    loaded: LoadedExperiment, options: RunOptions, out: str, stop: StopSignals
) -> _Checked:
    """Start each environment and let its ranks check the experiment.

    Raises
    ------
    UserError
        One of them cannot be started or cannot run it.
    """
    experiment, path = loaded.experiment, loaded.path
    launcher = launcher_of(experiment, path)
    if not options.json and options.progress != "none":
        print(one_line(f"starts: {'; '.join(commands_of(experiment))}"), flush=True)
    environments = tuple(
        start_environment(environment, f"{path}: environments[{number}]", stop_before_start(stop))
        for number, environment in enumerate(experiment.environments)
    )
    probes = {e.name: _probed(e, launcher, options, out, stop) for e in environments}
    with readable(*(f"answer of environment {e.name}" for e in environments)):
        return _Checked(launcher, environments, probes, _plan(loaded, probes))


def _recorder(
    checked: _Checked,
    out: Path,
    record: RunRecord,
    options: RunOptions,
    known: Sequence[Sample] = (),
) -> MergingRecorder:
    """Create the recorder of a run; `known` are the rows of one that is resumed."""
    plan, first = checked.plan, next(iter(checked.probes.values()))
    experiment = plan.experiment
    style = "none" if options.json else options.progress
    return MergingRecorder(
        str(out),
        record,
        Topology(tuple(first["topology"]["hosts"]), tuple(first["topology"]["nodes"])),
        Floor(**first["floor"]),
        experiment.warmup,
        make_progress(style, len(plan.cases), experiment.blocks, experiment.time_budget),
        known,
    )


def _executed(
    checked: _Checked,
    recorder: MergingRecorder,
    options: RunOptions,
    stop: StopSignals,
    schedule: MakesSchedule,
    *,
    own_parent: bool,
    done: Repetitions = frozenset(),
) -> MergingRecorder:
    """Run the blocks that are left; return the recorder, which has the verdict."""

    def note_stop() -> None:  # while steps run: this process may be killed before they have ended
        if stop.asked:
            recorder.stopping()

    out = Path(recorder.directory)
    steps = JobSteps(checked.launcher, options, out / STEPS, stop, note_stop)
    try:
        blocks = Blocks(
            checked.plan, checked.environments, recorder, steps, options, stop, done, schedule
        )
        complete = blocks.run()
        if complete and checked.plan.experiment.cross_reads:
            reading = CrossReading(
                blocks.plan,
                checked.environments,
                checked.launcher,
                options,
                out / STEPS,
                stop,
                note_stop,
            )
            recorder.progress.message("each environment reads the files of all of them")
            complete = reading.run(recorder.run_record)
    finally:
        steps.remove()
        recorder.progress.close()
        if own_parent:
            with suppress(OSError):
                Path(recorder.run_record.scratch).rmdir()
    recorder.finish(complete)
    return recorder


def _probed(
    environment: StartedEnvironment,
    launcher: Sequence[str],
    options: RunOptions,
    out: str,
    stop: StopSignals,
) -> dict[str, Any]:
    """Check the experiment with the ranks of an environment; return its facts.

    Raises
    ------
    UserError
        It cannot run there.
    """
    name = environment.name
    command = [*launcher, *environment.command, "-P", "-m", "pffbench.environments.probe"]
    command += [options.experiment] if options.experiment is not None else []
    for override in options.overrides:
        command += ["--set", override]
    done = run_bounded(
        [*command, "--out", out, *arguments_of(options)],
        environment.process_environment,
        START_SECONDS,
        stop_before_start(stop),
        ANSWER,
    )
    if done.status is None:
        raise UserError(
            f"environment {name}: its ranks did not start within {START_SECONDS:g} s: "
            f"{shlex.join(command)}"
        )
    if done.status or not done.messages:
        raise UserError(f"environment {name}: {last_line(done.text)}")
    try:
        found = json.loads(done.messages[-1])
        msgspec.convert(found, _Facts)
    except (ValueError, RecursionError) as error:  # of msgspec too
        raise UserError(
            f"environment {name}: its ranks answered in another way than those of pffbench do: "
            f"{one_line(str(error), 200)}"
        ) from None
    return dict(found)


class _Facts(msgspec.Struct, frozen=True):
    """What `pffbench.environments.probe` prints."""

    topology: _Topology
    floor: Floor
    startup: dict[str, float]
    provenance: dict[str, Any]
    entries: dict[str, _Entry]
    left_out: list[tuple[str, str]]
    limits: list[str]


class _Topology(msgspec.Struct, frozen=True):
    hosts: Annotated[list[str], msgspec.Meta(min_length=1)]
    nodes: Annotated[list[int], msgspec.Meta(min_length=1)]


class _Entry(msgspec.Struct, frozen=True):
    parameters: dict[str, Any]
    options: dict[str, Any]
    roofline: bool


def _plan(loaded: LoadedExperiment, probes: Mapping[str, Mapping[str, Any]]) -> Plan:
    """Return the cases of all environments, those of one case side by side.

    Raises
    ------
    UserError
        The environments have other numbers of ranks.
    """
    (first, base), *others = probes.items()
    size = len(base["topology"]["nodes"])
    for name, probe in others:
        ranks = len(probe["topology"]["nodes"])
        if ranks != size:
            raise UserError(
                f"environment {name} has {ranks} ranks under the launcher, and {first} has {size}: "
                "its MPI is not the launcher's"
            )
    entries = {name: e for probe in probes.values() for name, e in probe["entries"].items()}
    cases = []
    for name, entry in entries.items():
        case = _case_of(entry, name)
        cases += [
            replace(case, environment=environment)
            for environment, probe in probes.items()
            if name in probe["entries"]
        ]
    left_out = [
        (f"{name}@{environment}", reason)
        for environment, probe in probes.items()
        for name, reason in probe["left_out"]
    ]
    limits = [f"{name}: {text}" for name, probe in probes.items() for text in probe["limits"]]
    return Plan(loaded.experiment, size, tuple(cases), tuple(left_out), {}, tuple(limits))


def _case_of(entry: Mapping[str, Any], name: str) -> Case:
    """Return the case of an entry of `run.json`."""
    told = as_entry(entry["parameters"], entry["options"])
    (case,) = expand(told, name, set())
    return replace(case, roofline=bool(entry["roofline"]))
