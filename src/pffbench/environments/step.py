"""Job steps: the ranks of each environment run the cases of a block, as a run of their own."""

from __future__ import annotations

import json
import math
import os
import select
import shutil
import subprocess
import time
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
from pffbench.parallel.batch_job import StopSignals
from pffbench.record.counters import Counted, read_counts
from pffbench.record.ranks import RecordedTimes, read_ranks
from pffbench.record.run_json import RunRecord
from pffbench.record.samples import Sample, read_samples, whole
from pffbench.run.options import RunOptions
from pffbench.run.order import williams_square
from pffbench.run.turns import ASKS
from pffbench.storage.scratch import Scratch

#: Seconds between two looks at a step that runs, and that it gets to end when it must.
_LOOK, _GRACE = 0.05, 10.0
#: Seconds that the ranks of an environment may take to start and to check the experiment.
START_SECONDS = 600.0
#: Seconds that they may take to start and to find the numbers of all cases.
_CALIBRATION_SECONDS = 6 * START_SECONDS


class StepResult(msgspec.Struct, frozen=True):
    """Record of a job step.

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
        "study", "cross_reads",
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


class _Ranks:
    """The ranks of an environment in a block: they wait for a turn, run, or have ended."""

    def __init__(self, command: Sequence[str], environment: StartedEnvironment, work: Path) -> None:
        self._errors = work / "errors.txt"
        with self._errors.open("wb") as errors:
            # A session of its own: Ctrl-C ends the run, and not these ranks in a repetition.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment.process_environment,
                start_new_session=True,
                bufsize=0,
            )
        self._said = ""
        #: Repetition and case that they ask to run.
        self.asks: tuple[int, str] | None = None

    def wait(self, keep_going: Callable[[], None], seconds: float = math.inf) -> None:
        """Wait until they ask for a turn or have ended; end them when that takes too long."""
        assert self._process.stdout is not None
        output, until = self._process.stdout.fileno(), time.monotonic() + seconds
        while self.asks is None:
            ready, _, _ = select.select([output], [], [], _LOOK)
            keep_going()
            # A process that they left behind may keep their output open.
            ended = not ready and self._process.poll() is not None
            if ended or (ready and not self._hear(os.read(output, 65536))):
                return
            if time.monotonic() > until:
                self._kill()
                self._said += f"\npffbench: its ranks did not start within {seconds:g} s\n"
                return

    def _hear(self, text: bytes) -> bool:
        """Take output; return whether there was any, and not its end."""
        self._said += text.decode(errors="replace")
        done, _, rest = self._said.rpartition("\n")
        for line in done.splitlines():
            _, mark, asked = line.partition(ASKS)
            if mark:
                number, _, case = asked.partition(" ")
                self.asks = int(number), case.strip()
                self._said = rest
        return bool(text)

    def go(self, keep_going: Callable[[], None]) -> None:
        """Let them run the repetition they ask for, and wait until they ask again or have ended."""
        self.asks = None
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(b"\n")
        self.wait(keep_going)

    def leave(self) -> tuple[int, str]:
        """Give them no further turn; return the exit status and its explanation."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self.asks = None
        self.wait(lambda: None)
        status = self._process.wait()
        errors = self._errors.read_text(encoding="utf-8", errors="replace")
        return status, f"{self._said}\n{errors}"

    def _kill(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_GRACE)
            self._process.kill()
            self._process.wait()

    def end(self) -> None:
        """End them at once, if they have not ended."""
        self._kill()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


