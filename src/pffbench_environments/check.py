"""Checks before a run of several environments, in which nothing is created."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from itertools import chain

import msgspec
from msgspec.structs import replace

from pffbench.case import Case
from pffbench.errors import UserError
from pffbench.experiment.load import LoadedExperiment, to_plain
from pffbench.experiment.plan import Plan
from pffbench.experiment.sweep import expand
from pffbench.grouping import grouped
from pffbench.record.run_json import RunRecord, digest_of
from pffbench.text import one_line
from pffbench_environments.processes import last_line
from pffbench_environments.start import (
    ANSWER,
    START_SECONDS,
    Launch,
    StartedEnvironment,
    commands_of,
    start_environments,
)
from pffbench_environments.steps import as_entry, same_case


class CheckedRun(msgspec.Struct, frozen=True):
    """A run before anything is created."""

    loaded: LoadedExperiment
    environments: list[StartedEnvironment]
    #: The record with which a run would begin in each environment.
    records: Mapping[str, RunRecord]
    #: The cases of all of them.
    plan: Plan

    @property
    def first(self) -> RunRecord:
        """The record of the first environment, whose facts are those of the run too."""
        return next(iter(self.records.values()))

    def record(self, run_id: str, scratch: str, launch: Launch) -> RunRecord:
        """Create the record of a new run.

        Parameters
        ----------
        run_id : str
            Name of the run.
        scratch : str
            Directory in which the steps create theirs.
        launch : Launch
            How ranks are started.
        """
        plain = to_plain(self.plan.experiment)
        return replace(
            self.first,
            run_id=run_id,
            command=sys.orig_argv,
            experiment=plain,
            experiment_digest=digest_of(plain),
            experiment_file=self.loaded.path,
            cases={c.id: self.records[c.environment].cases[c.id] for c in self.plan.cases},
            left_out=[one for record in self.records.values() for one in record.left_out],
            limits=list(self.plan.limits),
            scratch=scratch,
            environments={
                each.name: {
                    "start": shlex.join(launch.command(each)),
                    "provenance": self.records[each.name].provenance,
                    "startup": self.records[each.name].startup,
                }
                for each in self.environments
            },
        )


def check_run(loaded: LoadedExperiment, launch: Launch, out: str) -> CheckedRun:
    """Start each environment and let its ranks check the experiment.

    Parameters
    ----------
    loaded : LoadedExperiment
        The experiment.
    launch : Launch
        How ranks are started.
    out : str
        The results directory.

    Raises
    ------
    UserError
        One of them cannot be started or cannot run it.
    """
    experiment = loaded.experiment
    commands = commands_of(experiment)
    if commands and not launch.options.is_silent:
        print(one_line(f"starts: {'; '.join(commands)}"), flush=True)
    environments = start_environments(experiment, loaded.path, launch.keep_going)
    records = {each.name: _record(each, launch, out) for each in environments}
    return CheckedRun(loaded, environments, records, _plan(loaded, records))


def _record(environment: StartedEnvironment, launch: Launch, out: str) -> RunRecord:
    """Check the experiment with the ranks of an environment; return the record they would begin.

    Raises
    ------
    UserError
        It cannot run there.
    """
    options, where = launch.options, f"environment {environment.name}"
    arguments = [*launch.arguments(environment), "--out", out]
    for override in options.overrides:
        arguments += ["--set", override]
    arguments += [] if options.experiment is None else [options.experiment]
    module = "pffbench_environments.probe"
    done = launch.run(environment, module, arguments, START_SECONDS)
    if done.status is None:
        command = shlex.join(launch.command(environment, "-P", "-m", module, *arguments))
        raise UserError(f"{where}: its ranks did not start within {START_SECONDS:g} s: {command}")
    if done.status or not done.messages:
        raise UserError(f"{where}: {last_line(done.text)}")
    # Answers of several ranks may be mixed in one line.
    if sum(1 + message.count(ANSWER) for message in done.messages) > 1:
        raise UserError(
            f"{where}: each of its ranks runs alone under the launcher: "
            "its MPI is not the launcher's"
        )
    try:
        return RunRecord.of(msgspec.json.decode(done.messages[-1]))
    except (msgspec.MsgspecError, RecursionError) as error:
        raise UserError(
            f"{where}: its ranks answered in another way than those of pffbench do: "
            f"{one_line(str(error), 200)}"
        ) from None


def _plan(loaded: LoadedExperiment, records: Mapping[str, RunRecord]) -> Plan:
    """Return the cases of all environments, those of one case side by side.

    Raises
    ------
    UserError
        The environments have other numbers of ranks.
    """
    first, size = next((name, record.ranks) for name, record in records.items())
    cases: list[tuple[str, Case]] = []
    for environment, record in records.items():
        if record.ranks != size:
            raise UserError(
                f"environment {environment} has {record.ranks} ranks under the launcher, and "
                f"{first} has {size}: its MPI is not the launcher's"
            )
        for name, entry in record.cases.items():
            told = {key: v for key, v in entry.parameters.items() if key != "environment"}
            (case,) = expand(as_entry(told, entry.options), name, set())
            case = replace(case, roofline=entry.roofline, environment=environment)
            cases.append((same_case(name), case))
    return Plan(
        experiment=loaded.experiment,
        ranks=size,
        cases=tuple(chain.from_iterable(grouped(cases).values())),
        left_out=tuple((o.case, o.reason) for r in records.values() for o in r.left_out),
        costs={name: e.cost for r in records.values() for name, e in r.cases.items()},
        limits=tuple(chain.from_iterable(record.limits for record in records.values())),
        remarks=tuple(loaded.compare_ranks(size)),
    )
