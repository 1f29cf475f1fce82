"""Options of the commands that read results directories, and of numbers in options."""

from __future__ import annotations

import argparse


def add_report(parser: argparse.ArgumentParser) -> None:
    """Add the options of `pffbench report`."""
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="results directories (example: pffbench-results/default-20260101-120000)",
    )
    parser.add_argument(
        "--join",
        action="store_true",
        help="take the runs as one, whose libraries need different environments, and write one "
        "report of all their cases (example: --join results/zarr3 results/zarr2)",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="where a joined report goes; beside the first run, with -joined behind its name, when "
        "not given (example: --out results/both)",
    )
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument(
        "--fom",
        action="store_true",
        help="only print the figures of merit, one line each, for ReFrame and Ramble; write "
        "nothing (example: --fom results/first)",
    )
    shown.add_argument(
        "--published",
        action="store_true",
        help="only print runs beside the published numbers of the study that they redo; write "
        "nothing (example: --published results/first)",
    )
    shown.add_argument(
        "--published-csv",
        action="store_true",
        help="only write the times into published-csv/ in the run's directory, in the layout of "
        "the study's own files; of file-format-testing (example: --published-csv results/first)",
    )


def add_compare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `pffbench compare`."""
    parser.add_argument(
        "base", metavar="BASE", help="results directory to compare with (example: results/before)"
    )
    parser.add_argument(
        "new", nargs="+", metavar="NEW", help="results directories (example: results/after)"
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="directory for compare.md, compare.csv and figures; only the terminal when not given "
        "(example: --out results/before-after)",
    )
    parser.add_argument(
        "--fail-if-slower",
        type=percent,
        metavar="PERCENT",
        help="pass (status 0) only when all totals are shown not to be slower by more than this; 1 "
        "when one is slower, 2 when nothing is comparable, 4 when the repetitions are too few to "
        "decide, 5 when raw transfers show that the machine changed (example: --fail-if-slower "
        "5%%)",
    )
    parser.add_argument(
        "--min-effect",
        type=percent,
        metavar="PERCENT",
        default="2%",
        help="call no smaller difference faster or slower (2%%) (example: --min-effect 1%%)",
    )
    parser.add_argument(
        "--across",
        action="append",
        default=[],
        metavar="KEY",
        help="let cases differ in this parameter, or option of a backend, because it is what is "
        "compared; may be given several times (example: --across codec --across zarr.format)",
    )


def add_scaling(parser: argparse.ArgumentParser) -> None:
    """Add the options of `pffbench scaling`."""
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="results directories of one experiment at several sizes of the job (example: "
        "results/1n results/2n results/4n)",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="directory for tables and figures, new, empty or of an earlier call; 'scaling' beside "
        "the runs when not given (example: --out results/scaling)",
    )
    parser.add_argument(
        "--over",
        choices=("ranks", "nodes"),
        help="what the sizes are; nodes where their number varies and each has as many ranks, else "
        "ranks, when not given (example: --over ranks)",
    )
    parser.add_argument(
        "--predict",
        type=ranks,
        metavar="N",
        help="ranks or nodes to predict the rate for; twice the largest number when not given "
        "(example: --predict 64)",
    )


def add_recommend(parser: argparse.ArgumentParser) -> None:
    """Add the options of `pffbench recommend`."""
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="results directories (example: results/mine)",
    )
    how_often = parser.add_mutually_exclusive_group()
    how_often.add_argument(
        "--weight",
        type=weight,
        default=(1.0, 1.0),
        metavar="WRITE:READ",
        help="how often data are written and read in your work; 1:1 when not given "
        "(example: --weight 1:0)",
    )
    how_often.add_argument(
        "--reads",
        type=reads,
        dest="weight",
        metavar="N",
        help="how often data are read for each time that they are written (example: --reads 10)",
    )


def add_import(parser: argparse.ArgumentParser) -> None:
    """Add the options of `pffbench import`."""
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="what the program wrote: JSON of IOR 4 (-O summaryFormat=JSON), CSV of h5bench "
        "(CSV_FILE) (example: ior-posix.json ior-mpiio.json)",
    )
    parser.add_argument(
        "--from",
        choices=("ior", "h5bench"),
        required=True,
        dest="program",
        help="the program that wrote the files (example: --from ior)",
    )
    parser.add_argument(
        "--out",
        required=True,
        metavar="DIR",
        help="new results directory (example: --out results/ior)",
    )


def weight(text: str) -> tuple[float, float]:
    """Return two numbers that are not negative and not both zero."""
    parts = text.split(":")
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        numbers = []
    if len(numbers) != 2 or not all(0 <= n < float("inf") for n in numbers) or not any(numbers):
        raise argparse.ArgumentTypeError(f"{text!r} is not a weight of writing and reading (1:10)")
    return numbers[0], numbers[1]


def reads(text: str) -> tuple[float, float]:
    """Return the weights of one write and so many reads."""
    try:
        return weight(f"1:{text}")
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of reads (0 or more)") from None


def percent(text: str) -> float:
    """Return a percentage as a fraction of 1."""
    number, sign, rest = text.partition("%")
    try:
        part = float(number) / 100
    except ValueError:
        part = -1.0
    if not 0 <= part < float("inf") or not sign or rest.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage such as 5%")
    return part


def ranks(text: str) -> int:
    """Return a number of ranks."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of ranks (1 or more)")
    return number
