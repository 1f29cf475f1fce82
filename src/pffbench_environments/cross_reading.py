"""Who reads whose files: each environment reads the files of all, once and unmeasured."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
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

#: A case, the environment that writes its files, and the one that reads them; none while they are
#: written.
_Piece = tuple[str, str, str]


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
        #: The first case of the run, by the name of the case that is written and read.
        self._cases: dict[str, Case] = {}
        #: The cases of each environment that are written and read, by their names.
        self._own: dict[str, dict[str, Case]] = {e.name: {} for e in environments}
        for case in plan.cases:
            if (other := _for_another_job(case, plan.ranks)) is not None:
                self._cases.setdefault(other.id, case)
                self._own[case.environment][other.id] = other

    def run(self, record: RunRecord) -> bool:
        """Write and read everything and record who could; return whether nothing stopped it.

        Parameters
        ----------
        record : RunRecord
            Receives the results.
        """
        try:
            scratch = Scratch.take_over(record.scratch, record.run_id, create_parent=True)
        except UserError as error:
            record.remarks.append(f"environments did not read each other's files: {error}")
            return True
        troubles: dict[_Piece, str] = {}
        self._launch.directory.mkdir(parents=True, exist_ok=True)
        try:
            for each in self._environments:
                work = [(name, each.name, "") for name in self._own[each.name]]
                troubles |= self._do(each, scratch, work)
            for each in self._environments:
                work = [
                    (name, writer, each.name)
                    for name in self._own[each.name]
                    for writer in self._own
                    if troubles.get((name, writer, "")) == ""
                ]
                troubles |= self._do(each, scratch, work)
        finally:
            with suppress(OSError, UserError):
                scratch.destroy()
            shutil.rmtree(self._launch.directory, ignore_errors=True)
        if self._launch.is_stopped():
            return False
        record.cross_reads = [
            asdict(self._outcome((name, writer, reader), troubles))
            for reader in self._own
            for name in self._cases
            for writer in self._own
        ]
        return True

    def _do(
        self, environment: StartedEnvironment, scratch: Scratch, work: Sequence[_Piece]
    ) -> dict[_Piece, str]:
        """Let the ranks of an environment do work; return why each piece failed, or nothing.

        A crash is the failure of the piece of work at hand; ranks that are started anew do the
        rest.
        """
        told: dict[_Piece, str] = {}
        while left := [piece for piece in work if piece not in told]:
            if self._launch.is_stopped():
                break
            answers, end = self._started(environment, scratch, left)
            told |= answers
            if unanswered := [piece for piece in left if piece not in answers]:
                told[unanswered[0]] = end
        return told

    def _started(
        self, environment: StartedEnvironment, scratch: Scratch, work: Sequence[_Piece]
    ) -> tuple[dict[_Piece, str], str]:
        """Start ranks once; return their answers and how they ended."""
        own = self._own[environment.name]
        cases = [own[name] for name in dict.fromkeys(name for name, _, _ in work)]
        job = {
            "experiment": step_experiment(self._plan.experiment, cases, 0),
            "scratch": scratch.directory,
            "run_id": scratch.run_id,
            "work": work,
        }
        file = self._launch.directory / f"{environment.name}.json"
        file.write_text(json.dumps(job), encoding="utf-8")
        seconds = self._launch.limit * (1 + len(work))
        module = "pffbench_environments.cross_read_ranks"
        done = self._launch.run(environment, module, [str(file)], seconds)
        end = f"no end within {seconds:g} s"
        if done.status is not None:
            end = f"the ranks ended with status {done.status}: {last_line(done.text)}"
        try:
            told = [msgspec.json.decode(t, type=tuple[_Piece, str]) for t in done.messages]
        except msgspec.MsgspecError as error:
            return {}, f"the ranks answered in another way: {one_line(str(error), 200)}"
        return dict(told), one_line(end, 400)

    def _outcome(self, piece: _Piece, troubles: Mapping[_Piece, str]) -> CrossRead:
        """Return whether an environment could read the files of another one."""
        name, writer, reader = piece
        case = same_case(self._cases[name].id)
        result: Literal["VALID", "FAILED", "LEFT_OUT"] = "FAILED"
        if lacking := [each for each in (reader, writer) if name not in self._own[each]]:
            result, why = "LEFT_OUT", f"not a case of {lacking[0]}"
            for left, reason in self._plan.left_out:
                if left == f"{case}@{lacking[0]}":
                    why = f"impossible with {lacking[0]}: {reason}"
        elif unwritten := troubles[name, writer, ""]:
            why = f"not written: {unwritten}"
        elif not (why := troubles[piece]):
            result = "VALID"
        backend = self._cases[name].parameters.backend
        return CrossRead(case, backend, writer, reader, result, why)


def _for_another_job(case: Case, ranks: int) -> Case | None:
    """Return a case as one whose files another job reads; None where there is nothing to read."""
    can = backend_class(case.parameters.backend).capabilities
    if case.roofline or can.raw or can.discards:
        return None
    parameters = replace(case.parameters, cache="separate")
    if workload(parameters.workload).check(parameters, ranks):
        return None
    return Case(parameters, case.options)
