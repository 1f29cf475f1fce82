"""The command line. Nothing here loads MPI or a format's library; `run` does, when it runs."""

from __future__ import annotations

import argparse
import keyword
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import NoReturn

from pffbench import __version__
from pffbench.cli_results import (
    add_compare,
    add_import,
    add_recommend,
    add_report,
    add_scaling,
    ranks,
)
from pffbench.errors import VALID, UserError
from pffbench.parallel.launcher import speaks_for_all
from pffbench.units import Duration

_COMMANDS = {
    "run": "run an experiment on all ranks (the default command)",
    "plan": "print the cases of an experiment and what they cost; write nothing",
    "doctor": "tell what the software and this machine can do, with remedies",
    "report": "rebuild summary, tables and plots of results directories",
    "compare": "compare the same cases in two or more runs: faster, slower or no difference shown",
    "scaling": "tell how rates grow with ranks or nodes, and what more of them would bring",
    "recommend": "tell which format and settings to take, how sure that is, and the code for it",
    "import": "make a results directory of what IOR or h5bench measured",
    "clean": "list what killed runs left in a scratch directory; remove it with --remove",
    "backends": "list the backends and what they can do",
    "workloads": "list the workloads and their parameters",
    "schema": "print the JSON Schema of an experiment",
}

_OVERVIEW = """\
Compares parallel HDF5, parallel netCDF4 and Zarr, beside raw MPI-IO and POSIX.

  mpiexec -n 4 python -m pffbench                  the default comparison
  srun -n 64 python -m pffbench run exp.yaml       an experiment, inside an allocation
  pffbench plan exp.yaml --ranks 64                what it would do
"""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the program and leave with its exit status.

    0: all went well and the run is valid; 1: a case failed or the run is not valid; 2: the
    input is wrong and nothing was created; 3: a signal ended the run early.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    parsed = make_parser().parse_args(_with_command(given))
    module = f"{parsed.command}_" if keyword.iskeyword(parsed.command) else parsed.command
    command = import_module(f"pffbench.commands.{module}")
    try:
        with reading(parsed):
            status = command.main(parsed)
    except UserError as error:
        print(f"pffbench: {error}", file=sys.stderr)
        status = error.exit_status
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        sys.stderr.close()
        status = 0
    sys.exit(status)


def reading(parsed: argparse.Namespace) -> AbstractContextManager[None]:
    """Return what stands around a command that reads results directories, of whatever origin."""
    given = vars(parsed)
    runs = [*given.get("runs", []), *given.get("new", [])]
    if not runs:  # `doctor` has to work where what reads records is missing
        return nullcontext()
    from pffbench.results.record import readable

    return readable(*filter(None, [given.get("base"), *runs]))


def _with_command(arguments: list[str]) -> list[str]:
    """Put the default command before arguments that name none."""
    if arguments and (arguments[0] in _COMMANDS or arguments[0] in ("-h", "--help", "--version")):
        return arguments
    return ["run", *arguments]


