"""The command line. It loads neither MPI nor a format's library; only a run loads them."""

from __future__ import annotations

import argparse
import gc
import keyword
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from pffbench import __version__
from pffbench.cli_options import (
    add_bisect,
    add_compare,
    add_import,
    add_instructions,
    add_json,
    add_plan,
    add_recommend,
    add_report,
    add_scaling,
)
from pffbench.commands.compare import NEXT_SIDE
from pffbench.errors import NOT_VALID, VALID, UserError
from pffbench.parallel.launcher import is_launched, speaks_for_all
from pffbench.run.options import add_arguments as add_run
from pffbench.run.output import best_effort_output, status_after
from pffbench.text import one_line, similar_word, without_digests

#: Exit status of a program that Ctrl-C ended, as shells report it.
_INTERRUPTED = 130
_COMMANDS = {
    "run": "run an experiment on all ranks; without a name, the built-in one",
    "plan": "print the cases of an experiment and their cost; write nothing",
    "doctor": "check the software and this machine, and name remedies",
    "report": "rebuild summary, tables and plots of results directories",
    "compare": "compare the same cases in two or more runs: faster, slower, or not decided",
    "bisect": "find the version of a package from which on a case takes longer",
    "instructions": "count the instructions that a library function takes in each environment",
    "scaling": "show how rates grow with ranks or nodes, and predict those of larger jobs",
    "recommend": "recommend a format and settings, with certainty and a program that uses them",
    "import": "create a results directory from the output of IOR or h5bench",
    "clean": "list the files that killed runs left in a scratch directory; --remove removes them",
    "backends": "list the backends and their capabilities",
    "workloads": "list the workloads and their parameters",
    "schema": "print the JSON Schema of an experiment, or of results.json",
    "completion": "print a script that completes commands, options and files in bash or zsh",
}

_PURPOSE = "Compares parallel HDF5, parallel netCDF4 and Zarr with raw MPI-IO and POSIX."
_SHORT_HELP = f"""\
{_PURPOSE}

  pffbench run                     compare the formats here; about two minutes
    mpiexec -n 4 pffbench run        on 4 ranks (srun -n 64 in a Slurm job)
  pffbench plan EXPERIMENT.yaml    what an experiment would do, and its cost
  pffbench report RUN              tables, figures and a page of a finished run
  pffbench recommend RUN           the format to use, and a program
    pffbench compare BASE NEW        which of two runs is faster
  pffbench doctor                  what works here, and remedies for the rest

RUN is the results directory that a run names at its end. All commands:
pffbench --help. Under a launcher (mpiexec, srun) "python -m pffbench" without
a command is "run".
"""
_OVERVIEW = f"""\
{_PURPOSE}

  mpiexec -n 4 python -m pffbench run           the built-in comparison
  srun -n 64 python -m pffbench run exp.yaml    an experiment, in an allocation
  pffbench plan exp.yaml --ranks 64             what it would do

Without a command, the program runs the built-in comparison under a launcher
(mpiexec, srun), and prints a short help elsewhere.
"""
_STATUSES = """\
exit status:
  0  all cases succeeded and the run is valid; the command did what was asked
  1  a case failed, the run is not valid, or a check found a problem
  2  the input is wrong; nothing was created
  3  a signal or a time limit ended the run; it can be resumed
  4  compare --fail-if-slower --strict: the runs do not decide
  5  compare --fail-if-slower: the machine changed
  130  Ctrl-C ended the command
"""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the program and leave with its exit status; `pffbench --help` lists them."""
    given = with_command(list(sys.argv[1:] if arguments is None else arguments))
    of_run = given[:1] == ["run"] and not {"-h", "--help"} & set(given)
    with best_effort_output(of_run=of_run) as output:
        try:
            status = _done(given)
        except SystemExit as ended:  # such as of --help, which is output too
            status = int(ended.code or VALID)
    sys.exit(status if of_run else status_after(status, output))


def _done(given: Sequence[str]) -> int:
    """Run a command and return its exit status."""
    if not given:
        print(_SHORT_HELP, end="")
        return VALID
    if given[0] == "compare":  # argparse would take the first of them away
        given = [NEXT_SIDE if word == "--" else word for word in given]
    parsed = make_parser(given[0]).parse_args(given)
    module = f"{parsed.command}_" if keyword.iskeyword(parsed.command) else parsed.command
    try:
        _check_directory()
        command = import_module(f"pffbench.commands.{module}")
        _collect_garbage()
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
        return _INTERRUPTED
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

    for directory in directories:
        why = killed(directory)
        # What cannot be read, the command itself reports.
        with suppress(ValueError, UserError):
            if why and RunRecord.load(directory).status == "interrupted":
                text = f"pffbench: {directory}: the run was killed ({why}); go on with: "
                print(one_line(f"{text}pffbench run --resume {directory}"), file=sys.stderr)


def with_command(arguments: list[str]) -> list[str]:
    """Insert the command where none is named: `run`, unless it is wrong.

    The program alone is `run` under a launcher, and stays without a command elsewhere.
    """
    if not arguments:
        return ["run"] if is_launched(os.environ) else []
    first = arguments[0]
    if first in _COMMANDS or first in ("-h", "--help", "--version"):
        return arguments
    if first.startswith("-") or Path(first).suffix or "/" in first or Path(first).exists():
        return ["run", *arguments]  # options of a run, or its experiment
    return arguments


class Parser(argparse.ArgumentParser):
    """A parser whose errors one process reports for all that a launcher started."""

    def error(self, message: str) -> NoReturn:
        """Report the error in the command line, once, and end."""
        if not speaks_for_all(os.environ):
            sys.exit(VALID)  # the status of the reporting process is the job's
        super().error(f"{message}{self._meant(message)}")

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
        return _near(given.split()[0].partition("=")[0], known)

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """Refuse an unknown command or choice, with the one that was probably meant."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            if hint := _near(str(value), list(map(str, action.choices or ()))):
                raise argparse.ArgumentError(action, f"{error.message}{hint}") from None
            raise


