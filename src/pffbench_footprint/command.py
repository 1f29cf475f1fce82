"""`pffbench footprint`: files, calls and shared stripes for any number of ranks."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from pffbench.case import Case, case_names
from pffbench.commands.arguments import add_json, number_of
from pffbench.errors import UserError
from pffbench.job.launcher import mpi_unstarted
from pffbench.run.options import add_changes
from pffbench.run.output import make_console, print_json
from pffbench.text import counted, make_table, one_line
from pffbench.units import Size

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from pffbench.mpi.topology import Topology
    from pffbench_footprint.laws import Amount
    from pffbench_footprint.quantities import Footprint, Stripe

#: The line of `pffbench --help`.
HELP = "predict files, calls and bytes for any number of ranks"
TASK = "before a run"
#: Columns in a log.
_WIDTH = 160
_JSON_VERSION = 1
#: Cases next to each other.
_CASES_IN_A_TABLE = 8
_MARKS = {"exact": "", "at least": "≥ ", "at most": "≤ "}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "experiment",
        nargs="?",
        metavar="EXPERIMENT.yaml",
        help="experiment file, results directory, or name from run --list (default: the built-in "
        "comparison) (example: question:writers)",
    )
    parser.add_argument(
        "-n", "--ranks", type=number_of("ranks"), required=True, metavar="N",
        help="number of ranks (example: --ranks 100000)",
    )  # fmt: skip
    parser.add_argument(
        "--ranks-per-node", type=number_of("ranks"), metavar="M",
        help="number of ranks on a node (default: all on one node) (example: --ranks-per-node 128)",
    )  # fmt: skip
    parser.add_argument(
        "--stripe", type=_stripe, metavar="SIZE:COUNT",
        help="also count the stripes that several ranks write, in files with this stripe size and "
        "stripe count (example: --stripe 16MiB:64)",
    )  # fmt: skip
    parser.add_argument(
        "--case", action="append", default=[], metavar="CASE", dest="chosen",
        help="show only this case, by its number in the table or a part of its name. Given twice, "
        "show the numbers in which the two cases differ, and their ratios (example: --case 1 "
        "--case 4)",
    )  # fmt: skip
    add_json(parser)
    add_changes(parser, scratch=False)


def _stripe(text: str) -> tuple[int, int]:
    """Return the bytes of a stripe and the number of servers."""
    size, _, count = re.sub("[×x]", ":", text).partition(":")
    try:
        nbytes = int(Size.parse(size.strip()))
    except UserError:
        nbytes = 0
    if nbytes < 1 or not count.strip().isdecimal() or int(count) < 1:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a size and a number of servers, such as 16MiB:64 (1 or more each)"
        )
    return nbytes, int(count)


@mpi_unstarted()
def main(arguments: argparse.Namespace) -> int:
    """Print the footprints of the cases of an experiment. Return the exit status."""
    from pffbench.experiment.check import make_plan
    from pffbench.experiment.load import load_experiment
    from pffbench.mpi.topology import Topology
    from pffbench_footprint.quantities import Footprint, Stripe, amounts_of

    size = arguments.ranks
    topology = Topology.even(size, -(-size // (arguments.ranks_per_node or size)))
    loaded = load_experiment(arguments.experiment, arguments.overrides)
    plan = make_plan(loaded, size, topology=topology, as_installed=False)
    stripe = None if arguments.stripe is None else Stripe(*arguments.stripe)
    chosen = _chosen(plan.cases, arguments.chosen)
    found, left_out = {}, list(plan.left_out)
    for case in chosen.values():
        footprint = Footprint(case, topology, stripe)
        try:
            found[case.id] = footprint, amounts_of(footprint)
        except UserError as error:
            left_out.append((case.id, str(error)))
    if not found:
        raise UserError(left_out[-1][1])
    shown = Shown(loaded.path, topology, stripe, chosen, found, left_out)
    if arguments.json:
        print_json(_as_data(shown))
    elif len(arguments.chosen) == 2 and len(found) == 2:
        _print_comparison(shown)
    else:
        _print_table(shown)
    return 0


class Shown(msgspec.Struct, frozen=True):
    """What is printed."""

    #: The experiment.
    file: str
    #: The ranks.
    topology: Topology
    #: Of the file system.
    stripe: Stripe | None
    #: The cases by their numbers.
    cases: Mapping[int, Case]
    #: By the name of a case.
    found: Mapping[str, tuple[Footprint, Mapping[str, Amount]]]
    #: Names of the other cases, with the reason.
    left_out: Sequence[tuple[str, str]]


def _chosen(cases: Sequence[Case], wanted: Sequence[str]) -> dict[int, Case]:
    """Return the cases that are asked for, in that order, by their numbers; else all.

    Raises
    ------
    UserError
        A name is that of no case, or of several; or more than two are given.
    """
    numbered = dict(enumerate(cases, 1))
    if not wanted:
        return numbered
    if len(wanted) > 2:
        raise UserError(f"--case: at most two cases are compared, {len(wanted)} are given")
    names = case_names(cases)
    found = {}
    for text in wanted:
        fits = [
            number
            for number, case in numbered.items()
            if text == str(number) or text == case.id or text in names[case.id]
        ]
        exact = [n for n in fits if text in (str(n), numbered[n].id, names[numbered[n].id])]
        fits = exact or fits
        if len(fits) != 1:
            what = "no case" if not fits else f"{len(fits)} cases ({', '.join(map(str, fits))})"
            raise UserError(
                f"--case {text}: {what} of {len(cases)} has it in its name; pffbench footprint "
                "without --case numbers them"
            )
        found[fits[0]] = numbered[fits[0]]
    return found


def _as_data(shown: Shown) -> dict[str, Any]:
    """Return footprints as plain data."""
    return {
        "format": "pffbench footprint",
        "version": _JSON_VERSION,
        "experiment_file": shown.file,
        "ranks": shown.topology.size,
        "nodes": shown.topology.node_count,
        "stripe": None if shown.stripe is None else msgspec.structs.asdict(shown.stripe),
        "cases": [
            {
                "case": name,
                "number": number,
                "quantities": {
                    key: {"kind": amount.kind, **msgspec.structs.asdict(amount)}
                    for key, amount in amounts.items()
                },
                "sizes": _sizes(footprint),
            }
            for number, case in shown.cases.items()
            if (name := case.id) in shown.found
            for footprint, amounts in [shown.found[name]]
        ],
        "left_out": [{"case": name, "reason": reason} for name, reason in shown.left_out],
    }


def _sizes(footprint: Footprint) -> dict[str, list[dict[str, int]] | None]:
    """Return the number of requests by their bytes, where both are exact."""
    found: dict[str, list[dict[str, int]] | None] = {"write_requests": None, "read_requests": None}
    if footprint.law is None:
        return found
    for name, made in zip(found, (footprint.written, footprint.read), strict=True):
        known = made.exact and made.sized
        by_size = sorted(made.sizes.items(), reverse=True)
        found[name] = [{"bytes": n, "requests": c} for n, c in by_size] if known else None
    return found


def _print_table(shown: Shown) -> None:
    """Print the cases with their numbers, and a table of their quantities."""
    console = make_console(_WIDTH)
    kept = [number for number, case in shown.cases.items() if case.id in shown.found]
    _print_names(shown, console)
    cells = _cells(shown)
    alike = {key: of[0] for key, of in cells.items() if len(set(of)) == 1} if kept[1:] else {}
    for start in range(0, len(kept), _CASES_IN_A_TABLE):
        part = slice(start, start + _CASES_IN_A_TABLE)
        rows = {key: of[part] for key, of in cells.items() if key not in alike}
        console.print(_table(map(str, kept[part]), rows))
    if alike:
        told = ", ".join(f"{_words(key)} {text}" for key, text in alike.items())
        console.print(one_line(f"the same in all cases: {told}"), soft_wrap=True)
    _print_legend(shown, console)


def _print_comparison(shown: Shown) -> None:
    """Print what differs between two cases, the largest factor first."""
    from pffbench_footprint.quantities import differences

    console = make_console(_WIDTH)
    _print_names(shown, console)
    cells = _cells(shown)
    found = differences(*(amounts for _, amounts in shown.found.values()))
    one, other = map(str, shown.cases)
    rows = {key: [*cells[key], factor] for key, factor in found.items()}
    console.print(_table((one, other, f"{other} / {one}"), rows))
    if same := [_words(key) for key in cells if key not in found and not key.startswith("sizes")]:
        console.print(one_line(f"the same: {', '.join(same)}"), soft_wrap=True)
    _print_legend(shown, console)


def _words(key: str) -> str:
    return key.replace("_", " ")


def _print_names(shown: Shown, console: Console) -> None:
    names = case_names(list(shown.cases.values()))
    for number, case in shown.cases.items():
        if case.id in shown.found:
            console.print(one_line(f"{number:3}  {names[case.id]}"), soft_wrap=True)


def _table(headings: Iterable[str], rows: Mapping[str, Sequence[str]]) -> Table:
    table = make_table()
    table.add_column("", no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for key, cells in rows.items():
        table.add_row(_words(key), *cells)
    return table


def _cells(shown: Shown) -> dict[str, list[str]]:
    """Return the text of each quantity, and of the bytes of requests, of all cases."""
    from pffbench_footprint.quantities import QUANTITIES

    found: dict[str, list[str]] = {}
    for footprint, amounts in shown.found.values():
        for quantity in QUANTITIES:
            if quantity.name in amounts:
                shown_as = cell(amounts[quantity.name], quantity.unit)
                found.setdefault(quantity.name, []).append(shown_as)
        for key, sizes in _sizes(footprint).items():
            found.setdefault(f"sizes_of_{key}", []).append(_ends(sizes))
    return found


def cell(amount: Amount, unit: str = "") -> str:
    """Return an amount as the tables have it."""
    if amount.value is None:
        return "?"
    return f"{_MARKS[amount.certainty]}{Size(amount.value) if unit else amount.value}"


def _ends(sizes: list[dict[str, int]] | None) -> str:
    """Return the smallest and the largest size."""
    if not sizes:
        return "?" if sizes is None else "none"
    ends = {str(Size(sizes[i]["bytes"])): None for i in (-1, 0)}
    return "–".join(ends)


def _print_legend(shown: Shown, console: Console) -> None:
    """Print what the marks mean, why they are there, and what is left out."""
    topology = shown.topology
    ranks = -(-topology.size // topology.node_count)
    reasons: dict[str, dict[str, None]] = {}
    for _, amounts in shown.found.values():
        for key, amount in amounts.items():
            if amount.why:
                reasons.setdefault(amount.why, {})[_words(key)] = None
    for line in (
        f"{counted(topology.size, 'rank')}, {ranks} on a node; one repetition; ≥ and ≤ are bounds "
        "that hold, ? is unknown, all else is exact",
        *(f"{', '.join(keys)}: {why}" for why, keys in reasons.items()),
        *(f"left out: {name}: {reason}" for name, reason in dict(shown.left_out).items()),
    ):
        console.print(one_line(line), soft_wrap=True)
