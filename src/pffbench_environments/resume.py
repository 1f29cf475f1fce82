"""Resuming a stopped run of several environments, from its next whole round."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from pffbench.errors import UserError
from pffbench.experiment.load import LoadedExperiment, from_data
from pffbench.experiment.plan import Plan
from pffbench.provenance.inputs import changed_inputs
from pffbench.record.lock import RunLock
from pffbench.record.repetitions import FILE, Repetition, cut_torn, read_repetitions
from pffbench.record.run_json import RunRecord, digest_of, readable
from pffbench.regular_files import make_own_directory, write_replacing
from pffbench.run.options import RunOptions
from pffbench.run.recording import changed_software, go_on
from pffbench.run.resume import (
    check_unfinished,
    moved,
    refuse_other_cases,
    refuse_other_hosts,
    without_left_out,
)
from pffbench_environments.start import refuse_commands
from pffbench_environments.steps import remove_scratch_of

#: Name of the directory, in that of the results, with the files of the current step.
STEPS = ".steps"


class StoppedRun(msgspec.Struct, frozen=True):
    """A run of several environments that is to be resumed."""

    #: The results directory.
    directory: Path
    #: Contents of its `run.json`.
    record: RunRecord
    loaded: LoadedExperiment
    #: Options with which its steps start now.
    options: RunOptions

    def go_on(
        self, plan: Plan, records: Mapping[str, RunRecord]
    ) -> tuple[Plan, list[str], list[Repetition]]:
        """Update the record for this start, and put an incomplete last line aside.

        Parameters
        ----------
        plan : Plan
            The plan of now.
        records : dict of str to RunRecord
            The record with which a run would begin in each environment.

        Returns
        -------
        Plan
            The plan with the decisions of the run.
        list of str
            Messages for the user.
        list of Repetition
            The repetitions of the run.

        Raises
        ------
        UserError
            Cases, ranks or software are not those of the run.
        """
        record = self.record
        plan = without_left_out(plan, record)
        refuse_other_cases(str(self.directory), record, plan)
        if differences := list(_differences(record, records)):
            told = "; ".join(differences)
            raise UserError(f"--resume {self.directory}: not the same run: {told}")
        now = replace(next(iter(records.values())), scratch=str(self.options.scratch))
        if not self.options.batch:
            refuse_other_hosts(str(self.directory), record, now.topology.hosts)
        said = go_on(record, now, moved(record, now.topology.hosts), self.options)
        if not (self.directory / FILE).exists():
            return plan, said, []
        cut_torn(self.directory)
        return plan, said, read_repetitions(self.directory)


def stopped_run(options: RunOptions, lock: RunLock) -> StoppedRun:
    """Read the run to resume, and take its results directory; the steps there are begun anew.

    Parameters
    ----------
    options : RunOptions
        Options of the command line.
    lock : RunLock
        Acquired on the directory.

    Raises
    ------
    UserError
        It cannot be resumed: it is finished or was changed, or is still running.
    """
    here = f"--resume {options.resume}"
    if options.experiment or options.overrides:
        raise UserError("--resume goes on with the experiment of the run; it takes no other")
    if options.stage is not None:
        raise UserError(f"{here}: --stage: steps of a run of several environments have no stages")
    directory = Path(str(options.resume)).absolute()
    try:
        check_unfinished(str(options.resume), RunRecord.load(directory))
        lock.take(directory, here)
        record = RunRecord.load(directory)
    except ValueError as error:
        raise UserError(f"--resume {error}") from None
    if record.experiment_digest != digest_of(record.experiment):
        raise UserError(f"{here}: not the same run: the experiment in run.json was changed")
    used = dataclasses.replace(options, scratch=options.scratch or record.scratch)
    with readable(directory):
        loaded = from_data(record.experiment, f"{directory}/run.json")
        refuse_commands(loaded.experiment, here, trust=options.trust)
    steps = directory / STEPS
    try:
        make_own_directory(steps)
        _check_steps(steps, here, str(used.scratch))
        # For the ranks that check it.
        make_own_directory(steps)
        used = dataclasses.replace(used, experiment=str(steps / "experiment.yaml"))
        write_replacing(str(used.experiment), json.dumps(record.experiment))
    except OSError as error:
        raise UserError(f"{here}: {steps}: {error.strerror}") from None
    return StoppedRun(directory, record, loaded, used)


def _check_steps(steps: Path, here: str, parent: str) -> None:
    """Remove the files that the steps of a killed run have left.

    Raises
    ------
    UserError
        Their ranks still run, or the directory is not as pffbench makes it.
    """
    for path in sorted(steps.rglob("*")):  # which follows no links
        if path.is_symlink():
            raise UserError(f"{here}: {path} is a symbolic link, which pffbench makes none of")
    for path in sorted(steps.glob("*/run")):
        RunLock().take(path, f"{here}: a step of environment {path.parent.name}")
        with suppress(ValueError):
            remove_scratch_of(RunRecord.load(path), parent, {"ended"})
    shutil.rmtree(steps, ignore_errors=True)


def _differences(record: RunRecord, records: Mapping[str, RunRecord]) -> Iterator[str]:
    for name, now in records.items():
        if record.ranks != now.ranks:
            yield f"{name} had {record.ranks} ranks, now there are {now.ranks}"
        yield from changed_environment(record, name, now.provenance)


def changed_environment(
    record: RunRecord, name: str, provenance: Mapping[str, Any]
) -> Iterator[str]:
    """Yield in what an environment is another one than when the run began.

    Parameters
    ----------
    record : RunRecord
        Record of the run.
    name : str
        Name of the environment.
    provenance : dict
        Its provenance now.
    """
    known = record.environments[name]["provenance"]
    before, now = (replace(record, provenance=p) for p in (known, provenance))
    yield from (f"{name}: {text}" for text in changed_software(before, now))
    yield from changed_inputs(known, provenance)
