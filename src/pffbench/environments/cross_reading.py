"""Who reads whose files: each environment reads the files of all, once and unmeasured."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import convert
from msgspec.structs import asdict, replace

from pffbench.backends.registry import backend_class
from pffbench.case import Case
from pffbench.environments.processes import last_line, run_bounded
from pffbench.environments.start import ANSWER, StartedEnvironment
from pffbench.environments.step import START_SECONDS, step_experiment
from pffbench.errors import UserError
from pffbench.experiment.plan import Plan
from pffbench.parallel.batch_job import StopSignals
from pffbench.record.cross_reads import CrossRead
from pffbench.record.run_json import RunRecord
from pffbench.run.options import RunOptions
from pffbench.storage.scratch import Scratch
from pffbench.text import one_line
from pffbench.workloads.registry import workload

#: A case, the directory of its files, and the directory that they are copied from.
_Piece = tuple[str, str, str]


class CrossReading:
    """The pass in which environments read each other's files.

    Parameters
    ----------
    plan : Plan
        The cases of all environments.
    environments : sequence of StartedEnvironment
        The environments.
    launcher : sequence of str
        Command that starts the ranks.
    options : RunOptions
        Options of the run.
    directory : Path
        Directory for the files that list the work of the ranks.
    stop : StopSignals
        Tells that the run is to end.
    keep_going : callable
        Called while ranks work.
    """

    def __init__(
        self,
        plan: Plan,
        environments: Sequence[StartedEnvironment],
        launcher: Sequence[str],
        options: RunOptions,
        directory: Path,
        stop: StopSignals,
        keep_going: Callable[[], None],
    ) -> None:
        self._keep_going = keep_going
        self._plan = plan
        self._environments = environments
        self._launcher = launcher
        self._directory = directory
        self._stop = stop
        limit = options.hang_timeout
        #: Seconds for a start, and for each piece of work.
        self._seconds = START_SECONDS if limit is None else limit
        #: Name of the first case of the run, by the name of the case that is written and read.
        self._cases: dict[str, str] = {}
        #: The cases of each environment that are written and read, by their names.
        self._own: dict[str, dict[str, Case]] = {e.name: {} for e in environments}
        for case in plan.cases:
            if (other := _for_another_job(case, plan.ranks)) is not None:
                self._cases.setdefault(other.id, replace(case, environment="").id)
                self._own[case.environment][other.id] = other
        self._scratch: Scratch | None = None

    def run(self, record: RunRecord) -> bool:
        """Write and read everything and record who could; return whether nothing stopped it.

        Parameters
        ----------
        record : RunRecord
            Receives the results.
        """
        try:
            self._scratch = Scratch.take_over(record.scratch, record.run_id, create_parent=True)
        except UserError as error:
            record.remarks.append(f"environments did not read each other's files: {error}")
            return True
        self._directory.mkdir(parents=True, exist_ok=True)
        try:
            written = {e.name: self._written(e) for e in self._environments}
            found = [one for e in self._environments for one in self._read(e, written)]
        finally:
            with suppress(OSError, UserError):
                self._scratch.destroy()
            shutil.rmtree(self._directory, ignore_errors=True)
        if self._stop.asked:
            return False
        record.cross_reads = [asdict(one) for one in found]
        return True

    def _written(self, environment: StartedEnvironment) -> dict[str, str]:
        """Let an environment write its files; return, by case, why it could not, or nothing."""
        own = self._own[environment.name]
        work = [(name, _place(place, environment.name), "") for place, name in self._places(own)]
        told = self._asked(environment, "write", work)
        return {name: told.get(directory, "") for name, directory, _ in work}

    def _read(
        self, environment: StartedEnvironment, written: Mapping[str, Mapping[str, str]]
    ) -> Iterator[CrossRead]:
        """Let an environment read the files of each; yield the outcomes."""
        own, reader = self._own[environment.name], environment.name
        work = [
            (name, f"{_place(place, writer)}-by-{reader}", _place(place, writer))
            for place, name in self._places(own)
            for writer, troubles in written.items()
            if troubles.get(name) == ""
        ]
        told = self._asked(environment, "read", work)
        for place, name in self._places(self._cases):
            for writer, troubles in written.items():
                if lacking := [each for each in (reader, writer) if name not in self._own[each]]:
                    result, why = "LEFT_OUT", self._why_not(name, lacking[0])
                elif trouble := troubles[name]:
                    result, why = "FAILED", f"not written: {trouble}"
                else:
                    why = told.get(f"{_place(place, writer)}-by-{reader}", "it was not read")
                    result = "FAILED" if why else "VALID"
                yield self._outcome(name, writer, reader, result, why)

    def _places(self, names: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
        """Yield the number and the name of cases."""
        return ((place, name) for place, name in enumerate(self._cases) if name in names)

    def _outcome(
        self, name: str, writer: str, reader: str, result: str, error: str
    ) -> CrossRead:
        backend = next(own[name] for own in self._own.values() if name in own).parameters.backend
        told = {"case": self._cases[name], "backend": backend, "writer": writer, "reader": reader}
        return convert({**told, "result": result, "error": error}, CrossRead)

    def _why_not(self, name: str, environment: str) -> str:
        """Return why an environment has no such case."""
        wanted = f"{self._cases[name]}@{environment}"
        why = next((reason for left, reason in self._plan.left_out if left == wanted), "")
        return f"impossible with {environment}: {why}" if why else f"not a case of {environment}"

    def _asked(
        self, environment: StartedEnvironment, stage: str, work: Sequence[_Piece]
    ) -> dict[str, str]:
        """Let the ranks of an environment do work; return, by directory, why it failed.

        A crash is the failure of the piece of work at hand; ranks that are started anew do the
        rest.
        """
        told: dict[str, str] = {}
        while (left := [piece for piece in work if piece[1] not in told]) and not self._stop.asked:
            answers, end = self._started(environment, stage, left)
            told |= answers
            if unanswered := [piece for piece in left if piece[1] not in answers]:
                told[unanswered[0][1]] = end
        return told

    def _started(
        self, environment: StartedEnvironment, stage: str, work: Sequence[_Piece]
    ) -> tuple[dict[str, str], str]:
        """Start ranks once; return their answers and how they ended."""
        assert self._scratch is not None
        own = self._own[environment.name]
        cases = [own[name] for name in dict.fromkeys(name for name, _, _ in work)]
        job = {
            "experiment": step_experiment(self._plan.experiment, cases, 0),
            "scratch": self._scratch.directory,
            "run_id": self._scratch.run_id,
            "stage": stage,
            "work": work,
        }
        file = self._directory / f"{environment.name}.json"
        file.write_text(json.dumps(job), encoding="utf-8")
        for _, directory, _ in work:  # of ranks that crashed
            with suppress(OSError, UserError):
                self._scratch.remove(self._scratch.path(directory), missing_ok=True)
        module = "pffbench.environments.cross_read_ranks"
        seconds = self._seconds * (1 + len(work))
        command = [*self._launcher, *environment.command, "-P", "-m", module, str(file)]
        done = run_bounded(
            command, environment.process_environment, seconds, self._keep_going, ANSWER
        )
        end = f"no end within {seconds:g} s"
        if done.status is not None:
            end = f"the ranks ended with status {done.status}: {last_line(done.text)}"
        answers: dict[str, str] = {}
        for text in done.messages:
            try:
                _, directory, trouble = msgspec.json.decode(text, type=tuple[str, str, str])
            except msgspec.MsgspecError:
                return answers, f"the ranks answered in another way: {one_line(text, 200)}"
            answers[directory] = trouble
        return answers, one_line(end, 400)


def _place(number: int, writer: str) -> str:
    """Return the directory of the files of a case that an environment writes."""
    return f"{number:04d}-{writer}"


def _for_another_job(case: Case, ranks: int) -> Case | None:
    """Return a case as one whose files another job reads; None where there is nothing to read."""
    can = backend_class(case.parameters.backend).capabilities
    if case.roofline or not (can.formatted and can.keeps_data):
        return None
    parameters = replace(case.parameters, cache="separate")
    if workload(parameters.workload).check(parameters, ranks):
        return None
    return Case(parameters, case.options)