class JobSteps:
    """Starts the ranks of all environments for a block, and reads their records.

    Parameters
    ----------
    launcher : sequence of str
        Command that starts the ranks.
    options : RunOptions
        Options of the run.
    directory : Path
        Directory for the files of the steps, which are removed with them.
    stop : StopSignals
        Tells that the run is to end.
    keep_going : callable
        Called while they run; raises to end them.
    """

    def __init__(
        self,
        launcher: Sequence[str],
        options: RunOptions,
        directory: Path,
        stop: StopSignals,
        keep_going: Callable[[], None],
    ) -> None:
        self._launcher = launcher
        self._options = options
        self._directory = directory
        self._stop = stop
        self._keep_going = keep_going

    def run(
        self,
        environments: Sequence[StartedEnvironment],
        experiments: Mapping[str, dict[str, Any]],
        cases: Sequence[str],
        block: int,
    ) -> dict[str, StepResult]:
        """Run the steps of a block.

        They take turns, repetition by repetition: what changes on the machine meets all of them.
        Flux starts no step while another one has its cores, so that they run one after another.

        Parameters
        ----------
        environments : sequence of StartedEnvironment
            Those that take part.
        experiments : dict of str to dict
            Experiment of the step of each environment.
        cases : sequence of str
            Cases of all of them, in their order.
        block : int
            Number of the block.
        """
        together = not self._launcher or Path(self._launcher[0]).name != "flux"
        results: dict[str, StepResult] = {}
        for some in [environments] if together else [[e] for e in environments]:
            results |= self._run_together(some, experiments, cases, block)
        return results

    def calibrate(
        self, environment: StartedEnvironment, experiment: dict[str, Any]
    ) -> RunRecord | None:
        """Let the ranks of an environment find the numbers that an experiment leaves open.

        They run no repetition that counts.

        Returns
        -------
        RunRecord or None
            Their record; None where they died before they had one.
        """
        ranks = None
        try:
            ranks = self._start(environment, experiment)
            ranks.wait(self._keep_going, _CALIBRATION_SECONDS)
            ranks.leave()
            return RunRecord.load(self._directory / environment.name / "run")
        except ValueError:
            return None
        finally:
            if ranks is not None:
                ranks.end()
            self.remove()

    def _run_together(
        self,
        environments: Sequence[StartedEnvironment],
        experiments: Mapping[str, dict[str, Any]],
        cases: Sequence[str],
        block: int,
    ) -> dict[str, StepResult]:
        there: dict[str, _Ranks] = {}
        try:
            # Who starts first differs from block to block: it may take the better core or memory.
            for place in turn_order(len(environments), block):
                if self._stop.asked:
                    break
                environment = environments[place]
                ranks = self._start(environment, experiments[environment.name])
                there[environment.name] = ranks
                ranks.wait(self._keep_going, START_SECONDS)
            self._take_turns(list(there.values()), cases)
            return {
                name: _result(self._directory / name / "run", *ranks.leave())
                for name, ranks in there.items()
            }
        finally:
            for ranks in there.values():
                ranks.end()
            self.remove()

    def _start(self, environment: StartedEnvironment, experiment: dict[str, Any]) -> _Ranks:
        work = self._directory / environment.name
        work.mkdir(parents=True)
        file = work / "experiment.yaml"
        file.write_text(json.dumps(experiment), encoding="utf-8")
        command = [
            *self._launcher, *environment.command, "-m", "pffbench", "run", str(file),
            "--out", str(work / "run"), "--in-turns", "--progress", "none", "--max-time", "none",
            *arguments_of(self._options),
        ]  # fmt: skip
        return _Ranks(command, environment, work)

    def _take_turns(self, there: Sequence[_Ranks], cases: Sequence[str]) -> None:
        """Let the ranks run their repetitions; those of a case in turn, before the next one."""
        places = {case: place for place, case in enumerate(cases)}
        while waiting := [ranks.asks for ranks in there if ranks.asks is not None]:
            # One that lacks a case, or in which it failed, is ahead of the others.
            number, case = next_ = min(waiting, key=lambda asked: (asked[0], places[asked[1]]))
            for place in turn_order(len(there), number + places[case]):
                if self._stop.asked:
                    return
                if there[place].asks == next_:
                    there[place].go(self._keep_going)

    def remove(self) -> None:
        """Remove the directory of the steps."""
        shutil.rmtree(self._directory, ignore_errors=True)


def turn_order(count: int, number: int) -> Sequence[int]:
    """Return the order of environments in a turn: each comes after each other one equally often."""
    square = williams_square(count)
    return square[number % len(square)]


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
