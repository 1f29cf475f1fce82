"""`pffbench compare`: the same cases in two or more runs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import groupby

from pffbench.commands.arguments import add_json
from pffbench.errors import UserError

#: Stands for the ``--`` between the sides, which argparse would take away.
NEXT_SIDE = "//"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.usage = (
        "pffbench compare [OPTION …] OLD NEW …\n"
        "       pffbench compare [OPTION …] OLD … -- NEW …\n"
        "       pffbench compare --baseline DIR --fail-if-slower PERCENT [OPTION …] NEW …\n"
        "       pffbench compare --counts [OPTION …] RUN …"
    )
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="OLD, NEW, RUN",
        help="results directories: the old run, then one or more new ones, each compared with "
        "the old one (example: results/before results/after). Or several runs of each side, with "
        "-- between the sides (example: results/old* -- results/new*)",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="directory for compare.md and compare.csv (default: not written) (example: --out "
        "results/before-after)",
    )
    parser.add_argument(
        "--fail-if-slower",
        type=_percent,
        metavar="PERCENT",
        help="gate for CI, with an exit status. 0 (PASSED): no time of writing or reading grew by "
        "more than this. 1 (FAILED): one did. 2 (NOT COMPARABLE): a case of the old run cannot be "
        "compared, for example because the new run lacks it. 4 (UNDECIDED): the runs cannot tell "
        "PASSED from FAILED. 5 (MACHINE CHANGED): the time of raw I/O changed by more than this "
        "(example: --fail-if-slower 20%%)",
    )
    parser.add_argument(
        "--allow-missing",
        action="store_true",
        help="with --fail-if-slower: pass even if the new run lacks a case of the old run",
    )
    parser.add_argument(
        "--baseline",
        metavar="DIR",
        help="with --fail-if-slower, for nightly jobs: compare tonight's runs (three are "
        "recommended) with the runs in DIR. The runs of the first night become the baseline: they "
        "are linked into DIR. Those of later nights are added if they are PASSED or UNDECIDED, as "
        "long as DIR has fewer than seven runs (example: "
        "--baseline results/baseline --fail-if-slower 20%% results/night-*)",
    )
    parser.add_argument(
        "--across",
        action="append",
        default=[],
        metavar="KEY",
        help="compare an old and a new case even if they have different values of this key. May be "
        "repeated (example: --across codec --across zarr.format)",
    )
    parser.add_argument(
        "--counts",
        action="store_true",
        help="compare counts (system calls, bytes, chunks) instead of times. One repetition of "
        "each run is enough, also on a busy machine. A single run of several environments is "
        "enough too: each environment is then compared with the first one of that run",
    )
    parser.add_argument(
        "--by",
        metavar="KEY",
        help="with --counts: compare cases of one run that differ only in this key (example: "
        "--counts results/run --by backend)",
    )
    parser.add_argument(
        "--fail-if-more",
        action="store_true",
        help="with --counts: exit status 1 if a count is larger than in the old run, or a case "
        "cannot be compared",
    )
    add_json(parser)


def _percent(text: str) -> float:
    """Return a percentage as a fraction of 1."""
    number, sign, rest = text.partition("%")
    try:
        part = float(number) / 100
    except ValueError:
        part = -1.0
    if not 0 <= part < float("inf") or not sign or rest.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage such as 5%")
    return part


def main(arguments: argparse.Namespace) -> int:
    """Compare runs, print the verdict and the written files. Return the exit status."""
    if arguments.counts or arguments.fail_if_more or arguments.by:
        return _compare_counts(arguments)
    from pffbench_analysis.compare import Gate, compare, compare_with_baseline

    gate = None
    if arguments.fail_if_slower is not None:
        gate = Gate(arguments.fail_if_slower, arguments.allow_missing)
    out, across, runs = arguments.out, arguments.across, arguments.runs
    if arguments.baseline is not None:
        if gate is None or NEXT_SIDE in runs or arguments.json:
            raise UserError(
                "--baseline judges the runs of a night: give NEW … and --fail-if-slower PERCENT, "
                "without --json"
            )
        return compare_with_baseline(arguments.baseline, runs, gate, out=out, across=across)
    status, _ = compare(sides_of(runs), out=out, across=across, gate=gate, as_json=arguments.json)
    return status


def _compare_counts(arguments: argparse.Namespace) -> int:
    """Compare the counts of runs; options that are of times are refused."""
    if not arguments.counts:
        raise UserError(f"--{'by' if arguments.by else 'fail-if-more'} needs --counts")
    for option in ("out", "baseline", "fail_if_slower", "allow_missing"):
        if getattr(arguments, option):
            raise UserError(f"--{option.replace('_', '-')} is of times; leave it out with --counts")
    if NEXT_SIDE in arguments.runs:
        raise UserError("--counts compares each run with the first one; leave out --")
    from pffbench_analysis.compare.counts import report_counts

    return report_counts(
        arguments.runs,
        across=arguments.across,
        by=arguments.by,
        fail_if_more=arguments.fail_if_more,
        as_json=arguments.json,
    )


def sides_of(runs: Sequence[str]) -> list[list[str]]:
    """Return the runs of each side, the old one first.

    Without `NEXT_SIDE` the first run is the old one, and each other one is compared with it.

    Raises
    ------
    UserError
        A side has no run.
    """
    sides = [list(side) for of, side in groupby(runs, lambda r: r == NEXT_SIDE) if not of]
    if NEXT_SIDE not in runs:
        sides = [[run] for run in runs]
    if len(sides) < 2 or len(sides) <= list(runs).count(NEXT_SIDE):
        raise UserError(
            "compare needs two runs or more: OLD NEW, or several of each: OLD … -- NEW …. "
            "pffbench recommend RUN compares the formats, settings and environments of one run"
        )
    return sides
