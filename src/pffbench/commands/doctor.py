"""`pffbench doctor`: abilities of the software and this machine, with remedies for problems."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import asdict

from pffbench.doctor.finding import MAKE_ENV, Finding, count, print_report
from pffbench.errors import NOT_VALID, VALID, UserError

HEALTHY, PROBLEMS = VALID, NOT_VALID
#: Version of what `--json` prints; a higher one changed or removed a key.
_JSON_VERSION = 1


def main(arguments: argparse.Namespace) -> int:
    """Examine, alone or on all ranks, and print the findings. Return the exit status."""
    try:
        if arguments.no_mpi:
            from pffbench.doctor.local import examine_alone

            return _report(examine_alone(arguments.scratch), arguments)
        return _with_mpi(arguments)
    except ImportError as error:  # a module so basic that the checks themselves need it
        return _report([Finding("Libraries", "problem", f"{error}", MAKE_ENV)], arguments)


def _with_mpi(arguments: argparse.Namespace) -> int:
    from pffbench.parallel.launcher import speaks_for_all, start_mpi

    try:
        comm = start_mpi()
    except (ImportError, RuntimeError) as error:
        return _without_mpi4py(arguments, error) if speaks_for_all(os.environ) else HEALTHY
    except UserError as error:  # in the one process that reports
        return _wrongly_launched(arguments, error)
    if comm.size == 1 and not speaks_for_all(os.environ):
        # One process reports for all of them that they cannot find each other, and its status is
        # the job's: srun ends all tasks of a step at the first failure.
        return HEALTHY
    from pffbench.doctor.collective import Examination
    from pffbench.parallel.topology import Team

    team = Team.of(comm)
    found = Examination(team, arguments.scratch).run()
    status = _report(found, arguments) if team.is_root else HEALTHY
    return int(team.comm.bcast(status))


def _without_mpi4py(arguments: argparse.Namespace, error: Exception) -> int:
    from pffbench.doctor.local import examine_alone

    text = f"mpi4py.MPI cannot be loaded: {type(error).__name__}: {error}"
    found = examine_alone(arguments.scratch, "not looked at without mpi4py")
    return _report([*found, Finding("MPI", "problem", text, MAKE_ENV)], arguments)


def _wrongly_launched(arguments: argparse.Namespace, error: UserError) -> int:
    from pffbench.doctor import mpi_stack
    from pffbench.doctor.local import examine_alone

    why = "not looked at, since MPI would not find the other processes"
    found = examine_alone(arguments.scratch, why)
    remedy = "start with srun --mpi=pmix, or with the mpiexec of Open MPI"
    return _report([*found, Finding(mpi_stack.LAUNCHER, "problem", str(error), remedy)], arguments)


def _report(found: list[Finding], arguments: argparse.Namespace) -> int:
    if arguments.json:
        from pffbench.run.output import print_json

        print_json(
            {
                "format": "pffbench doctor",
                "version": _JSON_VERSION,
                "problems": count(found, "problem"),
                "warnings": count(found, "warning"),
                "findings": [asdict(finding) for finding in found],
            }
        )
    else:
        print_report(found)
    sys.stdout.flush()
    return PROBLEMS if count(found, "problem") else HEALTHY