def _near(word: str, known: Sequence[str]) -> str:
    """Return the question whether another word was meant; empty if none is similar."""
    near = similar_word(word, known)
    return f"; did you mean {near!r}?" if near else ""


def make_parser(command: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of the whole command line, or of one command alone.

    Every rank of a run builds one, and the other commands would take most of the time.
    """
    parser = Parser(
        prog="pffbench",
        description=_OVERVIEW,
        epilog=_STATUSES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"pffbench {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    options = _options()
    for name in [command] if command in _COMMANDS else _COMMANDS:
        text = _COMMANDS[name]
        made = commands.add_parser(
            name,
            help=text,
            description=f"{text[0].upper()}{text[1:]}.",
            epilog=_STATUSES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if name in options:
            options[name](made)
    return parser


def _options() -> dict[str, Callable[[argparse.ArgumentParser], None]]:
    """Return the function that adds the options of each command, where it has options."""
    return {
        "run": add_run,
        "plan": add_plan,
        "doctor": _add_doctor,
        "clean": _add_clean,
        "report": add_report,
        "compare": add_compare,
        "bisect": add_bisect,
        "instructions": add_instructions,
        "scaling": add_scaling,
        "recommend": add_recommend,
        "import": add_import,
        "schema": _add_schema,
        "completion": _add_completion,
    }


def _add_doctor(parser: argparse.ArgumentParser) -> None:
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


def _add_clean(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--scratch",
        metavar="DIR",
        help="scratch directory of the runs (default: $PFFBENCH_SCRATCH, $SCRATCH or "
        "./pffbench-scratch) (example: --scratch /lustre/me)",
    )
    parser.add_argument(
        "--remove",
        action="store_true",
        help="remove the files of runs that are known to have ended (example: --remove)",
    )
    parser.add_argument(
        "--kept",
        action="store_true",
        help="include files that a job with --stage write left for another one to read "
        "(example: --remove --kept)",
    )


def _add_schema(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "document",
        nargs="?",
        choices=("experiment", "results"),
        default="experiment",
        metavar="DOCUMENT",
        help="experiment (the default) or results, which is results.json (example: results)",
    )


def _add_completion(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(parser=make_parser)
    parser.add_argument(
        "shell",
        choices=("bash", "zsh", "tcsh"),
        metavar="SHELL",
        help="bash, zsh or tcsh (example: pffbench completion bash > "
        "~/.local/share/bash-completion/completions/pffbench)",
    )
