"""Options of the commands beside `run`: of plans, and of results directories."""

from __future__ import annotations

import argparse
import math

from pffbench.errors import UserError
from pffbench.run.options import add_experiment
from pffbench.units import Size


def add_plan(parser: argparse.ArgumentParser) -> None:
    """Add the options of `pffbench plan`."""
    add_experiment(parser)
    parser.add_argument(
        "-n",
        "--ranks",
        type=ranks,
        metavar="N",
        help="number of ranks to plan for (default: the tasks of the Slurm job, else 1) "
        "(example: --ranks 64)",
    )
    parser.add_argument(
        "--node-memory",
        type=size,
        metavar="SIZE",
        help="memory of a node: a plan whose writer ranks hold more is refused (default: that of "
        "this machine, and a warning) (example: --node-memory 256GiB)",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="show all cases, even if there are more than 200 "
        "(example: pffbench plan exp.yaml --all)",
    )
    add_json(parser)


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the option of commands whose result programs read."""
    parser.add_argument(
        "--json",
        action="store_true",
        help="print one JSON document instead of text (example: --json)",
    )


def add_bisect(parser: argparse.ArgumentParser) -> None:
    """Add the options of `pffbench bisect`."""
    later = "a later version that is slower, or faster"
    for name, text in (("good", "a version before the change"), ("bad", later)):
        parser.add_argument(
            f"--{name}",
            required=True,
            metavar="NAME==VERSION",
            help=f"{text} of a package (example: --{name} h5py==3.1{3 if name == 'good' else 6}.0)",
        )
    parser.add_argument(
        "--case",
        required=True,
        metavar="EXPERIMENT.yaml",
        help="experiment file with one case (example: --case configs/many-datasets.yaml)",
    )
    parser.add_argument(
        "--total",
        choices=("write", "read"),
        default="write",
        help="the time that changed (default: write) (example: --total read)",
    )
    parser.add_argument(
        "--count",
        metavar="COUNTER",
        help="search for the version in which a counter of that time changed, such as system "
        "calls, or the instructions of a library function, instead of the time (example: --count "
        "write_calls, --count instructions:H5Dcreate2)",
    )
    parser.add_argument(
        "--margin",
        type=_margin,
        default=0.02,
        metavar="PART",
        help="smallest difference between the two that is searched for (default: 0.02) "
        "(example: --margin 0.01)",
    )
    parser.add_argument(
        "--versions",
        type=lambda text: text.split(","),
        default=[],
        metavar="V,…",
        help="versions between the two (default: all that pip lists) "
        "(example: --versions 3.14.0,3.15.0)",
    )
    parser.add_argument(
        "--launcher",
        metavar="COMMAND",
        help="command that starts the ranks (default: srun or mpiexec, with all cores) "
        "(example: --launcher 'mpiexec -n 2')",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--out",
        metavar="DIR",
        help="new directory for the results of all runs (default: ./pffbench-results/bisect-DATE) "
        "(example: --out results/h5py)",
    )
    where.add_argument(
        "--resume",
        metavar="DIR",
        help="go on with a search that was stopped, with the options with which it began "
        "(example: --resume results/h5py)",
    )
    parser.add_argument(
        "--progress",
        choices=("auto", "bar", "plain", "none"),
        default="auto",
        help="form of the progress reports of the runs, as of pffbench run "
        "(example: --progress none)",
    )
    parser.add_argument(
        "--scratch",
        metavar="DIR",
        help="directory on the file system under test (example: --scratch /lustre/me)",
    )


def _margin(text: str) -> float:
    """Convert a part above 0 and up to 1."""
    try:
        part = float(text)
    except ValueError:
        part = math.nan
    if not 0 < part <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no part above 0 and up to 1, such as 0.02")
    return part


def add_instructions(parser: argparse.ArgumentParser) -> None:
    """Add the options of `pffbench instructions`."""
    parser.add_argument(
        "experiment",
        metavar="EXPERIMENT.yaml",
        help="experiment with environments and cases of the workload datasets "
        "(example: configs/issues/hdf5-5962-create.yaml)",
    )
    parser.add_argument(
        "--function",
        required=True,
        metavar="NAME",
        help="function of a library whose instructions are counted, with all that it calls "
        "(example: --function H5Dcreate2)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change a key of the experiment, or of all its cases; may be given several times "
        "(example: --set datasets=200 --set hdf5.libver=v108)",
    )
    parser.add_argument(
        "--scratch",
        metavar="DIR",
        help="directory for the files of the runs (example: --scratch /dev/shm)",
    )


def add_report(parser: argparse.ArgumentParser) -> None:
    """Add the options of `pffbench report`."""
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="results directories (example: pffbench-results/default-20260101-120000)",
    )
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument(
        "--fom",
        action="store_true",
        help="print the figures of merit, one per line, for ReFrame and Ramble, and write nothing "
        "(example: --fom results/first)",
    )
    shown.add_argument(
        "--published",
        action="store_true",
        help="print the results beside the published ones of the study that the run redoes, and "
        "write nothing (example: --published results/first)",
    )
    shown.add_argument(
        "--published-csv",
        action="store_true",
        help="write only published-csv/ in the results directory: the times in the layout of the "
        "study's own files; for file-format-testing (example: --published-csv results/first)",
    )


def add_compare(parser: argparse.ArgumentParser) -> None:
    """Add the options of `pffbench compare`."""
    parser.usage = (
        "pffbench compare [OPTION …] BASE NEW …\n"
        "       pffbench compare [OPTION …] OLD … -- NEW …"
    )
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="results directories: the base, then those compared with it (example: results/before "
        "results/after); or several of each side, which are compared as starts of one program "
        "(example: results/old* -- results/new*)",
    )
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="directory for compare.md, compare.csv and figures (default: none are written) "
        "(example: --out results/before-after)",
    )
    parser.add_argument(
        "--fail-if-slower",
        type=percent,
        metavar="PERCENT",
        help="gate for CI: exit status 1 if a total is shown to be slower, by more than this; 0 if "
        "none is; 2 if a total of the base cannot be compared; 5 if raw transfers show that the "
        "machine changed (example: --fail-if-slower 20%%)",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="with --fail-if-slower: exit status 4 unless each total is shown not to be slower by "
        "more than that (example: --strict)",
    )
    parser.add_argument(
        "--allow-missing",
        action="store_true",
        help="with --fail-if-slower: pass although a total of the base cannot be compared "
        "(example: --allow-missing)",
    )
    parser.add_argument(
        "--across",
        action="append",
        default=[],
        metavar="KEY",
        help="compare cases that differ in this parameter or option of a backend; may be given "
        "several times (example: --across codec --across zarr.format)",
    )
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument(
        "--all",
        action="store_true",
        help="show all totals in the table, not only rows with a difference (example: --all)",
    )
    shown.add_argument(
        "--only",
        choices=("slower", "faster"),
        help="show only rows with this verdict in the table (example: --only slower)",
    )
    parser.add_argument(
        "--sort",
        choices=("ratio", "case", "time"),
        help="order of the table: the slowest first, by case, or the longest time of BASE first "
        "(default: as in the run) (example: --sort ratio)",
    )
    add_json(parser)


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
        help="directory for tables and figures: new, empty or of an earlier call (default: "
        "'scaling' beside the runs) (example: --out results/scaling)",
    )
    parser.add_argument(
        "--over",
        choices=("ranks", "nodes"),
        help="unit of the job size (default: nodes if their number varies and each has as many "
        "ranks as the others, else ranks) (example: --over ranks)",
    )
    parser.add_argument(
        "--predict",
        type=ranks,
        metavar="N",
        help="number of ranks or nodes to predict the rate for (default: twice the largest) "
        "(example: --predict 64)",
    )
    add_json(parser)


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
        help="how often your program writes and reads its data (default: 1:1) "
        "(example: --weight 1:0)",
    )
    how_often.add_argument(
        "--reads",
        type=reads,
        dest="weight",
        metavar="N",
        help="how many times your program reads what it has written once (example: --reads 10)",
    )
    parser.add_argument(
        "--layout",
        action="append",
        default=[],
        choices=("shared", "own", "file_per_process"),
        help="only ways of this layout; several are compared with each other: one file or many? "
        "(default: each layout by itself) (example: --layout shared --layout file_per_process)",
    )
    parser.add_argument(
        "--format",
        action="append",
        default=[],
        metavar="BACKEND",
        help="only ways of this backend; may be given several times (example: --format hdf5)",
    )
    parser.add_argument(
        "--transfer",
        action="append",
        default=[],
        choices=("independent", "collective"),
        help="only ways that write by this transfer (example: --transfer collective)",
    )
    parser.add_argument(
        "--one-file",
        action="store_true",
        help="only ways that make a single file: neither a file for each process nor a directory "
        "(example: --one-file)",
    )
    add_json(parser)


def add_import(parser: argparse.ArgumentParser) -> None:
    """Add the options of `pffbench import`."""
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="output files: JSON of IOR 4 (-O summaryFormat=JSON) or CSV of h5bench (CSV_FILE) "
        "(example: ior-posix.json ior-mpiio.json)",
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


def size(text: str) -> int:
    """Return a number of bytes given on the command line."""
    try:
        return int(Size.parse(text))
    except UserError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def ranks(text: str) -> int:
    """Return a number of ranks."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of ranks (1 or more)")
    return number
