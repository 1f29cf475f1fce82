"""Checks by all ranks.

Each rank checks itself, rank 0 gathers and judges. All ranks leave a collective step together, so
that an error on one of them becomes a finding and no rank waits for it.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from pffbench.backends.registry import backend_class, backend_names, missing_library
from pffbench.backends.shared_files import extension_modules, mentions
from pffbench.doctor import backends, io_test, libraries, local, locks, machine, mpi_stack, scratch
from pffbench.doctor.backends import absent_libraries
from pffbench.doctor.finding import Finding, Report, as_text, grouped, looked_at
from pffbench.doctor.installation import Installation, find_installation
from pffbench.doctor.libraries import Library, import_libraries
from pffbench.doctor.scratch import last_command
from pffbench.errors import UserError
from pffbench.parallel.agreement import AgreedStep, PhaseFailedError, sleeping_barrier
from pffbench.parallel.clock import measure_floor
from pffbench.parallel.launcher import launcher_size
from pffbench.parallel.topology import Team, Topology
from pffbench.parallel.watchdog import Watchdog
from pffbench.provenance.binding import rank_facts
from pffbench.provenance.facts import Facts
from pffbench.provenance.mpiio import mpi_io_facts
from pffbench.provenance.node import host_facts
from pffbench.provenance.software import loaded_libraries
from pffbench.storage.scratch import Scratch


@dataclass(frozen=True)
class RankView:
    """Facts that one rank reports.

    Parameters
    ----------
    host : str
        Host name.
    cpus : frozenset of int
        Cores that it may run on.
    memory_limit : int or None
        Bytes that its control group permits.
    libraries : dict
        By import name.
    absent : frozenset of str
        Libraries of backends that are not installed.
    node : dict or None
        Result of `host_facts`; on one rank of each node.
    """

    host: str
    cpus: frozenset[int]
    memory_limit: int | None
    libraries: dict[str, Library]
    absent: frozenset[str]
    node: Facts | None


def look_around(is_leader: bool) -> RankView:
    """Import the libraries and collect the facts of the node, on this rank alone."""
    limit = rank_facts()["memory_limit_bytes"]
    return RankView(
        host=socket.gethostname(),
        cpus=frozenset(os.sched_getaffinity(0)),
        memory_limit=limit if isinstance(limit, int) else None,
        libraries=import_libraries(),
        absent=absent_libraries(),
        node=host_facts() if is_leader else None,
    )


def failing_imports(views: Sequence[RankView]) -> dict[str, dict[str, list[str]]]:
    """Find the libraries that fail on any rank: name → error → hosts."""
    failing: dict[str, dict[str, list[str]]] = {}
    for view in views:
        for name, library in view.libraries.items():
            if library.error:
                failing.setdefault(name, {}).setdefault(library.error, []).append(view.host)
    return failing


def ranks_by_node(views: Sequence[RankView], topology: Topology) -> Iterator[list[RankView]]:
    """Yield the views of each node's ranks, in the order of the nodes."""
    for number in sorted(set(topology.nodes)):
        yield [view for view, own in zip(views, topology.nodes, strict=True) if own == number]


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
        self._team = team
        self._given = given
        self._broken: set[str] = set()
        self._worked: dict[str, frozenset[str]] | None = None
        self._installation = find_installation(_vendor())
        self.found: list[Finding] = []

    def run(self) -> Report:
        """Run all checks; collective. The report is complete on rank 0 only."""
        self._together(libraries.LIBRARIES, self._look_around)
        self._on_root(mpi_stack.LAUNCHER, self._judge_launcher)
        with ExitStack() as held:
            made = self._make_scratch(held)
            self._on_root(scratch.TOPIC, self._judge_directory)
            if made is not None:
                self._together(scratch.TOPIC, partial(self._try_locks, made))
                self._try_backends(made)
                self._on_root(mpi_stack.MPI_TOPIC, lambda: _look_at_mpi_io(made))
                self._on_root(scratch.TOPIC, lambda: [local.judge_cache_at(made)])
            sleeping_barrier(self._team.comm)
            self.found += looked_at(scratch.TOPIC, lambda: _closed(held))
        self._on_root(machine.ENVIRONMENT, lambda: machine.judge_environment(os.environ))
        self._together(machine.CLOCK, self._measure_floor)
        runs = backends.abilities(self._broken, self._worked, mpi=True)
        return Report(self._installation.summary, grouped(self.found), tuple(runs))

    def _together(self, topic: str, look: Callable[[], Iterable[Finding]]) -> None:
        """Run a collective check; an error on any rank becomes a finding on all of them."""
        try:
            with AgreedStep(self._team.comm, topic):
                self.found += look()
        except PhaseFailedError as error:
            self.found.append(Finding(topic, "problem", str(error)))

    def _on_root(self, topic: str, look: Callable[[], Iterable[Finding]]) -> None:
        """Run a check on rank 0 while the others sleep; collective."""
        if self._team.is_root:
            self.found += looked_at(topic, look)
        sleeping_barrier(self._team.comm)

    def _look_around(self) -> list[Finding]:
        with AgreedStep(self._team.comm, "looking around"):  # before the others wait for it
            here = look_around(self._team.is_leader)
        views: list[RankView] = self._team.comm.allgather(here)
        failing = failing_imports(views)
        self._broken = set(failing).union(*(view.absent for view in views))
        if not self._team.is_root:
            return []
        installation = self._installation
        found = local.judge_software(here.libraries.values(), failing, self._broken, installation)
        found += looked_at(mpi_stack.HDF5_TOPIC, lambda: _look_at_hdf5(here, installation))
        mpi4py = here.libraries["mpi4py"]
        found += looked_at(mpi_stack.MPI_TOPIC, lambda: mpi_stack.judge_library(mpi4py.facts))
        found += looked_at(
            mpi_stack.MPI_TOPIC, lambda: mpi_stack.judge_mpi_copies(_mapped("libmpi"))
        )
        found += looked_at(machine.NODE, lambda: _judge_nodes(views, self._team))
        return found

    def _judge_launcher(self) -> Iterator[Finding]:
        vendor = _vendor()
        yield mpi_stack.judge_launcher(launcher_size(os.environ), self._team.size, vendor)
        yield from mpi_stack.look_at_slurm(vendor)

    def _judge_directory(self) -> Iterator[Finding]:
        return local.look_at_parent(self._given, self._team.topology.node_count)

    def _make_scratch(self, held: ExitStack) -> Scratch | None:
        """Create a directory on rank 0 and check that all nodes see it; collective."""
        here: Scratch | UserError | OSError | None = None
        if self._team.is_root:
            try:
                here = held.enter_context(scratch.own_directory(self._given))
            except (UserError, OSError) as error:
                here = error
        sleeping_barrier(self._team.comm)
        made: Scratch | UserError | OSError = self._team.comm.bcast(here)
        if not isinstance(made, Scratch):
            self.found.append(scratch.judge_refusal(made))
            return None
        blind = self._blind_hosts(made)
        self.found += scratch.judge_sight(blind, self._team.topology.hosts[0])
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
        text = self._text_with(locks.NEVER_RETURNED) if team.is_root else None
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
        if any(self._team.comm.allgather(lacks)) or not self._broken.isdisjoint(kind.libraries):
            return ()
        trial = io_test.try_backend(self._team, kind, scratch, watchdog, self._text_with)
        assert self._worked is not None
        self._worked[name] = trial.worked
        return trial.findings

    def _text_with(self, last: Finding) -> str:
        return as_text(Report(self._installation.summary, grouped([*self.found, last])))

    def _measure_floor(self) -> list[Finding]:
        return [machine.judge_floor(measure_floor(self._team.comm), self._team.size)]