class Parser(argparse.ArgumentParser):
    """A parser whose complaint one process makes for all that a launcher started."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the command line, once, and end."""
        if not speaks_for_all(os.environ):
            sys.exit(VALID)  # the status of the one that speaks is the job's
        super().error(message)


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = Parser(
        prog="pffbench", description=_OVERVIEW, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"pffbench {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    made = {
        name: commands.add_parser(
            name,
            help=text,
            description=f"{text[0].upper()}{text[1:]}.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        for name, text in _COMMANDS.items()
    }
    _add_experiment(made["run"])
    _add_run(made["run"])
    _add_experiment(made["plan"])
    made["plan"].add_argument(
        "--ranks",
        type=ranks,
        metavar="N",
        help="number of ranks to plan for; inside a Slurm job its tasks, else 1 "
        "(example: --ranks 64)",
    )
    made["plan"].add_argument(
        "--all",
        action="store_true",
        help="show all cases, also where there are more than 200 "
        "(example: pffbench plan exp.yaml --all)",
    )
    _add_doctor(made["doctor"])
    _add_clean(made["clean"])
    add_report(made["report"])
    add_compare(made["compare"])
    add_scaling(made["scaling"])
    add_recommend(made["recommend"])
    add_import(made["import"])
    return parser


def _add_experiment(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "experiment",
        nargs="?",
        metavar="EXPERIMENT.yaml",
        help="experiment file; the built-in default comparison when not given "
        "(example: configs/paper/2048x128.yaml)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="overrides",
        help="change a key of the experiment, or of all its cases; may be given several times "
        "(example: --set repetitions=3 --set cache=dropped --set zarr.format=2)",
    )
    parser.add_argument(
        "--scratch",
        metavar="DIR",
        help="directory on the file system under test; files are made in a new directory below "
        "it, which is removed at the end; $PFFBENCH_SCRATCH, $SCRATCH or ./pffbench-scratch when "
        "not given (example: --scratch /lustre/me)",
    )


def _add_run(parser: argparse.ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--out",
        metavar="DIR",
        help="new results directory; ./pffbench-results/NAME-DATE-PID when not given "
        "(example: --out results/first)",
    )
    where.add_argument(
        "--resume",
        metavar="DIR",
        help="go on with the run in this results directory, with the same number of ranks and "
        "the same software (example: --resume results/first)",
    )
    parser.add_argument(
        "--stage",
        choices=("write", "read"),
        help="for cache: separate: only write and keep the files, or, with --resume, read what "
        "another job wrote on other nodes (example: --resume results/first --stage read)",
    )
    parser.add_argument(
        "--other-hosts",
        action="store_true",
        help="with --resume: that the run goes on on other hosts is a remark, instead of making it "
        "not valid (example: --resume results/first --other-hosts)",
    )
    parser.add_argument(
        "--max-time",
        type=_duration,
        metavar="TIME",
        help="begin no repetition that would not end within this time, and save; the time that "
        "a Slurm job has left when not given, 'none' for no limit (example: --max-time '20 min')",
    )
    parser.add_argument(
        "--hang-timeout",
        type=_patience,
        default="auto",
        metavar="TIME",
        help="end the job, telling where every rank is, when a step of a repetition takes longer; "
        "10 min, and more for large or slow cases, when not given, 'none' for no limit "
        "(example: --hang-timeout '5 min')",
    )
    parser.add_argument(
        "--fail-fast",
        action="store_true",
        help="stop at the first case that fails (example: --fail-fast)",
    )
    parser.add_argument(
        "--drop-hook",
        metavar="COMMAND",
        help="command that each node runs to drop its caches before reads with cache: dropped "
        "(example: --drop-hook 'sudo /usr/local/sbin/drop-caches')",
    )
    parser.add_argument(
        "--record-account",
        action="store_true",
        help="record account, user and directories of the batch job too, which are left out of "
        "run.json otherwise (example: --record-account)",
    )
    parser.add_argument(
        "--fom",
        action="store_true",
        help="print the figures of merit at the end, one line each, for ReFrame and Ramble; they "
        "are in fom.txt of the results directory too (example: --fom)",
    )
    parser.add_argument(
        "--progress",
        choices=("auto", "bar", "plain", "none"),
        default="auto",
        help="how to tell how far the run is; auto draws a bar on a terminal and prints plain "
        "lines elsewhere (example: --progress plain)",
    )


def _add_doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--no-mpi",
        action="store_true",
        help="do not start MPI, as on a login node that forbids it (example: --no-mpi)",
    )
    parser.add_argument(
        "--scratch",
        metavar="DIR",
        help="look at this directory as the file system under test (example: --scratch /lustre/me)",
    )


def _add_clean(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--scratch",
        metavar="DIR",
        help="directory in which runs make theirs; $PFFBENCH_SCRATCH, $SCRATCH or "
        "./pffbench-scratch when not given (example: --scratch /lustre/me)",
    )
    parser.add_argument(
        "--remove",
        action="store_true",
        help="remove what belongs to runs that are known to have ended (example: --remove)",
    )
    parser.add_argument(
        "--kept",
        action="store_true",
        help="also what a job with --stage write has left for another one to read "
        "(example: --remove --kept)",
    )


def _patience(text: str) -> str:
    """Look whether a limit for hanging makes sense: a time above 0, or a word."""
    if text != "auto" and _duration(text) != "none" and Duration.parse(text) <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no time to wait; write none for no limit")
    return text


def _duration(text: str) -> str:
    """Look whether a time makes sense; it is read again where it is needed."""
    if text != "none":
        try:
            Duration.parse(text)
        except UserError as error:
            raise argparse.ArgumentTypeError(f"{error}, or none") from None
    return text
