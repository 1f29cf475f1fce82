"""Options of the commands that take an experiment."""

from __future__ import annotations

import argparse

from pffbench.cli_results import ranks
from pffbench.errors import UserError
from pffbench.units import Duration


def add_plan(parser: argparse.ArgumentParser) -> None:
    """Add the options of `pffbench plan`."""
    _add_experiment(parser)
    parser.add_argument(
        "--ranks",
        type=ranks,
        metavar="N",
        help="number of ranks to plan for; inside a Slurm job its tasks, else 1 "
        "(example: --ranks 64)",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="show all cases, also where there are more than 200 "
        "(example: pffbench plan exp.yaml --all)",
    )


def add_run(parser: argparse.ArgumentParser) -> None:
    """Add the options of `pffbench run`."""
    _add_experiment(parser)
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


def _add_experiment(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "experiment",
        nargs="?",
        metavar="EXPERIMENT.yaml",
        help="experiment file, or a folder of them, which are run one after another; the built-in "
        "default comparison when not given (example: configs/paper/2048x128.yaml)",
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


def _patience(text: str) -> str:
    """Check a limit for hanging: a time above 0, or a word."""
    if text != "auto" and _duration(text) != "none" and Duration.parse(text) <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no time to wait; write none for no limit")
    return text


def _duration(text: str) -> str:
    """Check a time; it is parsed again where it is needed."""
    if text != "none":
        try:
            Duration.parse(text)
        except UserError as error:
            raise argparse.ArgumentTypeError(f"{error}, or none") from None
    return text
