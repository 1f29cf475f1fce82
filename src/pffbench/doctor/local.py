"""Checks without MPI, for login nodes."""

from __future__ import annotations

import os
import platform
import socket
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pffbench.doctor import backends, libraries, locks, machine, mpi_stack, scratch, spack
from pffbench.doctor.finding import Finding, Report, grouped, looked_at
from pffbench.doctor.installation import Installation, find_installation
from pffbench.doctor.libraries import Library, unloaded_libraries
from pffbench.errors import UserError
from pffbench.provenance.binding import rank_facts
from pffbench.provenance.node import host_facts
from pffbench.provenance.software import software_facts
from pffbench.storage.filesystem import FileSystem, filesystem, same_filesystem
from pffbench.storage.page_cache import part_kept_in_cache
from pffbench.storage.scratch import Scratch, scratch_parent

NOT_LOOKED_AT = "not looked at with --no-mpi"


def examine_alone(
    given: str | None, reason: str = NOT_LOOKED_AT, more: Iterable[Finding] = ()
) -> Report:
    """Run all checks that need no MPI.

    Parameters
    ----------
    given : str or None
        The scratch parent that the user named.
    reason : str
        Why MPI is not checked.
    more : iterable of Finding
        Findings about MPI.
    """
    here = unloaded_libraries()
    gone = {name: {library.error: [socket.gethostname()]} for name, library in here.items()
            if library.error}  # fmt: skip
    broken = {*gone, *backends.absent_libraries(), *(finding.name for finding in more)}
    installation = find_installation()
    found = judge_software(here.values(), gone, broken, installation)
    found += more
    found.append(Finding(mpi_stack.MPI_TOPIC, "unknown", f"library, MPI-IO and launcher: {reason}"))
    found += looked_at(mpi_stack.LAUNCHER, lambda: mpi_stack.look_at_slurm(None))
    found += looked_at(scratch.TOPIC, lambda: look_at_parent(given, nodes=1))
    found += looked_at(scratch.TOPIC, lambda: _try_directory(given))
    found += looked_at(machine.NODE, _look_at_node)
    found += looked_at(machine.ENVIRONMENT, lambda: machine.judge_environment(os.environ))
    runs = backends.abilities(broken, None, mpi="mpi4py" not in broken)
    return Report(installation.summary, grouped(found), tuple(runs))


def judge_software(
    here: Iterable[Library],
    failing: Mapping[str, Mapping[str, Sequence[str]]],
    broken: Collection[str],
    installation: Installation,
) -> list[Finding]:
    """Check Python, the libraries and the backends.

    Parameters
    ----------
    here, failing, installation
        As of `judge_libraries`.
    broken : collection of str
        Import names of all libraries that cannot be used.
    """
    found = looked_at(libraries.PYTHON, lambda: _look_at_python(installation))
    found += looked_at(spack.TOPIC, spack.look_at_spack)
    found += looked_at(
        libraries.LIBRARIES, lambda: libraries.judge_libraries(here, failing, installation)
    )
    uses = backends.needed_for()
    found += looked_at(
        libraries.LIBRARIES,
        lambda: libraries.judge_optional(libraries.optional_versions(uses), uses, installation),
    )
    required = {name for name in broken if name in libraries.REQUIRED}
    told = looked_at(backends.TOPIC, lambda: backends.look_at_backends(broken))
    # What follows from an optional library stands below that.
    return found + [
        finding for finding in told if not finding.because or finding.because in
        {*required, libraries.SERIAL}
    ]  # fmt: skip


def _look_at_python(installation: Installation) -> Iterator[Finding]:
    yield Finding(
        libraries.PYTHON, "ok", f"Python {platform.python_version()}, {installation.summary}"
    )
    facts = software_facts([])["pffbench"]
    assert isinstance(facts, dict)
    yield from libraries.judge_pffbench(facts)


def look_at_parent(given: str | None, nodes: int) -> Iterator[Finding]:
    """Check the file system of the scratch parent, which need not exist yet."""
    parent, _ = scratch_parent(given)
    there: FileSystem = filesystem(parent)
    yield from scratch.judge_filesystem(there, nodes)
    yield from scratch.judge_results(same_filesystem(str(Path.cwd()), parent))


def judge_cache_at(made: Scratch) -> Finding:
    """Test whether the page cache can be dropped in a directory of our own."""
    there = filesystem(made.directory)
    return scratch.judge_eviction(part_kept_in_cache(made.directory), there.in_memory)


def _try_directory(given: str | None) -> Iterator[Finding]:
    try:
        with scratch.own_directory(given) as made:
            yield judge_cache_at(made)
            with locks.held(made.directory) as refused:
                tries = [(False, locks.tried_by_another_process(made.directory))]
            yield from locks.judge_locks(refused, tries)
    except UserError as error:
        yield scratch.judge_refusal(error)


def _look_at_node() -> Iterator[Finding]:
    limit = rank_facts()["memory_limit_bytes"]
    return machine.judge_node(host_facts(), 0, limit if isinstance(limit, int) else None)
