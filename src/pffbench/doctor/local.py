"""Checks without MPI, for login nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pffbench.doctor import backends, locks, mpi_stack, scratch
from pffbench.doctor.checks import Subject, look_around
from pffbench.doctor.finding import Finding, Report, grouped, looked_at
from pffbench.doctor.installation import find_installation
from pffbench.doctor.libraries import unloaded_libraries
from pffbench.errors import UserError

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
    unknown = Finding(mpi_stack.MPI_TOPIC, "unknown", f"library, MPI-IO and launcher: {reason}")
    found = [*subject.look("nothing"), *more, unknown]
    found += looked_at(scratch.TOPIC, lambda: _try_directory(subject))
    runs = backends.abilities(subject.broken, None, mpi="mpi4py" not in subject.broken)
    return Report(subject.installation.summary, grouped(found), tuple(runs))


def _try_directory(subject: Subject) -> Iterator[Finding]:
    try:
        with scratch.own_directory(subject.given) as made:
            yield from replace(subject, made=made).look("scratch")
            with locks.held(made.directory) as refused:
                tries = [(False, locks.tried_by_another_process(made.directory))]
            yield from locks.judge_locks(refused, tries)
    except UserError as error:
        yield scratch.judge_refusal(error)