def _look_at_hdf5(here: RankView, installation: Installation) -> Iterator[Finding]:
    h5py, netcdf4 = (here.libraries.get(name) for name in ("h5py", "netCDF4"))
    return mpi_stack.look_at_hdf5(h5py, netcdf4, _mapped("libhdf5"), installation)


def _mapped(library: str) -> list[str]:
    paths = loaded_libraries().get(library)
    return [str(path) for path in paths] if isinstance(paths, list) else []


def _look_at_mpi_io(scratch: Scratch) -> Iterator[Finding]:
    from mpi4py import MPI

    facts = mpi_io_facts(MPI.COMM_SELF, scratch.directory)
    yield from mpi_stack.judge_mpi_io(facts)
    large = mentions(extension_modules("mpi4py"), b"MPI_Type_create_subarray_c")
    version = str(facts["library_version"])
    yield from mpi_stack.judge_views(str(facts["library"]), version, large_counts=large)


def _judge_nodes(views: list[RankView], team: Team) -> Iterator[Finding]:
    per_node: list[tuple[str, Finding]] = []
    for members in ranks_by_node(views, team.topology):
        leader = members[0]
        if leader.node is not None:
            judged = machine.judge_node(leader.node, len(members), leader.memory_limit)
            per_node += [(leader.host, finding) for finding in judged]
        cpus = len(set().union(*(member.cpus for member in members)))
        shared = mpi_stack.judge_cores(len(members), cpus, os.environ, _vendor())
        per_node += [(leader.host, finding) for finding in shared]
    return machine.by_node(per_node)


def _vendor() -> str:
    from mpi4py import MPI

    return str(MPI.get_vendor()[0])


def _closed(held: ExitStack) -> list[Finding]:
    held.close()
    return []
