"""Job steps: the ranks of each environment run the cases of a block, as a run of their own."""

from __future__ import annotations

import json
import math
import re
import shutil
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from pffbench.case import Case
from pffbench.environments.processes import Processes, last_line
from pffbench.environments.start import StartedEnvironment
from pffbench.errors import NOT_VALID, VALID, UserError
from pffbench.experiment.load import to_plain
from pffbench.experiment.schema import Experiment
from pffbench.parallel.batch_job import StopSignals
from pffbench.parallel.clock import Floor
from pffbench.record.counters import Counted, read_counts
from pffbench.record.lock import NAME as LOCK
from pffbench.record.ranks import RecordedTimes, read_ranks
from pffbench.record.run_json import RunRecord, readable
from pffbench.record.samples import Sample, read_samples, whole
from pffbench.run.options import RunOptions
from pffbench.run.order import williams_square
from pffbench.run.turns import ASKS
from pffbench.storage.ownership import leftover_at
from pffbench.storage.scratch import Scratch, scratch_parent
from pffbench.text import one_line

#: Seconds that ranks get to leave when all is recorded, or when the run is to end.
_LEAVING = 30.0
#: Steps that a repetition has at most; each may take as long as the ranks' watchdog lets it.
_MOST_STEPS = 32
#: A request for a turn: repetition, seconds that a step of it may take, case.
_ASKED = re.compile(r"([0-9]{1,9}) ([0-9.]{1,20}|inf) (\S+)")
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
    """The ranks of an environment in a block: they wait for a turn, run, or have ended.

    Parameters
    ----------
    command : sequence of str
        Command that starts them.
    environment : StartedEnvironment
        Their environment.
    out : Path
        Their results directory.
    cases : collection of str
        The cases that they may ask to run.
    limit : float
        Seconds that they may take to leave.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: StartedEnvironment,
        out: Path,
        cases: Collection[str],
        limit: float,
    ) -> None:
        self._out, self._cases, self._limit = out, cases, limit
        self._had: set[tuple[int, str]] = set()
        #: Why they were ended, or are to be.
        self._trouble = ""
        #: Repetition and case that they ask to run.
        self.asks: tuple[int, str] | None = None
        self._recorded, self._next_look = False, 0.0
        #: Seconds that a step of it may take, by their own watchdog.
        self._patience = math.inf
        self._processes = Processes(
            command,
            environment.process_environment,
            mark=ASKS,
            take=self._hear,
            listens=True,
        )

    def _hear(self, asked: str) -> None:
        """Take a request for a turn; a wrong one is the end of these ranks."""
        told = _ASKED.fullmatch(asked.strip())
        wanted = (int(told[1]), told[3]) if told else (0, "")
        if told is None or wanted[1] not in self._cases or wanted in self._had:
            self._trouble = f"its ranks asked for a turn that is none: {one_line(asked, 100)!r}"
            return
        self._had.add(wanted)
        self._patience = float(told[2])
        self.asks = wanted

    def wait(
        self,
        keep_going: Callable[[], None],
        seconds: float,
        what: str,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        """Wait until they ask for a turn or have ended; end them when that takes too long.

        Parameters
        ----------
        keep_going : callable
            Called at each look; may raise.
        seconds : float
            Longest time to wait.
        what : str
            What they did not do in time, for the message.
        stop : callable
            Whether the wait is not worth it any more.
        """
        there = self._processes.wait(
            seconds,
            lambda: self.asks is not None or bool(self._trouble) or stop(),
            keep_going,
        )
        if not there:
            self._trouble = f"its ranks did not {what} within {seconds:g} s"
        if self._trouble:
            self.asks = None
            self._processes.end()

    def go(self, keep_going: Callable[[], None]) -> None:
        """Let them run the repetition they ask for, and wait until they ask again or have ended.

        Their own watchdog ends a step that hangs. This is for what it cannot see, such as a
        launcher that is stopped.
        """
        self.asks = None
        self._processes.write(b"\n")
        seconds = _MOST_STEPS * self._patience + self._limit
        # After the last repetition they do not ask again: `leave` sees to their end.
        self.wait(keep_going, seconds, "end a repetition", self._has_recorded)

    def _has_recorded(self) -> bool:
        """Return whether their run is recorded as a whole; asked once a second."""
        if time.monotonic() > self._next_look:
            self._next_look = time.monotonic() + 1.0
            released = not (self._out / LOCK).exists()
            self._recorded = released and (self._out / "run.json").exists()
        return self._recorded

    def leave(self, stop: Callable[[], bool]) -> tuple[int, str]:
        """Give them no further turn; return the exit status and its explanation.

        Everything is recorded when they have released their results directory: a library that
        does not let them leave MPI or Python has no long time then, nor has a run that is to end.

        Parameters
        ----------
        stop : callable
            Whether the run is to end.
        """
        self.asks = None
        self._processes.close_input()
        left = self._processes.wait(
            self._limit,
            lambda: stop() or self._has_recorded(),
            _nothing,
        )
        left = left and self._processes.wait(min(self._limit, _LEAVING), _never, _nothing)
        if not left and not self._trouble:
            self._trouble = "its ranks did not end"
        status = self._processes.end()
        return status, f"{self._processes.text}\n{self._trouble and f'pffbench: {self._trouble}'}"

    def end(self) -> None:
        """End them at once, if they have not ended."""
        self._processes.end()


def _never() -> bool:
    return False


def _nothing() -> None:
    """Do nothing at a look."""


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
        limit = options.hang_timeout
        #: Seconds that ranks may take to leave.
        self._limit = START_SECONDS if limit is None else limit

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
            ranks = self._start(environment, experiment, ())
            ranks.wait(self._keep_going, _CALIBRATION_SECONDS, "find the numbers", self._is_asked)
            ranks.leave(self._is_asked)
            return RunRecord.load(self._directory / environment.name / "run")
        except ValueError:
            return None
        finally:
            self._end({} if ranks is None else {environment.name: ranks})

    def _is_asked(self) -> bool:
        return self._stop.asked

    def _end(self, there: Mapping[str, _Ranks]) -> None:
        """End ranks that have not ended, and remove their files."""
        for ranks in there.values():
            ranks.end()
        parent, _ = scratch_parent(self._options.scratch)
        for name in there:
            with suppress(ValueError):
                record = RunRecord.load(self._directory / name / "run")
                remove_scratch_of(record, parent, {"ended", "unknown"})
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
                ranks = self._start(environment, experiments[environment.name], cases)
                there[environment.name] = ranks
                ranks.wait(self._keep_going, START_SECONDS, "start", self._is_asked)
            self._take_turns(list(there.values()), cases)
            return {
                name: _result(self._directory / name / "run", *ranks.leave(self._is_asked))
                for name, ranks in there.items()
            }
        finally:
            self._end(there)

    def _start(
        self,
        environment: StartedEnvironment,
        experiment: dict[str, Any],
        cases: Collection[str],
    ) -> _Ranks:
        work = self._directory / environment.name
        work.mkdir(parents=True)
        file = work / "experiment.yaml"
        file.write_text(json.dumps(experiment), encoding="utf-8")
        command = [
            *self._launcher, *environment.command, "-m", "pffbench", "run", str(file),
            "--out", str(work / "run"), "--in-turns", "--progress", "none", "--max-time", "none",
            *arguments_of(self._options),
        ]  # fmt: skip
        return _Ranks(command, environment, work / "run", cases, self._limit)

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
    if "its ranks " in last_line(errors):
        trouble = f"the job step was ended: {last_line(errors)}"
    elif status not in (VALID, NOT_VALID):
        what = f"signal {-status}" if status < 0 else f"status {status}"
        trouble = f"the job step ended with {what}: {last_line(errors)}"
    try:
        with readable(out):
            return _recorded(out, trouble)
    except (OSError, ValueError, UserError) as error:
        told = trouble or f"the job step left no results: {error}; {last_line(errors)}"
        return StepResult(None, {}, {}, [], told)


def _recorded(out: Path, trouble: str) -> StepResult:
    record = RunRecord.load(out)
    Floor(**{key: record.floor[key] for key in ("own", "synced", "tick")})
    samples = read_samples(out / "samples.csv")
    complete = whole(samples, record.last_written).finished
    rows = [sample for sample in samples if (sample.case, sample.repetition) in complete]
    ranks = dict(read_ranks(out / "ranks.h5", record.cases))
    by_case = {case: [s for s in rows if s.case == case] for case in record.cases}
    return StepResult(record, by_case, ranks, read_counts(out), trouble)


def remove_scratch_of(record: RunRecord, parent: str, states: Collection[str]) -> None:
    """Remove the files that a step of this run has left, which has ended.

    Only by the rules of `pffbench clean`: its record may name any directory.

    Parameters
    ----------
    record : RunRecord
        Record of the step.
    parent : str
        The directory in which steps of this run create theirs.
    states : collection of str
        What may be known of the process that made them: ``ended``; ``unknown`` too where this
        process has ended it, maybe on another node.
    """
    here = Path(record.scratch)
    if here.parent.resolve() != Path(parent).resolve():
        return
    for left in leftover_at(str(here)):
        is_own = left.run_id == record.run_id and not left.kept_for
        if is_own and left.holder.fate().state in states:
            with suppress(OSError, UserError):
                Scratch.attach(str(here), record.run_id).destroy()
