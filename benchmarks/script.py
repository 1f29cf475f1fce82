"""The command line that all scripts of rows share."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from jobs import load, machine
from rows import Row, as_json, as_markdown, as_text

#: Where files are made: in memory, so that no device is measured.
_PLACE = Path("/dev/shm")


@dataclass(frozen=True)
class Given:
    """What a person asks for.

    Parameters
    ----------
    pairs : int
        How many pairs are measured of each row.
    ranks : tuple of int
        Numbers of ranks; empty where each script is to take those of its marks.
    place : Path
        Directory in which files may be made.
    """

    pairs: int
    ranks: tuple[int, ...]
    place: Path

    def ranks_or(self, *usual: int) -> tuple[int, ...]:
        """Return the numbers of ranks asked for, or the usual ones."""
        return self.ranks or usual

    @contextmanager
    def directory(self) -> Iterator[Path]:
        """Make a directory for files, and remove it."""
        with tempfile.TemporaryDirectory(prefix="pffbench-perf-", dir=self.place) as made:
            yield Path(made)


#: Measures rows.
Measure = Callable[[Given], Sequence[Row]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what can be asked of every script."""
    parser.add_argument("--pairs", type=_count, default=7, help="of each row (default: 7)")
    parser.add_argument(
        "--ranks", type=_count, nargs="+", default=(), help="numbers of ranks (default: the marks')"
    )
    parser.add_argument("--place", type=Path, default=_PLACE, help=f"default: {_PLACE}")
    parser.add_argument("--markdown", type=Path, help="write the table there as Markdown")
    parser.add_argument("--json", type=Path, help="write the table there as JSON")


def given_of(arguments: argparse.Namespace) -> Given:
    """Return what was asked for."""
    return Given(arguments.pairs, tuple(arguments.ranks), arguments.place)


def put_out(rows: Sequence[Row], arguments: argparse.Namespace, begun: str) -> None:
    """Print the rows, and write them where asked to."""
    facts = machine() | {"load average before": begun, "pairs": arguments.pairs}
    print(as_text(rows))
    print("\n" + ", ".join(f"{name} {value}" for name, value in facts.items()))
    if arguments.markdown:
        arguments.markdown.write_text(as_markdown(rows) + "\n", encoding="utf-8")
    if arguments.json:
        arguments.json.write_text(as_json(rows, facts) + "\n", encoding="utf-8")


def main(measure: Measure, about: str | None) -> None:
    """Run one script."""
    parser = argparse.ArgumentParser(description=(about or "").splitlines()[0])
    add_arguments(parser)
    arguments = parser.parse_args()
    begun = load()
    put_out(measure(given_of(arguments)), arguments, begun)


def _count(text: str) -> int:
    """Read a number of 1 or more."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of 1 or more")
    return int(text)
