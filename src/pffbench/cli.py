"""The command line. It loads neither MPI nor a format's library; only a run loads them."""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any, NoReturn

from pffbench.commands import (
    COMMANDS,
    command_module,
    command_names,
    commands_by_task,
    help_of,
)
from pffbench.commands.compare import NEXT_SIDE
from pffbench.errors import CTRL_C, EXIT_STATUSES, NOT_VALID, VALID, UserError
from pffbench.job.launcher import is_launched, speaks_for_all
from pffbench.run.output import best_effort_output, status_after
from pffbench.text import one_line, perhaps_meant, without_digests

_PURPOSE = "Compares parallel HDF5, parallel netCDF4 and Zarr. Raw I/O is measured too."
_SHORT_HELP = f"""\
{_PURPOSE}

  pffbench run                     compare the formats (about two minutes)
    mpiexec -n 2 pffbench run        on 2 ranks (use one per core)
  pffbench run --list              experiments and their questions
  pffbench plan EXPERIMENT.yaml    a dry run: cases, bytes, time
  pffbench report RUN              tables, figures and a page of a finished run
  pffbench recommend RUN           the format to use, and a program
  pffbench compare OLD NEW         which of two runs is faster
  pffbench doctor                  check the installation, with remedies

RUN is the results directory that a run names at its end. All commands:
pffbench --help. Under a launcher (mpiexec, srun) "python -m pffbench" alone
is "run".
"""
_OVERVIEW = f"""\
{_PURPOSE}

  mpiexec -n 2 python -m pffbench run           the default experiment, 2 ranks
  srun -n 64 python -m pffbench run exp.yaml    an experiment, in an allocation
  pffbench plan exp.yaml --ranks 64             its cases and their cost

Without a command, the program runs the default experiment if a launcher
(mpiexec, srun) started it. If not, it prints a short help.
"""
#: The line below each help.
_STATUSES = "'pffbench help exit' explains the exit status."


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the program and leave with its exit status, one of `EXIT_STATUSES`."""
    given = with_command(list(sys.argv[1:] if arguments is None else arguments))
    of_run = given[:1] == ["run"] and not {"-h", "--help", "--list"} & set(given)
    with best_effort_output(of_run=of_run) as output:
        try:
            status = _run_command(given)
        except SystemExit as ended:  # such as of --help, which is output too
            status = int(ended.code or VALID)
    sys.exit(status if of_run else status_after(status, output))


def _run_command(given: Sequence[str]) -> int:
    """Run a command and return its exit status."""
    if not given:
        print(_SHORT_HELP, end="")
        return VALID
    if given == ["help", "exit"]:
        for status, meaning in EXIT_STATUSES.items():
            print(f"{status:3}  {meaning}")
        return VALID
    if given[0] == "compare":  # argparse would take the first of them away
        given = [NEXT_SIDE if word == "--" else word for word in given]
    parsed = make_parser(given[0]).parse_args(given)
    try:
        _check_directory()
        command = command_module(parsed.command)
        _collect_garbage()
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # see `pffbench.__main__`
            signal.signal(signal.SIGINT, signal.default_int_handler)
        with reading(parsed):
            return int(command.main(parsed))
    except UserError as error:
        print(one_line(f"pffbench: {without_digests(str(error))}"), file=sys.stderr)
        return error.exit_status
    except OSError as error:
        where = "" if error.filename is None else f"{error.filename}: "
        print(one_line(f"pffbench: {where}{error.strerror or error}"), file=sys.stderr)
    except (MemoryError, ImportError) as error:
        if isinstance(error, ImportError) and "cannot allocate memory" not in str(error).lower():
            raise
        print("pffbench: there is not enough memory, or ulimit -v is too low", file=sys.stderr)
    except KeyboardInterrupt:
        print("pffbench: interrupted", file=sys.stderr)
        return CTRL_C
    return NOT_VALID


def _collect_garbage() -> None:
    """Enable the garbage collector again where the program started with it disabled.

    The modules stay: searching all their objects once would take milliseconds, on each rank.
    """
    if not gc.isenabled():
        gc.freeze()
        gc.enable()  # a command may disable it


def _check_directory() -> None:
    """Refuse to work in a directory that has been removed, in which no path means anything.

    Raises
    ------
    UserError
        In the process that reports for all.
    """
    try:
        Path.cwd()
    except OSError as error:
        if not speaks_for_all(os.environ):
            sys.exit(VALID)
        raise UserError(
            f"the current directory is not there any more ({error.strerror}); change to another one"
        ) from None


def reading(parsed: argparse.Namespace) -> AbstractContextManager[None]:
    """Return the context of a command that reads results directories, of whatever origin."""
    given = vars(parsed)
    runs = [run for run in given.get("runs", []) if run != NEXT_SIDE]
    if not runs:  # `doctor` has to work where the libraries that read records are missing
        return nullcontext()
    from pffbench.record.run_json import readable

    _name_killed(runs)
    return readable(*runs)


def _name_killed(directories: Sequence[str]) -> None:
    """Print how to go on with each run that was killed; its own record cannot say that it was."""
    from pffbench.record.lock import killed
    from pffbench.record.run_json import RunRecord
    from pffbench.results.rerun import command_to_resume

    for directory in directories:
        why = killed(directory)
        # What cannot be read, the command itself reports.
        with suppress(ValueError, UserError):
            record = RunRecord.load(directory)
            if why and record.status == "interrupted":
                again = command_to_resume(record, directory)
                text = f"pffbench: {directory}: the run was killed ({why}); go on with: {again}"
                print(one_line(text), file=sys.stderr)


def with_command(arguments: list[str]) -> list[str]:
    """Insert the command of the program alone under a launcher, and turn ``help`` into an option.

    Elsewhere the program alone stays without a command.
    """
    match arguments:
        case []:
            return ["run"] if is_launched(os.environ) else []
        case ["help"]:
            return ["--help"]
        case ["help", command] if command != "exit":
            return [command, "--help"]
    return arguments


class _ByTask(argparse.RawDescriptionHelpFormatter):
    """Help that lists the commands by their tasks."""

    def _format_action(self, action: argparse.Action) -> str:
        if not isinstance(action, argparse._SubParsersAction):
            return super()._format_action(action)
        lines = []
        for task, names in commands_by_task().items():
            lines += [f"  {task}", *(f"    {name:10} {help_of(name)}" for name in names)]
        return "\n".join(lines) + "\n"


class Parser(argparse.ArgumentParser):
    """A parser whose errors one process reports for all that a launcher started."""

    def error(self, message: str) -> NoReturn:
        """Report the error in the command line, once, and end."""
        if not speaks_for_all(os.environ):
            sys.exit(VALID)  # the status of the reporting process is the job's
        if "not allowed with" in message and (unknown := self._unknown()):
            # What follows an unknown option was taken for an experiment beside another one.
            message = f"unrecognized arguments: {unknown}"
        super().error(f"{message}{self._meant(message)}")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse, and keep what was given for the message of an error."""
        self._given = list(sys.argv[1:] if args is None else args)
        return super().parse_known_args(args, namespace)

    def _unknown(self) -> str:
        """Return the first option that was given and does not exist; often nothing."""
        options = (word.partition("=")[0] for word in self._given if word.startswith("-"))
        known = tuple(self._option_string_actions)
        return next((o for o in options if not any(k.startswith(o) for k in known)), "")

    def _meant(self, message: str) -> str:
        """Return the option that was probably meant instead of an unknown one; often nothing."""
        head, _, given = message.partition("unrecognized arguments: ")
        if head or not given.startswith("-"):
            return ""
        parsers = [self]
        for action in self._actions:
            if isinstance(action.choices, dict):
                parsers += action.choices.values()
        known = [name for parser in parsers for name in parser._option_string_actions]
        return perhaps_meant(given.split()[0].partition("=")[0], known)

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """Refuse an unknown command or choice, with the one that was probably meant."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            if hint := perhaps_meant(str(value), list(map(str, action.choices or ()))):
                raise argparse.ArgumentError(action, f"{error.message}{hint}") from None
            raise


class _Version(argparse.Action):
    """Prints version and commit; git is asked for them only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from pffbench.version import origin

        print(f"pffbench {origin()}")
        parser.exit()


def make_parser(command: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of the whole command line, or the one that the first argument needs.

    Every rank of a run builds one, and the other commands would take most of the time.

    Parameters
    ----------
    command : str, optional
        First argument of the command line. Where it is a command, the parser has no other one;
        where it is not, such as ``--help``, all commands are there without their options.
    """
    parser = Parser(
        prog="pffbench",
        description=_OVERVIEW,
        epilog=_STATUSES,
        formatter_class=_ByTask,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show version and commit")
    commands = parser.add_subparsers(
        title="commands", dest="command", required=True, metavar="COMMAND"
    )
    known = command in COMMANDS or command in command_names()
    for name in [command] if command is not None and known else command_names():
        _add_command(commands, name, with_options=known or command is None)
    return parser


def _add_command(
    commands: argparse._SubParsersAction[Parser], name: str, *, with_options: bool
) -> None:
    text = help_of(name)
    parser = commands.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog=_STATUSES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    if with_options:
        command_module(name).add_arguments(parser)
