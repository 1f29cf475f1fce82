"""Checks by all ranks.

Each rank checks itself, rank 0 gathers and judges. All ranks leave a collective step together, so
that an error on one of them becomes a finding and no rank waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from pffbench.backends.registry import backend_class, backend_names, missing_library
from pffbench.doctor import backends, io_test, libraries, locks, machine, scratch
from pffbench.doctor.checks import Subject, look_around
from pffbench.doctor.finding import (
    Finding,
    Report,
    as_text,
    grouped,
    looked_at,
    of_topic,
    problem,
)
from pffbench.doctor.installation import find_installation
from pffbench.doctor.libraries import import_libraries
from pffbench.doctor.scratch import last_command
from pffbench.errors import UserError
from pffbench.parallel.agreement import AgreedStep, PhaseFailedError, sleeping_barrier
from pffbench.parallel.clock import measure_floor
from pffbench.parallel.topology import Team
from pffbench.parallel.watchdog import Watchdog
from pffbench.storage.scratch import Scratch


class Examination:
    """Findings of all ranks of a job together.

    Parameters
    ----------
    team : Team
        The ranks.
    given : str or None
        The scratch parent that the user named.
    """

    def __init__(self, team: Team, given: str | None) -> None:
        from mpi4py import MPI

        self._team = team
        self._subject = Subject(given, find_installation(str(MPI.get_vendor()[0])))
        self._worked: dict[str, frozenset[str]] | None = None
        self.found: list[Finding] = []

    def run(self) -> Report:
        """Run all checks; collective. The report is complete on rank 0 only."""
        self._together(libraries.LIBRARIES, self._look_around)
        with ExitStack() as held:
            made = self._make_scratch(held)
            if made is not None:
                self._together(scratch.TOPIC, partial(self._try_locks, made))
                self._try_backends(made)
                if self._team.is_root:
                    subject = replace(self._subject, made=made)
                    self.found += [*subject.look("mpi and scratch"), *subject.look("scratch")]
            sleeping_barrier(self._team.comm)
            self.found += looked_at(scratch.TOPIC, lambda: _closed(held))
        self._together(machine.CLOCK, self._measure_floor)
        runs = backends.abilities(self._subject.broken, self._worked, mpi=True)
        return Report(self._subject.installation.summary, grouped(self.found), tuple(runs))

    def _together(self, topic: str, look: Callable[[], Iterable[Finding]]) -> None:
        """Run a collective check; an error on any rank becomes a finding on all of them."""
        try:
            with AgreedStep(self._team.comm, topic):
                self.found += of_topic(topic, look())
        except PhaseFailedError as error:
            self.found += of_topic(topic, [problem(str(error))])

    def _look_around(self) -> list[Finding]:
        team = self._team
        with AgreedStep(team.comm, "looking around"):  # before the others wait for it
            here = look_around(import_libraries(), is_leader=team.is_leader)
        views = team.comm.allgather(here)
        self._subject = replace(self._subject, views=views, nodes=team.topology.nodes)
        if not team.is_root:
            return []
        return [*self._subject.look("nothing"), *self._subject.look("mpi")]

    def _make_scratch(self, held: ExitStack) -> Scratch | None:
        """Create a directory on rank 0 and check that all nodes see it; collective."""
        here: Scratch | UserError | OSError | None = None
        if self._team.is_root:
            try:
                here = held.enter_context(scratch.own_directory(self._subject.given))
            except (UserError, OSError) as error:
                here = error
        sleeping_barrier(self._team.comm)
        made: Scratch | UserError | OSError = self._team.comm.bcast(here)
        if not isinstance(made, Scratch):
            self.found += of_topic(scratch.TOPIC, [scratch.judge_refusal(made)])
            return None
        blind = self._blind_hosts(made)
        sight = scratch.judge_sight(blind, self._team.topology.hosts[0])
        self.found += of_topic(scratch.TOPIC, sight)
        return None if blind else made

    def _blind_hosts(self, scratch: Scratch) -> list[str]:
        host = self._team.topology.hosts[self._team.rank]
        try:
            Scratch.attach(scratch.directory, scratch.run_id)
            blind = None
        except (UserError, OSError):
            blind = host
        return sorted({name for name in self._team.comm.allgather(blind) if name is not None})

    def _try_locks(self, made: Scratch) -> list[Finding]:
        """Hold locks on rank 0 and let all others try them at once: they ask for shared ones."""
        team, directory = self._team, made.directory
        at_end = last_command(made) if team.is_root else ()
        text = self._text_with(scratch.TOPIC, locks.NEVER_RETURNED) if team.is_root else None
        with (
            ExitStack() as taken,
            Watchdog(team, locks.SECONDS, at_end=at_end) as watchdog,
            scratch.limited(watchdog, made, locks.SECONDS, text),
        ):
            refused: dict[str, str] = {}
            with AgreedStep(team.comm, "taking locks"):
                if team.is_root:
                    refused = taken.enter_context(locks.held(directory))
            result: dict[str, str] | None = None
            with AgreedStep(team.comm, "trying locks"):
                if not team.is_root:
                    result = locks.tried(directory)
                elif team.size == 1:
                    result = locks.tried_by_another_process(directory)
            nodes = team.topology.nodes
            results = zip(nodes, team.comm.allgather(result), strict=True)
        tries = [(node != nodes[0], met) for node, met in results if met is not None]
        return list(locks.judge_locks(refused, tries))

    def _try_backends(self, scratch: Scratch) -> None:
        self._worked = {}
        at_end = last_command(scratch) if self._team.is_root else ()
        with Watchdog(self._team, io_test.SECONDS, at_end=at_end) as watchdog:
            for name in backend_names():
                attempt = partial(self._try_backend, name, scratch, watchdog)
                self._together(io_test.TOPIC, attempt)

    def _try_backend(self, name: str, scratch: Scratch, watchdog: Watchdog) -> Sequence[Finding]:
        with AgreedStep(self._team.comm, f"loading the backend {name}"):
            kind = backend_class(name)
        lacks = missing_library(kind) is not None or bool(backends.serial_libraries(kind))
        lacks = lacks or not self._subject.broken.isdisjoint(kind.libraries)
        if any(self._team.comm.allgather(lacks)):
            return ()
        text_with = partial(self._text_with, io_test.TOPIC)
        trial = io_test.try_backend(self._team, kind, scratch, watchdog, text_with)
        assert self._worked is not None
        self._worked[name] = trial.worked
        return trial.findings

    def _text_with(self, topic: str, last: Finding) -> str:
        found = grouped([*self.found, *of_topic(topic, [last])])
        return as_text(Report(self._subject.installation.summary, found))

    def _measure_floor(self) -> list[Finding]:
        return [machine.judge_floor(measure_floor(self._team.comm), self._team.size)]


def _closed(held: ExitStack) -> list[Finding]:
    held.close()
    return []
