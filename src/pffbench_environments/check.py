"""Checks before a run of several environments, in which nothing is created."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from itertools import chain

import msgspec
from msgspec.structs import replace

from pffbench.case import Case
from pffbench.errors import UserError
from pffbench.experiment.load import LoadedExperiment
from pffbench.experiment.plan import Plan
from pffbench.experiment.sweep import expand
from pffbench.record.run_json import RunRecord
from pffbench.run.recorder import new_record
from pffbench.text import one_line
from pffbench_environments.probe import EnvironmentFacts
from pffbench_environments.processes import last_line
from pffbench_environments.start import (
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
    #: Facts of each environment.
    facts: Mapping[str, EnvironmentFacts]
    #: The cases of all of them.
    plan: Plan

    @property
    def first(self) -> EnvironmentFacts:
        """Facts of the first environment, which are those of the run too."""
        return next(iter(self.facts.values()))

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
        first = self.first
        entries = {
            case.id: self.facts[case.environment].entries[case.id] for case in self.plan.cases
        }
        record = new_record(
            self.plan, self.loaded.path, run_id, scratch, first.topology, first.floor,
            first.startup, first.provenance, "all", entries,
        )  # fmt: skip
        record.environments = {
            environment.name: {
                "start": shlex.join(launch.command(environment)),
                "provenance": self.facts[environment.name].provenance,
                "startup": self.facts[environment.name].startup,
            }
            for environment in self.environments
        }
        return record


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
    if not launch.options.json and launch.options.progress != "none":
        print(one_line(f"starts: {'; '.join(commands_of(experiment))}"), flush=True)
    environments = start_environments(experiment, loaded.path, launch.keep_going)
    facts = {each.name: _facts(each, launch, out) for each in environments}
    return CheckedRun(loaded, environments, facts, _plan(loaded, facts))


def _facts(environment: StartedEnvironment, launch: Launch, out: str) -> EnvironmentFacts:
    """Check the experiment with the ranks of an environment; return its facts.

    Raises
    ------
    UserError
        It cannot run there.
    """
    options, where = launch.options, f"environment {environment.name}"
    arguments = [] if options.experiment is None else [options.experiment]
    for override in options.overrides:
        arguments += ["--set", override]
    arguments += ["--out", out, *launch.arguments(environment)]
    module = "pffbench_environments.probe"
    done = launch.run(environment, module, arguments, START_SECONDS)
    if done.status is None:
        command = shlex.join(launch.command(environment, "-P", "-m", module, *arguments))
        raise UserError(f"{where}: its ranks did not start within {START_SECONDS:g} s: {command}")
    if done.status or not done.messages:
        raise UserError(f"{where}: {last_line(done.text)}")
    try:
        return msgspec.convert(json.loads(done.messages[-1]), EnvironmentFacts)
    except (ValueError, RecursionError) as error:  # of msgspec too
        raise UserError(
            f"{where}: its ranks answered in another way than those of pffbench do: "
            f"{one_line(str(error), 200)}"
        ) from None


def _plan(loaded: LoadedExperiment, facts: Mapping[str, EnvironmentFacts]) -> Plan:
    """Return the cases of all environments, those of one case side by side.

    Raises
    ------
    UserError
        The environments have other numbers of ranks.
    """
    first, size = next((name, those.topology.size) for name, those in facts.items())
    for name, those in facts.items():
        if (ranks := those.topology.size) != size:
            raise UserError(
                f"environment {name} has {ranks} ranks under the launcher, and {first} has {size}: "
                "its MPI is not the launcher's"
            )
    cases: dict[str, list[Case]] = {}
    for environment, those in facts.items():
        for name, entry in those.entries.items():
            told = {key: v for key, v in entry["parameters"].items() if key != "environment"}
            (case,) = expand(as_entry(told, entry["options"]), name, set())
            case = replace(case, roofline=bool(entry["roofline"]), environment=environment)
            cases.setdefault(same_case(name), []).append(case)
    return Plan(
        experiment=loaded.experiment,
        ranks=size,
        cases=tuple(chain.from_iterable(cases.values())),
        left_out=tuple(chain.from_iterable(those.left_out for those in facts.values())),
        costs={},
        limits=tuple(chain.from_iterable(those.limits for those in facts.values())),
    )
