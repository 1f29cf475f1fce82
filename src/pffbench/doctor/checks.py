"""The table of checks of one process, and an examination without MPI, for login nodes.

Checks by all ranks together, of locks and of a real write and read, are in `collective`. Remedies
that depend on the kind of installation are in docs/install.md, where `installation` points to.
"""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Literal, NamedTuple

from pffbench.backends.shared_files import extension_modules, mentions
from pffbench.doctor import backends, libraries, locks, machine, mpi_stack, scratch, spack
from pffbench.doctor.finding import (
    Finding,
    Findings,
    Report,
    grouped,
    looked_at,
    of_topic,
    ok,
    unknown,
)
from pffbench.doctor.installation import Installation, find_installation
from pffbench.doctor.libraries import Library, unloaded_libraries
from pffbench.errors import UserError
from pffbench.parallel.launcher import launcher_size
from pffbench.provenance.binding import rank_facts
from pffbench.provenance.facts import Facts
from pffbench.provenance.mpiio import mpi_io_facts
from pffbench.provenance.node import host_facts
from pffbench.provenance.software import loaded_libraries, software_facts
from pffbench.storage.filesystem import filesystem, same_filesystem
from pffbench.storage.page_cache import part_kept_in_cache
from pffbench.storage.scratch import Scratch, scratch_parent


@dataclass(frozen=True)
class RankView:
    """Facts that one rank reports."""

    host: str
    #: Cores that it may run on.
    cpus: frozenset[int]
    #: Bytes that its control group permits.
    memory_limit: int | None
    #: By import name.
    libraries: dict[str, Library]
    #: Libraries of backends that are not installed.
    absent: frozenset[str]
    #: Result of `host_facts`; on one rank of each node.
    node: Facts | None


def look_around(found: dict[str, Library], *, is_leader: bool) -> RankView:
    """Collect the facts of this rank and its node, with the libraries that it has found."""
    limit = rank_facts()["memory_limit_bytes"]
    return RankView(
        host=socket.gethostname(),
        cpus=frozenset(os.sched_getaffinity(0)),
        memory_limit=limit if isinstance(limit, int) else None,
        libraries=found,
        absent=backends.absent_libraries(),
        node=host_facts() if is_leader else None,
    )


@dataclass(frozen=True)
class Subject:
    """What the checks look at."""

    #: The scratch parent that the user named.
    given: str | None
    installation: Installation
    #: Facts of each rank, and the node that it is on.
    views: Sequence[RankView] = ()
    nodes: Sequence[int] = ()
    #: A directory of the doctor's own.
    made: Scratch | None = None

    @cached_property
    def failing(self) -> dict[str, dict[str, list[str]]]:
        """The libraries that fail on any rank: name → error → hosts."""
        failing: dict[str, dict[str, list[str]]] = {}
        for view in self.views:
            for name, library in view.libraries.items():
                if library.error:
                    failing.setdefault(name, {}).setdefault(library.error, []).append(view.host)
        return failing

    @cached_property
    def broken(self) -> frozenset[str]:
        """Import names of all libraries that cannot be used on every rank."""
        return frozenset(self.failing).union(*(view.absent for view in self.views))

    def package(self, name: str) -> Library:
        """Return a library as rank 0 sees it."""
        return self.views[0].libraries[name]

    def look(self, needs: Needs) -> list[Finding]:
        """Run the checks that need so much; an error ends only the check that meets it."""
        return [
            finding
            for check in CHECKS
            if check.needs == needs
            for finding in looked_at(check.topic, partial(check.look, self))
        ]


#: What a check needs: MPI in this process, a scratch directory of its own, both, or neither.
Needs = Literal["nothing", "mpi", "scratch", "mpi and scratch"]


class Check(NamedTuple):
    """A row of the table."""

    topic: str
    #: What it asks.
    asks: str
    #: How it is found out.
    look: Callable[[Subject], Iterable[Finding]]
    needs: Needs = "nothing"


def _python(subject: Subject) -> Findings:
    text = f"Python {platform.python_version()}, {subject.installation.summary}"
    yield ok(text)
    facts = software_facts([])["pffbench"]
    assert isinstance(facts, dict)
    yield from libraries.judge_pffbench(facts)


def _required(subject: Subject) -> Findings:
    here = subject.views[0].libraries.values()
    return libraries.judge_libraries(here, subject.failing, subject.installation)


def _optional(subject: Subject) -> Findings:
    uses = backends.needed_for()
    return libraries.judge_optional(libraries.optional_versions(uses), uses, subject.installation)


def _backends(subject: Subject) -> Findings:
    # What follows from an optional library stands below that.
    causes = {"", libraries.SERIAL, *libraries.REQUIRED}
    found = backends.look_at_backends(subject.broken)
    return (finding for finding in found if finding.because in causes)


def _nodes(subject: Subject) -> Findings:
    per_node: list[tuple[str, Finding]] = []
    for number in sorted(set(subject.nodes)):
        placed = zip(subject.views, subject.nodes, strict=True)
        members = [view for view, own in placed if own == number]
        leader, ranks = members[0], len(members)
        judged: list[Finding] = []
        if leader.node is not None:
            judged += machine.judge_node(leader.node, ranks, leader.memory_limit)
        cpus = len(set().union(*(member.cpus for member in members)))
        judged += mpi_stack.judge_cores(ranks, cpus, os.environ, subject.installation.mpi)
        per_node += [(leader.host, finding) for finding in judged]
    return machine.by_node(per_node)


