"""`pffbench recommend`: the format and settings to use, by measurements."""

from __future__ import annotations

import argparse
import re

from pffbench.commands.arguments import add_json, number_of
from pffbench.errors import UserError
from pffbench.results.answer import HIGHEST_PRICE
from pffbench.run.output import print_json
from pffbench.units import Size

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
        help="number of times that your program writes and reads its data (default: 1:1) (example: "
        "--weight 1:0)",
    )
    how_often.add_argument(
        "--reads",
        type=_reads,
        dest="weight",
        metavar="N",
        help="number of times that your program reads data that it wrote once (example: --reads "
        "10)",
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        type=_key_and_values,
        metavar="KEY=VALUE,…",
        help="choose only among ways with these values of a key. May be repeated (example: --only "
        "files=one --only backend=hdf5,netcdf4)",
    )
    parser.add_argument(
        "--price",
        type=_percent,
        default=HIGHEST_PRICE,
        metavar="PERCENT",
        help="recommend nothing above this price. The price is how much slower the recommended way "
        "can be, at most, than the fastest way measured "
        f"(default: {100 * HIGHEST_PRICE:.0f}) (example: --price 40)",
    )
    parser.add_argument(
        "--bytes",
        type=_size,
        metavar="SIZE",
        help="also estimate the time of your program. SIZE is what all its ranks together write in "
        "a step (example: --bytes 600M --steps 100)",
    )
    parser.add_argument(
        "--steps",
        type=number_of("steps"),
        default=1,
        metavar="N",
        help="with --bytes: number of steps whose time is estimated (default: 1)",
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
    raise argparse.ArgumentTypeError(f"{text!r} is not an amount of data (write it like '600G')")


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


def _key_and_values(text: str) -> tuple[str, list[str]]:
    key, equals, values = text.partition("=")
    if not (key and equals and values):
        raise argparse.ArgumentTypeError(f"{text!r} is not a key and its values (files=one)")
    return key, values.split(",")


def _percent(text: str) -> float:
    try:
        if 0 < (value := float(text.removesuffix("%"))) < float("inf"):
            return value / 100
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of percent above 0")


def main(arguments: argparse.Namespace) -> int:
    """Print the recommendation of runs. Return the exit status."""
    from pffbench_analysis.recommend import advise

    write, read = arguments.weight
    if arguments.steps > 1 and not arguments.bytes:
        raise UserError("--steps needs --bytes, the amount of data of a step")
    weights = {total: n for total, n in (("write", write), ("read", read)) if n}
    found = [
        advise(
            run,
            weights,
            dict(arguments.only),
            arguments.price,
            arguments.bytes or 0,
            arguments.steps,
        )
        for run in arguments.runs
    ]
    if arguments.json:
        runs = [one.data() for one in found]
        print_json({"format": "pffbench recommend", "version": _JSON_VERSION, "runs": runs})
        return 0
    for place, one in enumerate(found):
        if len(found) > 1:
            print(f"{'' if place == 0 else chr(10)}{one.directory}\n")
        for line in one.lines():
            print(line)
    return 0
