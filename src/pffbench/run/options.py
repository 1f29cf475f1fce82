"""Options of `pffbench run`: the arguments of its command line and the record made of them.

An option is an argument in `add_arguments` and a field of `RunOptions` with its name. If the ranks
of each environment need it too, it is in `RunOptions.of_ranks`; if the record keeps it, it is in
`enter_options` (`run/recording.py`). Light, since the command line imports it.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass, fields
from typing import Literal

from pffbench.errors import UserError
from pffbench.units import Duration


@dataclass(frozen=True)
class RunOptions:
    """Options of a run, as given in the command line."""

    #: Path of the experiment, or name of a built-in one; None for the default.
    experiment: str | None
    #: Changes of the experiment, as ``KEY=VALUE``.
    overrides: tuple[str, ...]
    #: Directory on the file system under test.
    scratch: str | None
    #: Results directory of a new run, or of the run to resume.
    out: str | None
    resume: str | None
    #: The part of every repetition done by this job; None for all of it.
    stage: Literal["write", "read"] | None
    #: Whether the run in `out` is resumed if it has begun, on whatever hosts.
    batch: bool
    #: Whether the commands that the experiment or the record of a run names are started.
    trust: bool
    #: Maximum duration of the run in seconds, infinite for no limit; None for the time left to the
    #: batch job.
    max_time: float | None
    #: No option: the number of runs of a folder that share the time of the batch job, this one and
    #: those that follow it.
    job_share: int
    #: No option: the environment of these ranks, in a run of several. Before each repetition they
    #: wait until the process that started them allows it.
    environment: str | None
    #: Whether times count that were measured while others used the machine; the answer says so.
    accept_busy: bool
    #: The site's command that drops the page cache of a node.
    drop_hook: str | None
    #: Print the tables on a narrow terminal too.
    tables: bool
    #: Print the answer alone, without progress, tables and cautions.
    quiet: bool
    #: Print the results as JSON instead of text and progress.
    json: bool

    @property
    def is_silent(self) -> bool:
        """Whether only results are printed, or another process reports the progress."""
        return self.json or self.quiet or self.environment is not None

    @classmethod
    def of_arguments(cls, arguments: argparse.Namespace) -> RunOptions:
        """Return the options of a parsed command line."""
        given = {field.name: getattr(arguments, field.name) for field in fields(cls)}
        return cls(**given | {"overrides": tuple(arguments.overrides)})

    def of_ranks(self) -> list[str]:
        """Return the arguments for the ranks that a run of several environments starts.

        The other options concern the run as a whole: its experiment, results and output.
        """
        given = ["--accept-busy"] if self.accept_busy else []
        if self.scratch is not None:
            given += ["--scratch", self.scratch]
        if self.drop_hook is not None:
            given += ["--drop-hook", self.drop_hook]
        return given


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `pffbench run`."""
    parser.set_defaults(environment=None, job_share=1)
    add_experiment(parser)
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--out",
        metavar="DIR",
        help="new results directory (default: ./pffbench-results/NAME-DATE-PID) "
        "(example: --out results/first)",
    )
    where.add_argument(
        "--resume",
        metavar="DIR",
        help="resume the run in this results directory, with the same number of ranks and the "
        "same software (example: --resume results/first)",
    )
    parser.add_argument(
        "--stage",
        choices=("write", "read"),
        help="run an experiment with cache=separate in two jobs: 'write' writes the files and "
        "keeps them, and 'read' reads them on other nodes (example: --resume results/first --stage "
        "read)",
    )
    parser.add_argument(
        "--batch",
        action="store_true",
        help="for jobs that a scheduler may start again. Needs --out DIR. If a run has begun in "
        "DIR, resume it, even if the job has other hosts. If that run is finished, do nothing",
    )
    parser.add_argument(
        "--trust",
        action="store_true",
        help="start the Python interpreters and commands that are named in the experiment, or in "
        "the run to repeat. Without this option they are listed, and nothing is started",
    )
    parser.add_argument(
        "--max-time",
        type=_limit,
        metavar="TIME",
        help="limit of the duration of the run: start no repetition that would end later. 'none': "
        "no limit (default: the remaining time of the Slurm job) (example: --max-time '20 min')",
    )
    parser.add_argument(
        "--accept-busy",
        action="store_true",
        help="accept times measured while others used the machine. The answer names the load",
    )
    parser.add_argument(
        "--drop-hook",
        metavar="COMMAND",
        help="with cache=dropped: command that each node runs after the files are evicted and "
        "before they are read. It drops other caches, such as directories and inodes (example: "
        "--drop-hook 'sudo /usr/local/sbin/drop-caches')",
    )
    printed = parser.add_mutually_exclusive_group()
    printed.add_argument(
        "--json",
        action="store_true",
        help="print only the results, as the JSON document that is also results.json in the "
        "results directory",
    )
    printed.add_argument(
        "-q",
        "--quiet",
        action="store_true",
        help="print only the results directory and the answer. summary.md has the rest",
    )
    parser.add_argument(
        "--tables",
        action="store_true",
        help="also print the tables behind the answer, which summary.md always has",
    )


def add_experiment(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that select an experiment and the file system."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--list",
        action="store_true",
        help="list the experiments of this package with the question that each answers, its ranks "
        "and time",
    )
    which.add_argument(
        "experiment",
        nargs="?",
        metavar="EXPERIMENT.yaml",
        help="experiment file, name from --list, results directory of a run to repeat, or folder "
        "of experiment files. 'quick' is a part of the default experiment that needs less than a "
        "minute (default: the experiment 'default') (example: mine.yaml)",
    )
    add_changes(parser)


def add_changes(parser: argparse.ArgumentParser, *, scratch: bool = True) -> None:
    """Add the arguments that change an experiment and, where wanted, select the file system."""
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="overrides",
        help="change a key of the experiment, or of all its cases. May be repeated (example: --set "
        "repetitions=3 --set cache=dropped --set zarr.format=2)",
    )
    if not scratch:
        return
    parser.add_argument(
        "--scratch",
        metavar="DIR",
        help="directory on the file system under test. A run writes its files into a new directory "
        "below it, and removes them at the end (default: $PFFBENCH_SCRATCH, $SCRATCH or "
        "./pffbench-scratch) (example: --scratch /lustre/me)",
    )


def _runs(text: str) -> int:
    """Convert a number of starts, which is at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number, 1 or more")
    return int(text)


def _limit(text: str) -> float:
    """Convert a time to seconds; none is infinite."""
    if text == "none":
        return math.inf
    try:
        return Duration.parse(text)
    except UserError as error:
        raise argparse.ArgumentTypeError(f"{error}, or none") from None
