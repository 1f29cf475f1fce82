"""Who reads whose files: each environment reads the files of all, once and unmeasured."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Literal

import msgspec
from msgspec.structs import asdict, replace

from pffbench.backends.registry import backend_class
from pffbench.case import Case
from pffbench.errors import UserError
from pffbench.experiment.plan import Plan
from pffbench.record.cross_reads import CrossRead
from pffbench.record.run_json import RunRecord
from pffbench.storage.scratch import Scratch
from pffbench.text import one_line
from pffbench.workloads.registry import workload
from pffbench_environments.processes import last_line
from pffbench_environments.start import Launch, StartedEnvironment
from pffbench_environments.steps import same_case, step_experiment

#: A case, the directory of its files, and the directory that they are copied from.
_Piece = tuple[str, str, str]
_NOT_READ = "it was not read"


class CrossReading:
    """The pass in which environments read each other's files.

    Parameters
    ----------
    plan : Plan
        The cases of all environments.
    environments : sequence of StartedEnvironment
        The environments.
    launch : Launch
        How their ranks are started.
    """

    def __init__(
        self, plan: Plan, environments: Sequence[StartedEnvironment], launch: Launch
    ) -> None:
        self._plan = plan
        self._environments = environments
        self._launch = launch
        #: Name of the first case of the run, by the name of the case that is written and read.
        self._cases: dict[str, str] = {}
        #: The cases of each environment that are written and read, by their names.
        self._own: dict[str, dict[str, Case]] = {e.name: {} for e in environments}
        for case in plan.cases:
            if (other := _for_another_job(case, plan.ranks)) is not None:
                self._cases.setdefault(other.id, same_case(case.id))
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
        self._launch.directory.mkdir(parents=True, exist_ok=True)
        try:
            written = {e.name: self._written(e) for e in self._environments}
            found = [one for e in self._environments for one in self._read(e, written)]
        finally:
            with suppress(OSError, UserError):
                self._scratch.destroy()
            shutil.rmtree(self._launch.directory, ignore_errors=True)
        if self._launch.is_stopped():
            return False
        record.cross_reads = [asdict(one) for one in found]
        return True

    def _written(self, environment: StartedEnvironment) -> dict[str, str]:
        """Let an environment write its files; return, by case, why it could not, or nothing."""
        work = [(name, _files(name, environment.name), "") for name in self._own[environment.name]]
        told = self._asked(environment, "write", work)
        return {name: told.get(directory, "") for name, directory, _ in work}

    def _read(
        self, environment: StartedEnvironment, written: Mapping[str, Mapping[str, str]]
    ) -> Iterator[CrossRead]:
        """Let an environment read the files of each; yield the outcomes."""
        own, reader = self._own[environment.name], environment.name
        work = [
            (name, f"{_files(name, writer)}-by-{reader}", _files(name, writer))
            for name in own
            for writer, troubles in written.items()
            if troubles.get(name) == ""
        ]
        told = self._asked(environment, "read", work)
        for name, case in self._cases.items():
            backend = next(o[name] for o in self._own.values() if name in o).parameters.backend
            for writer, troubles in written.items():
                result: Literal["VALID", "FAILED", "LEFT_OUT"] = "FAILED"
                if lacking := [each for each in (reader, writer) if name not in self._own[each]]:
                    result, why = "LEFT_OUT", self._why_not(name, lacking[0])
                elif trouble := troubles[name]:
                    why = f"not written: {trouble}"
                elif not (why := told.get(f"{_files(name, writer)}-by-{reader}", _NOT_READ)):
                    result = "VALID"
                yield CrossRead(case, backend, writer, reader, result, why)

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
        while left := [piece for piece in work if piece[1] not in told]:
            if self._launch.is_stopped():
                break
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
        file = self._launch.directory / f"{environment.name}.json"
        file.write_text(json.dumps(job), encoding="utf-8")
        for _, directory, _ in work:  # of ranks that crashed
            with suppress(OSError, UserError):
                self._scratch.remove(self._scratch.path(directory), missing_ok=True)
        seconds = self._launch.limit * (1 + len(work))
        module = "pffbench_environments.cross_read_ranks"
        done = self._launch.run(environment, module, [str(file)], seconds)
        end = f"no end within {seconds:g} s"
        if done.status is not None:
            end = f"the ranks ended with status {done.status}: {last_line(done.text)}"
        answers: dict[str, str] = {}
        for text in done.messages:
            try:
                directory, trouble = msgspec.json.decode(text, type=tuple[str, str])
            except msgspec.MsgspecError:
                return answers, f"the ranks answered in another way: {one_line(text, 200)}"
            answers[directory] = trouble
        return answers, one_line(end, 400)


def _files(name: str, writer: str) -> str:
    """Return the directory of the files of a case that an environment writes, a short name."""
    return f"{name.rpartition('.')[2]}-{writer}"


def _for_another_job(case: Case, ranks: int) -> Case | None:
    """Return a case as one whose files another job reads; None where there is nothing to read."""
    can = backend_class(case.parameters.backend).capabilities
    if case.roofline or not (can.formatted and can.keeps_data):
        return None
    parameters = replace(case.parameters, cache="separate")
    if workload(parameters.workload).check(parameters, ranks):
        return None
    return Case(parameters, case.options)
