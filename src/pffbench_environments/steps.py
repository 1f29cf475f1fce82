"""Job steps: the ranks of each environment run the cases of a round, as a run of their own."""

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
from pffbench.errors import NOT_VALID, VALID, UserError
from pffbench.experiment.load import to_plain
from pffbench.experiment.schema import Experiment
from pffbench.grouping import grouped
from pffbench.record.lock import NAME as LOCK
from pffbench.record.ranks import RecordedTimes
from pffbench.record.ranks_reader import read_ranks
from pffbench.record.repetitions import Repetition
from pffbench.record.run import MeasuredRun
from pffbench.record.run_json import RunRecord, readable
from pffbench.run.order import williams_square
from pffbench.run.turns import ASKS
from pffbench.storage.ownership import leftover_at
from pffbench.storage.scratch import Scratch, scratch_parent
from pffbench.text import one_line
from pffbench_environments.processes import Processes, last_line
from pffbench_environments.start import START_SECONDS, Launch, StartedEnvironment

#: Seconds that ranks get to leave when all is recorded, or when the run is to end.
_LEAVING = 30.0
#: Steps that a repetition has at most; each may take as long as the ranks' watchdog lets it.
_MOST_STEPS = 32
#: A request for a turn: repetition, seconds that a step of it may take, case.
_ASKED = re.compile(r"([0-9]{1,9}) ([0-9.]{1,20}|inf) (\S+)")


#: An environment and the cases that it is to run.
EnvironmentCases = tuple[StartedEnvironment, Sequence[Case]]


class StepResult(msgspec.Struct, frozen=True):
    """Record of a job step."""

    #: Its `run.json`; None if it ended before it had one.
    record: RunRecord | None
    #: Its repetitions, warm-ups first, by case.
    repetitions: Mapping[str, Sequence[Repetition]]
    #: Times of all ranks, by case and repetition.
    ranks: Mapping[str, Mapping[int, RecordedTimes]]
    #: How it ended, if not as a run ends; else empty.
    trouble: str

    def numbers(self, case: Case) -> set[int]:
        """Return the repetitions of a case that it has completed."""
        return {one.round for one in self.repetitions.get(case.id, ())}


def step_experiment(experiment: Experiment, cases: Sequence[Case], number: int) -> dict[str, Any]:
    """Return the experiment of a job step as plain data: these cases, a few times each.

    Each round has data of its own, the same in all environments.

    Parameters
    ----------
    experiment : Experiment
        The experiment of the run.
    cases : sequence of Case
        The cases, in their order.
    number : int
        Number of the round.
    """
    told, often = to_plain(experiment), experiment.step_repetitions
    return {
        **{key: value for key, value in told.items() if key not in _OWN_KEYS},
        "seed": (experiment.seed + number * (experiment.warmup + often)) % 2**63,
        "repetitions": often,
        "roofline": False,  # raw transfers are among the cases
        "cases": [_entry(case) for case in cases],
    }


