"""What the harness costs, beside IOR and C: what `make perf` runs.

    python benchmarks/perf.py [--only NAME …] [--pairs 7] [--ranks N …] [--json FILE]

Prints for each row the figure, what is beside, their ratio with its interval, the mark, and whether
it holds, misses or was not measured, and why. Rows against IOR need `ior` on PATH. A row that
misses its mark is no failure of this program: the exit status is 0 whenever all could be run.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import against_ior
import c_loops
import phase_cost
from jobs import load, machine
from rows import Given, Row, as_json, as_text, not_measured

#: What measures rows, in the order of the table.
SCRIPTS: Mapping[str, Callable[[Given], Sequence[Row]]] = {
    "against_ior": against_ior.measure,
    "c_loops": c_loops.measure,
    "phase_cost": phase_cost.measure,
}
#: Where files are made: in memory, so that no device is measured.
_PLACE = Path("/dev/shm")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the scripts and print the table."""
    told = make_parser().parse_args(arguments)
    given = Given(told.pairs, tuple(told.ranks), told.place)
    begun, rows = load(), list[Row]()
    for name in told.only:
        print(f"{name} …", file=sys.stderr, flush=True)
        try:
            rows += SCRIPTS[name](given)
        except (RuntimeError, OSError, ImportError) as error:
            rows.append(not_measured(name, "", None, " ".join(str(error).split())[:300]))
    facts = machine() | {"load average before": begun, "pairs": given.pairs}
    print(as_text(rows))
    print("\n" + ", ".join(f"{name} {value}" for name, value in facts.items()))
    if told.json:
        told.json.write_text(as_json(rows, facts) + "\n", encoding="utf-8")
    counted = Counter(row.verdict.split(" (")[0] for row in rows)
    print(", ".join(f"{count} {verdict}" for verdict, count in counted.items()))


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=SCRIPTS, default=list(SCRIPTS))
    parser.add_argument("--pairs", type=_count, default=7, help="of each row (default: 7)")
    parser.add_argument(
        "--ranks",
        type=_count,
        nargs="+",
        default=(),
        help="numbers of ranks (default: each its own)",
    )
    parser.add_argument("--place", type=Path, default=_PLACE, help=f"default: {_PLACE}")
    parser.add_argument("--json", type=Path, help="write the table there as JSON")
    return parser


def _count(text: str) -> int:
    """Read a number of 1 or more."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 1 or more")
    return int(text)


if __name__ == "__main__":
    main()
