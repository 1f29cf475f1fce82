"""Checks without MPI, for login nodes."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

from pffbench.doctor import backends, io_test, libraries, machine, mpi_stack, scratch, spack
from pffbench.doctor.finding import Finding, looked_at
from pffbench.errors import UserError
from pffbench.provenance.binding import rank_facts
from pffbench.provenance.node import host_facts
from pffbench.provenance.software import software_facts
from pffbench.storage.filesystem import FileSystem, filesystem, same_filesystem
from pffbench.storage.scratch import Scratch, scratch_parent


def examine_alone(given: str | None, reason: str = libraries.NOT_LOOKED_AT) -> list[Finding]:
    """Run all checks that need no MPI.

    Parameters
    ----------
    given : str or None
        The scratch parent that the user named.
    reason : str
        Why MPI is not checked.
    """
    found = looked_at(libraries.PYTHON, look_at_python)
    found += looked_at(spack.TOPIC, spack.look_at_spack)
    found += looked_at(libraries.LIBRARIES, libraries.look_at_unloaded)
    found += looked_at(libraries.LIBRARIES, look_at_optional)
    found += looked_at(
        backends.TOPIC, lambda: backends.look_at_backends(backends.absent_libraries())
    )
    found.append(Finding(mpi_stack.MPI_TOPIC, "unknown", f"library, MPI-IO and launcher: {reason}"))
    found += looked_at(mpi_stack.LAUNCHER, lambda: mpi_stack.look_at_slurm(None))
    found.append(Finding(io_test.TOPIC, "unknown", reason))
    found += looked_at(scratch.TOPIC, lambda: look_at_parent(given, nodes=1))
    found += looked_at(scratch.TOPIC, lambda: _try_eviction(given))
    found += looked_at(machine.NODE, _look_at_node)
    found += looked_at(machine.ENVIRONMENT, lambda: machine.judge_environment(os.environ))
    return found


def look_at_python() -> Iterator[Finding]:
    """Check Python and pffbench."""
    version = (sys.version_info.major, sys.version_info.minor, sys.version_info.micro)
    yield libraries.judge_python(version, sys.executable or platform.python_implementation())
    facts = software_facts([])["pffbench"]
    assert isinstance(facts, dict)
    yield from libraries.judge_pffbench(facts)


def look_at_optional() -> Iterator[Finding]:
    """Check the optional libraries, without importing them."""
    return libraries.judge_optional(
        {name: libraries.installed_version(name) for name in libraries.OPTIONAL}
    )


def look_at_parent(given: str | None, nodes: int) -> Iterator[Finding]:
    """Check the file system of the scratch parent, which need not exist yet."""
    parent, _ = scratch_parent(given)
    there: FileSystem = filesystem(parent)
    yield from scratch.judge_filesystem(there, nodes)
    yield from scratch.judge_results(same_filesystem(str(Path.cwd()), parent))


def judge_cache_at(made: Scratch) -> Finding:
    """Test whether the page cache can be dropped in a directory of our own."""
    there = filesystem(made.directory)
    return scratch.judge_eviction(scratch.part_kept_in_cache(made), there.in_memory)


def _try_eviction(given: str | None) -> Iterator[Finding]:
    try:
        with scratch.own_directory(given) as made:
            yield judge_cache_at(made)
    except UserError as error:
        yield scratch.judge_refusal(error)


def _look_at_node() -> Iterator[Finding]:
    limit = rank_facts()["memory_limit_bytes"]
    return machine.judge_node(host_facts(), 0, limit if isinstance(limit, int) else None)
