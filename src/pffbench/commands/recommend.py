"""`pffbench recommend`: the format and settings to use, by measurements."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pffbench.commands.arguments import add_json, number_of
from pffbench.errors import UserError
from pffbench.run.output import make_console, print_json
from pffbench.units import Size

if TYPE_CHECKING:
    from rich.console import Console

#: Version of what `--json` prints; a higher one changed or removed a key.
_JSON_VERSION = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="results directories (example: results/mine)",
    )
    how_often = parser.add_mutually_exclusive_group()
    how_often.add_argument(
        "--weight",
        type=_weight,
        default=(1.0, 1.0),
        metavar="WRITE:READ",
        help="how often your program writes and reads its data (default: 1:1) "
        "(example: --weight 1:0)",
    )
    how_often.add_argument(
        "--reads",
        type=_reads,
        dest="weight",
        metavar="N",
        help="how many times your program reads what it has written once (example: --reads 10)",
    )
    parser.add_argument(
        "--layout",
        action="append",
        default=[],
        choices=("shared", "own", "file_per_process", "file_per_group"),
        help="restrict to this layout; repeat to compare layouts (default: each layout by itself) "
        "(example: --layout shared --layout file_per_process)",
    )
    parser.add_argument(
        "--format",
        action="append",
        default=[],
        metavar="BACKEND",
        help="restrict to this backend; may be repeated (example: --format hdf5)",
    )
    parser.add_argument(
        "--transfer",
        action="append",
        default=[],
        choices=("independent", "collective"),
        help="restrict to this transfer of the writes (example: --transfer collective)",
    )
    parser.add_argument(
        "--one-file",
        action="store_true",
        help="restrict to a single file: no file for each process, no directory",
    )
    parser.add_argument(
        "--bytes",
        type=_size,
        metavar="SIZE",
        help="bytes that your program, all ranks together, writes in a step: the time of each way "
        "is told (example: --bytes 600G --steps 100)",
    )
    parser.add_argument(
        "--steps",
        type=number_of("steps"),
        default=1,
        metavar="N",
        help="steps that the told time is for, such as those of a day (default: 1)",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="answer every layout, size and cache state of the run, each with its program",
    )
    add_json(parser)


def _size(text: str) -> Size:
    """Return a size; 600G, 600g and 600GB are 600 GB, 600Gi are 600 GiB."""
    short = re.fullmatch(r"(.*[0-9. ])([KMGTP])(I?)", text.upper())
    number, unit, binary = short.groups() if short else (text, "", "")
    told = f"{number}{unit}{binary.lower()}B" if short else text
    try:
        if size := Size.parse(told):
            return size
    except UserError as error:
        raise argparse.ArgumentTypeError(str(error).replace(repr(told), repr(text))) from None
    raise argparse.ArgumentTypeError(f"{text!r} is no amount of data (write it like '600G')")


def _weight(text: str) -> tuple[float, float]:
    """Return two numbers that are not negative and not both zero."""
    parts = text.split(":")
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        numbers = []
    if len(numbers) != 2 or not all(0 <= n < float("inf") for n in numbers) or not any(numbers):
        raise argparse.ArgumentTypeError(f"{text!r} is not a weight of writing and reading (1:10)")
    return numbers[0], numbers[1]


def _reads(text: str) -> tuple[float, float]:
    """Return the weights of one write and so many reads."""
    try:
        return _weight(f"1:{text}")
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of reads (0 or more)") from None


def main(arguments: argparse.Namespace) -> int:
    """Print the recommendation of runs. Return the exit status."""
    from pffbench_analysis.recommend import Filters, OwnData, Weights, recommend

    write, read = arguments.weight
    filters = Filters(
        tuple(arguments.layout),
        tuple(arguments.format),
        tuple(arguments.transfer),
        arguments.one_file,
    )
    own = OwnData(arguments.bytes, arguments.steps) if arguments.bytes else None
    if arguments.steps > 1 and own is None:
        raise UserError("--steps needs --bytes, the amount of data of a step")
    found = recommend(arguments.runs, Weights(write, read), filters, own)
    if arguments.json:
        print_json({"format": "pffbench recommend", "version": _JSON_VERSION, **found.data()})
    elif sys.stdout.isatty():
        print_markdown(found.lines(every=arguments.all), make_console())
    else:
        for line in found.lines(every=arguments.all):
            print(line)
    return 0


def print_markdown(lines: Iterable[str], console: Console) -> None:
    """Print Markdown on a terminal: headings, items that wrap under their text, programs.

    Parameters
    ----------
    lines : iterable of str
        Headings, list items with words in ``**``, fenced code and paragraphs. Other marks are
        printed as they are.
    console : Console
        The terminal.
    """
    from rich.syntax import Syntax
    from rich.table import Table
    from rich.text import Text

    from pffbench.summary.again import broken

    # Lines of a program are left to the terminal to wrap, so that they can be copied.
    python = Syntax("", "python", theme="ansi_dark", background_color="default")
    code: list[str] | None = None
    for line in lines:
        if line.startswith("```"):
            if code is not None:
                console.print(python.highlight("\n".join(code)), soft_wrap=True)
            code = [] if code is None else None
        elif code is not None:
            code.append(line)
        elif line.startswith("    "):  # a command, in lines that a shell joins
            for part in broken(line.strip(), console.width):
                console.print(Text(part), soft_wrap=True)
        elif line.startswith("#"):
            style = "bold underline" if line.startswith("# ") else "bold"
            console.print(Text(line.lstrip("# "), style))
        else:
            text = line.lstrip()
            item = text.startswith("- ")
            words = text[2 * item :].split("**")
            shown = Text.assemble(*((w, "bold" if i % 2 else "") for i, w in enumerate(words)))
            if item:
                grid = Table.grid()
                grid.add_row(" " * (len(line) - len(text)) + "• ", shown)
                console.print(grid)
            else:
                console.print(shown)
