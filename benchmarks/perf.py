"""All rows of the table of performance: what `make perf` runs.

    python benchmarks/perf.py [--only NAME …] [--pairs 7] [--ranks N …] [--json FILE]

Prints for each row the figure, what is beside, their ratio with its interval, the mark, and whether
it holds, misses or was not measured, and why. Rows against IOR need `ior` on PATH. A row that
misses its mark is no failure of this program: the exit status is 0 whenever all could be run.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from importlib import import_module

from jobs import load
from rows import Row, not_measured
from script import add_arguments, given_of, put_out

#: The scripts, each with a function `measure`, in the order of the table.
SCRIPTS = (
    "raw_against_ior",
    "hdf5_against_ior",
    "transfers_against_ior",
    "reused_against_ior",
    "c_loops",
    "small_datasets",
    "phase_cost",
    "timed_region",
    "start_up",
    "gather",
    "exchange",
    "outside",
    "data_rate",
    "memory",
    "planning",
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the scripts and print the table."""
    given = make_parser().parse_args(arguments)
    begun, rows = load(), list[Row]()
    for name in given.only or SCRIPTS:
        print(f"{name} …", file=sys.stderr, flush=True)
        try:
            rows += import_module(name).measure(given_of(given))
        except (RuntimeError, OSError, ImportError) as error:
            rows.append(not_measured(name, "", None, " ".join(str(error).split())[:300]))
    put_out(rows, given, begun)
    counted = Counter(row.verdict.split(" (")[0] for row in rows)
    print(", ".join(f"{count} {verdict}" for verdict, count in counted.items()))


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=SCRIPTS, help="scripts (default: all)")
    add_arguments(parser)
    return parser


if __name__ == "__main__":
    main()