#: Keys of an experiment that a step has no use for; extra cold reads are cases like others there.
_OWN_KEYS = frozenset(
    {
        "environments", "starts", "step_repetitions", "launcher", "common", "time_budget",
        "cold_reads", "study",
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


def same_case(name: str) -> str:
    """Return the name of a case without that of its environment."""
    return name.partition("@")[0]


class Ranks(Processes):
    """The ranks of an environment in a round: they wait for a turn, run, or have ended.

    Parameters
    ----------
    launch : Launch
        How they are started, and how long they may take to leave.
    environment : StartedEnvironment
        Their environment.
    arguments : sequence of str
        Arguments of its Python.
    out : Path
        Their results directory.
    cases : collection of str
        The cases that they ask to run.
    """

    def __init__(
        self,
        launch: Launch,
        environment: StartedEnvironment,
        arguments: Sequence[str],
        out: Path,
        cases: Collection[str],
    ) -> None:
        super().__init__(
            launch.command(environment, *arguments),
            environment.process_environment,
            mark=ASKS,
            take=self._take_request,
            listens=True,
        )
        self._launch, self._out, self._cases = launch, out, cases
        #: Repetitions and cases that they have asked for.
        self._had: set[tuple[int, str]] = set()
        #: Why they were ended, or are to be.
        self._trouble = ""
        #: Repetition and case that they ask to run.
        self.asks: tuple[int, str] | None = None
        self._recorded, self._next_look = False, 0.0
        #: Seconds that a step of it may take, by their own watchdog.
        self._patience = math.inf

    def _take_request(self, asked: str) -> None:
        """Take a request for a turn; a wrong one is the end of these ranks."""
        told = _ASKED.fullmatch(asked.strip())
        wanted = (int(told[1]), same_case(told[3])) if told else (0, "")
        if told is None or wanted[1] not in self._cases or wanted in self._had:
            self._trouble = f"its ranks asked for a turn that is none: {one_line(asked, 100)!r}"
            return
        self._had.add(wanted)
        self._patience = float(told[2])
        self.asks = wanted

    def asks_later(self, asked: tuple[int, str]) -> bool:
        """Return whether they are yet to ask for a repetition of a case."""
        return asked[1] in self._cases and asked not in self._had

    def wait_for_turn(
        self, seconds: float, what: str, until: Callable[[], bool] | None = None
    ) -> None:
        """Wait until they ask for a turn or have ended; end them when that takes too long.

        Parameters
        ----------
        seconds : float
            Longest time to wait.
        what : str
            What they did not do in time, for the message.
        until : callable, optional
            Whether the wait is not worth it any more; when not given, whether the run is to end.
        """
        over = until or self._launch.is_stopped
        there = self.wait(
            seconds,
            lambda: self.asks is not None or bool(self._trouble) or over(),
            self._launch.keep_going,
        )
        if not there:
            self._trouble = f"its ranks did not {what} within {seconds:g} s"
        if self._trouble:
            self.asks = None
            self.end()

    def go(self) -> None:
        """Let them run the repetition they ask for, and wait until they ask again or have ended.

        Their own watchdog ends a step that hangs. This is for what it cannot see, such as a
        launcher that is stopped.
        """
        self.asks = None
        self.write(b"\n")
        seconds = _MOST_STEPS * self._patience + self._launch.limit
        # After the last repetition they do not ask again: `leave` sees to their end.
        self.wait_for_turn(seconds, "end a repetition", self._has_recorded)

    def _has_recorded(self) -> bool:
        """Return whether their run is recorded as a whole; asked once a second."""
        if time.monotonic() > self._next_look:
            self._next_look = time.monotonic() + 1.0
            released = not (self._out / LOCK).exists()
            self._recorded = released and (self._out / "run.json").exists()
        return self._recorded

    def leave(self) -> tuple[int, str]:
        """Give them no further turn; return the exit status and its explanation.

        Everything is recorded when they have released their results directory: a library that
        does not let them leave MPI or Python has no long time then, nor has a run that is to end.
        """
        self.asks = None
        self.close_input()
        limit = self._launch.limit
        left = self.wait(limit, lambda: self._launch.is_stopped() or self._has_recorded())
        left = left and self.wait(min(limit, _LEAVING))
        if not left and not self._trouble:
            self._trouble = "its ranks did not end"
        status = self.end()
        return status, self._trouble or last_line(self.text)


class JobSteps:
    """Starts the ranks of all environments for a round, and reads their records.

    Parameters
    ----------
    launch : Launch
        How they are started.
    experiment : Experiment
        The experiment of the run.
    """

    def __init__(self, launch: Launch, experiment: Experiment) -> None:
        self._launch, self._experiment = launch, experiment

    def run(
        self, wanted: Sequence[EnvironmentCases], order: Sequence[str], number: int
    ) -> dict[str, StepResult]:
        """Run the steps of a round.

        They take turns, repetition by repetition: what changes on the machine meets all of them.
        Flux starts no step while another one has its cores, so that they run one after another.

        Parameters
        ----------
        wanted : sequence of (StartedEnvironment, sequence of Case)
            The environments that take part, each with its cases.
        order : sequence of str
            Cases of all of them without their environments, in their order.
        number : int
            Number of the round.
        """
        launcher = self._launch.launcher
        together = not launcher or Path(launcher[0]).name != "flux"
        results: dict[str, StepResult] = {}
        for some in [wanted] if together else [[one] for one in wanted]:
            results |= self._run_together(some, order, number)
        return results

    def _out(self, name: str) -> Path:
        """Return the results directory of the ranks of an environment."""
        return self._launch.directory / name / "run"

    def _end(self, there: Mapping[str, Ranks]) -> None:
        """End ranks that have not ended, and remove their files."""
        for ranks in there.values():
            ranks.end()
        parent, _ = scratch_parent(self._launch.options.scratch)
        for name in there:
            with suppress(ValueError):
                record = RunRecord.load(self._out(name))
                remove_scratch_of(record, parent, {"ended", "unknown"})
        shutil.rmtree(self._launch.directory, ignore_errors=True)

    def _run_together(
        self, wanted: Sequence[EnvironmentCases], order: Sequence[str], number: int
    ) -> dict[str, StepResult]:
        there: dict[str, Ranks] = {}
        try:
            # Who starts first differs from round to round: it may take the better core or memory.
            for place in turn_order(len(wanted), number):
                if self._launch.is_stopped():
                    break
                environment, cases = wanted[place]
                there[environment.name] = ranks = self._start(environment, cases, number)
                ranks.wait_for_turn(START_SECONDS, "start")
            self._take_turns(list(there.values()), order)
            return {name: _result(self._out(name), *ranks.leave()) for name, ranks in there.items()}
        finally:
            self._end(there)

    def _start(
        self,
        environment: StartedEnvironment,
        cases: Sequence[Case],
        number: int,
    ) -> Ranks:
        out = self._out(environment.name)
        out.parent.mkdir(parents=True)
        file = out.parent / "experiment.yaml"
        told = step_experiment(self._experiment, cases, number)
        file.write_text(json.dumps(told), encoding="utf-8")
        arguments = [
            "-P",
            "-m",
            "pffbench_environments.ranks",
            *self._launch.arguments(environment),
        ]
        arguments += ["--out", str(out), "--max-time", "none", str(file)]
        own = {same_case(case.id) for case in cases}
        return Ranks(self._launch, environment, arguments, out, own)

    def _take_turns(self, there: Sequence[Ranks], order: Sequence[str]) -> None:
        """Let the ranks run their repetitions; those of a case in turn, before the next one."""
        places = {case: place for place, case in enumerate(order)}
        while waiting := [ranks.asks for ranks in there if ranks.asks is not None]:
            # One that lacks a case, or in which it failed, asks for another one.
            number, case = next_ = min(
                waiting,
                key=lambda asked: (
                    any(ranks.asks_later(asked) for ranks in there),
                    asked[0],
                    places[asked[1]],
                ),
            )
            for place in turn_order(len(there), number + places[case]):
                if self._launch.is_stopped():
                    return
                if there[place].asks == next_:
                    there[place].go()


def turn_order(count: int, number: int) -> Sequence[int]:
    """Return the order of environments in a turn: each comes after each other one equally often."""
    square = williams_square(count)
    return square[number % len(square)]


def _result(out: Path, status: int, why: str) -> StepResult:
    """Read the results directory of a step that has ended, with a status and its explanation."""
    trouble = ""
    if "its ranks " in why:
        trouble = f"the job step was ended: {why}"
    elif status not in (VALID, NOT_VALID):
        what = f"signal {-status}" if status < 0 else f"status {status}"
        trouble = f"the job step ended with {what}: {why}"
    try:
        with readable(out):
            run = MeasuredRun.load(out)
            by_case = grouped((one.case, one) for one in run.repetitions)
            ranks = read_ranks(out / "ranks.h5", by_case)
            return StepResult(run.record, by_case, ranks, trouble)
    except (OSError, ValueError, UserError) as error:
        told = trouble or f"the job step left no results: {error}; {why}"
        return StepResult(None, {}, {}, told)


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
