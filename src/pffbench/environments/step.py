"""A job step: the ranks of one environment run the cases of one block, as a run of their own."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from pffbench.case import Case
from pffbench.environments.start import StartedEnvironment, last_line
from pffbench.errors import NOT_VALID, VALID, UserError
from pffbench.experiment.load import to_plain
from pffbench.experiment.schema import Experiment
from pffbench.record.counters import Counted, read_counts
from pffbench.record.ranks import RecordedTimes, read_ranks
from pffbench.record.run_json import RunRecord
from pffbench.record.samples import Sample, read_samples, whole
from pffbench.run.options import RunOptions
from pffbench.storage.scratch import Scratch

#: Seconds between two looks at a step that runs, and that it gets to end when it must.
_LOOK, _GRACE = 0.05, 10.0


class StepResult(msgspec.Struct, frozen=True):
    """What a job step has recorded.

    Parameters
    ----------
    record : RunRecord or None
        Its `run.json`; None if it ended before it had one.
    samples : dict of str to list of Sample
        Rows of its completed repetitions, warm-ups first, by case.
    ranks : dict of str to dict of int to RecordedTimes
        Times of all ranks, by case and repetition.
    counts : list of Counted
        Its counters.
    trouble : str
        How it ended, if not as a run ends; else empty.
    """

    record: RunRecord | None
    samples: Mapping[str, Sequence[Sample]]
    ranks: Mapping[str, Mapping[int, RecordedTimes]]
    counts: Sequence[Counted]
    trouble: str


def step_experiment(experiment: Experiment, cases: Sequence[Case], block: int) -> dict[str, Any]:
    """Return the experiment of a job step as plain data: these cases, a few times each.

    Each block has data of its own, the same in all environments.

    Parameters
    ----------
    experiment : Experiment
        The experiment of the run.
    cases : sequence of Case
        The cases, in their order.
    block : int
        Number of the block.
    """
    told, often = to_plain(experiment), experiment.step_repetitions
    return {
        **{key: value for key, value in told.items() if key not in _OWN_KEYS},
        "seed": (experiment.seed + block * (experiment.warmup + often)) % 2**63,
        "repetitions": often,
        "roofline": False,  # raw transfers are among the cases
        "order": "listed",
        "cases": [_entry(case) for case in cases],
    }


#: Keys of an experiment that a step has no use for; extra cold reads are cases like others there.
_OWN_KEYS = frozenset(
    {
        "environments", "step_repetitions", "launcher", "common", "time_budget", "cold_reads",
        "study",
    }
)  # fmt: skip


def _entry(case: Case) -> dict[str, Any]:
    """Return a case as an entry of an experiment."""
    parameters = msgspec.to_builtins(case.parameters, enc_hook=int)
    options = msgspec.to_builtins(case.options, enc_hook=int)
    return as_entry({"workload": case.parameters.workload, **parameters}, options)


def as_entry(parameters: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return plain parameters and options as an entry of an experiment; no list is swept."""
    own = _values(options)
    return _values(parameters) | ({parameters["backend"]: own} if own else {})


def _values(told: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: [value] if isinstance(value, list) else value
        for key, value in told.items()
        if value is not None
    }


def arguments_of(options: RunOptions) -> list[str]:
    """Return the arguments of `pffbench run` that steps and probes take over from the run."""
    given: list[str] = []
    if options.scratch is not None:
        given += ["--scratch", options.scratch]
    if options.hang_timeout is not None:
        limit = options.hang_timeout
        given += ["--hang-timeout", f"{limit:g} s" if math.isfinite(limit) else "none"]
    if options.drop_hook is not None:
        given += ["--drop-hook", options.drop_hook]
    return given + ["--record-account"] * options.record_account


class JobStep:
    """Starts the ranks of an environment for a block, and reads what they recorded.

    Parameters
    ----------
    launcher : sequence of str
        Command that starts the ranks.
    options : RunOptions
        Options of the run.
    directory : Path
        Directory for the files of a step, which are removed with it.
    """

    def __init__(self, launcher: Sequence[str], options: RunOptions, directory: Path) -> None:
        self._launcher = launcher
        self._options = options
        self._directory = directory

    def run(
        self,
        environment: StartedEnvironment,
        experiment: dict[str, Any],
        keep_going: Callable[[], None],
    ) -> StepResult:
        """Run a step to its end.

        Parameters
        ----------
        environment : StartedEnvironment
            The environment.
        experiment : dict
            Experiment of the step.
        keep_going : callable
            Called while it runs; raises to end it.
        """
        work = self._directory / environment.name
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        file, out = work / "experiment.yaml", work / "run"
        file.write_text(json.dumps(experiment), encoding="utf-8")
        command = [
            *self._launcher, *environment.command, "-m", "pffbench", "run", str(file),
            "--out", str(out), "--progress", "none", "--max-time", "none",
            *arguments_of(self._options),
        ]  # fmt: skip
        status, errors = _run(command, environment, work, keep_going)
        try:
            return _result(out, status, errors)
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def remove(self) -> None:
        """Remove the directory of the steps."""
        shutil.rmtree(self._directory, ignore_errors=True)


def _run(
    command: Sequence[str],
    environment: StartedEnvironment,
    work: Path,
    keep_going: Callable[[], None],
) -> tuple[int, str]:
    """Run a command; return its exit status and its errors."""
    errors = work / "errors.txt"
    with errors.open("wb") as sink:
        # A session of its own: Ctrl-C ends the run after this step, and not in the midst of it.
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env=environment.process_environment,
            start_new_session=True,
        )
        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_LOOK)
                    break
                keep_going()
        except BaseException:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE)
            process.kill()
            process.wait()
            raise
    return process.returncode, errors.read_text(encoding="utf-8", errors="replace")


def _result(out: Path, status: int, errors: str) -> StepResult:
    """Read the results directory of a step that has ended."""
    trouble = ""
    if status not in (VALID, NOT_VALID):
        what = f"signal {-status}" if status < 0 else f"status {status}"
        trouble = f"the job step ended with {what}: {last_line(errors)}"
    try:
        record = RunRecord.load(out)
        samples = read_samples(out / "samples.csv")
        complete = whole(samples, record.last_written).finished
        if trouble:
            _remove_scratch(record)
        rows = [sample for sample in samples if (sample.case, sample.repetition) in complete]
        ranks = dict(read_ranks(out / "ranks.h5", record.cases))
        by_case = {case: [s for s in rows if s.case == case] for case in record.cases}
        return StepResult(record, by_case, ranks, read_counts(out), trouble)
    except (OSError, ValueError) as error:
        told = trouble or f"the job step left no results: {error}; {last_line(errors)}"
        return StepResult(None, {}, {}, [], told)


def _remove_scratch(record: RunRecord) -> None:
    """Remove the files of a step that died."""
    with suppress(OSError, UserError):
        Scratch.attach(record.scratch, record.run_id).destroy()