def _launcher(subject: Subject) -> Findings:
    claim, vendor = launcher_size(os.environ), subject.installation.mpi
    yield mpi_stack.judge_launcher(claim, len(subject.views), vendor)


def _hdf5(subject: Subject) -> Findings:
    h5py, netcdf4 = subject.package("h5py"), subject.package("netCDF4")
    return mpi_stack.look_at_hdf5(h5py, netcdf4, _mapped("libhdf5"), subject.installation)


def _mapped(library: str) -> list[str]:
    paths = loaded_libraries().get(library)
    return [str(path) for path in paths] if isinstance(paths, list) else []


def _parent(subject: Subject) -> Findings:
    """Check the file system of the scratch parent, which need not exist yet."""
    parent, _ = scratch_parent(subject.given)
    yield from scratch.judge_filesystem(filesystem(parent), len(set(subject.nodes)))
    yield from scratch.judge_results(same_filesystem(str(Path.cwd()), parent))


def _mpi_io(subject: Subject) -> Findings:
    from mpi4py import MPI

    assert subject.made is not None
    facts = mpi_io_facts(MPI.COMM_SELF, subject.made.directory)
    yield from mpi_stack.judge_mpi_io(facts)
    large = mentions(extension_modules("mpi4py"), b"MPI_Type_create_subarray_c")
    version = str(facts["library_version"])
    yield from mpi_stack.judge_views(str(facts["library"]), version, large_counts=large)


def _page_cache(subject: Subject) -> Findings:
    assert subject.made is not None
    there = subject.made.directory
    yield scratch.judge_eviction(part_kept_in_cache(there), filesystem(there).in_memory)


CHECKS = (
    Check(libraries.PYTHON, "which Python, and which commit of the program", _python),
    Check(spack.TOPIC, "whether the libraries come from the environment and its lock file",
          lambda _: spack.look_at_spack()),
    Check(libraries.LIBRARIES, "whether all ranks can import them, and they are built for MPI",
          _required),
    Check(libraries.LIBRARIES, "which optional ones are installed", _optional),
    Check(backends.TOPIC, "which cannot run, or not in all layouts", _backends),
    Check(mpi_stack.HDF5_TOPIC, "one HDF5 in the process, and what it can do", _hdf5, "mpi"),
    Check(mpi_stack.MPI_TOPIC, "which MPI",
          lambda s: mpi_stack.judge_library(s.package("mpi4py").facts), "mpi"),
    Check(mpi_stack.MPI_TOPIC, "one MPI in the process",
          lambda _: mpi_stack.judge_mpi_copies(_mapped("libmpi")), "mpi"),
    Check(machine.NODE, "hardware, load, and a core for each rank", _nodes),
    Check(mpi_stack.LAUNCHER, "as many ranks in MPI as it started", _launcher, "mpi"),
    Check(mpi_stack.LAUNCHER, "kinds of MPI that srun can start",
          lambda s: mpi_stack.look_at_slurm(s.installation.mpi or None)),
    Check(scratch.TOPIC, "kind and room of the file system", _parent),
    Check(mpi_stack.MPI_TOPIC, "which MPI-IO, its hints and its known defects", _mpi_io,
          "mpi and scratch"),
    Check(scratch.TOPIC, "whether the page cache can be dropped", _page_cache, "scratch"),
    Check(machine.ENVIRONMENT, "variables that change I/O",
          lambda _: machine.judge_environment(os.environ)),
)  # fmt: skip

NOT_LOOKED_AT = "not looked at with --no-mpi"


def examine_alone(
    given: str | None, reason: str = NOT_LOOKED_AT, more: Sequence[Finding] = ()
) -> Report:
    """Run all checks that need no MPI.

    Parameters
    ----------
    given : str or None
        The scratch parent that the user named.
    reason : str
        Why MPI is not checked.
    more : sequence of Finding
        Findings about MPI; each may be named after a library that cannot be used.
    """
    view = look_around(unloaded_libraries(), is_leader=True)
    view = replace(view, absent=view.absent.union(finding.name for finding in more))
    subject = Subject(given, find_installation(), [view], [0])
    of_mpi = [*more, unknown(f"library, MPI-IO and launcher: {reason}")]
    found = [*subject.look("nothing"), *of_topic(mpi_stack.MPI_TOPIC, of_mpi)]
    found += looked_at(scratch.TOPIC, lambda: _try_directory(subject))
    runs = backends.abilities(subject.broken, None, mpi="mpi4py" not in subject.broken)
    return Report(subject.installation.summary, grouped(found), tuple(runs))


def _try_directory(subject: Subject) -> Findings:
    try:
        with scratch.own_directory(subject.given) as made:
            yield from replace(subject, made=made).look("scratch")
            with locks.held(made.directory) as refused:
                tries = [(False, locks.tried_by_another_process(made.directory))]
            yield from locks.judge_locks(refused, tries)
    except UserError as error:
        yield scratch.judge_refusal(error)
