"""A row of the table of performance: pairs of measurements, their ratio, the mark it has to reach.

Two things are compared by running them in turns, a pair at a time, in one run: what the machine
does meanwhile hits both alike. A row's ratio is the median of the ratios of its pairs, its interval
the 95 % percentile bootstrap of that median.
"""

from __future__ import annotations

import json
import math
import random
import statistics
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

_RESAMPLES = 2000
_SEED = 1


@dataclass(frozen=True)
class Given:
    """What a person asks for."""

    #: How many pairs are measured of each row.
    pairs: int
    #: Numbers of ranks; empty where each script is to take its own.
    ranks: tuple[int, ...]
    #: Directory in which files may be made.
    place: Path

    def ranks_or(self, *usual: int) -> tuple[int, ...]:
        """Return the numbers of ranks asked for, or the usual ones."""
        return self.ranks or usual

    @contextmanager
    def directory(self) -> Iterator[Path]:
        """Make a directory for files, and remove it."""
        with tempfile.TemporaryDirectory(prefix="pffbench-perf-", dir=self.place) as made:
            yield Path(made)


@dataclass(frozen=True)
class Ratio:
    """The median of the ratios of pairs, and its interval."""

    #: The median, and the ends of its 95 % interval.
    middle: float
    low: float
    high: float
    #: How many there were.
    pairs: int

    @classmethod
    def of(cls, pairs: Iterable[tuple[float, float]]) -> Ratio:
        """Return the ratio of the first of each pair to the second.

        Raises
        ------
        ValueError
            There is no pair, or a number that is not above 0.
        """
        found = list(pairs)
        if not found or any(not 0 < n < math.inf for pair in found for n in pair):
            raise ValueError(f"pairs of numbers above 0 are needed, not {found}")
        ratios = [first / second for first, second in found]
        draw = random.Random(_SEED)
        drawn = sorted(
            statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(_RESAMPLES)
        )
        low, high = drawn[int(0.025 * _RESAMPLES)], drawn[int(0.975 * _RESAMPLES) - 1]
        return cls(statistics.median(ratios), low, high, len(ratios))

    @classmethod
    def of_figures(cls, figures: Iterable[float]) -> Ratio:
        """Return a figure that stands by itself, as its ratio to one unit."""
        return cls.of((figure, 1.0) for figure in figures)

    def __str__(self) -> str:
        return f"{self.middle:.3g} [{self.low:.3g}, {self.high:.3g}]"


@dataclass(frozen=True)
class Mark:
    """What a number has to reach: at least or at most so much."""

    kind: Literal["at least", "at most"]
    value: float
    unit: str = ""

    def held_by(self, number: float) -> bool:
        """Whether a number reaches it."""
        return number >= self.value if self.kind == "at least" else number <= self.value

    def __str__(self) -> str:
        return f"{'≥' if self.kind == 'at least' else '≤'} {self.value:g}{self.unit}"


@dataclass(frozen=True)
class Row:
    """One comparison."""

    #: What is measured, and what beside.
    what: str
    against: str
    #: What the ratio has to reach; None where it is only told.
    mark: Mark | None
    #: The median over pairs; None where nothing was measured.
    ratio: Ratio | None
    #: Both figures with their unit.
    ours: str = ""
    theirs: str = ""
    #: Why nothing was measured, or what else to know.
    note: str = ""

    @property
    def verdict(self) -> str:
        """Whether the mark is reached."""
        if self.ratio is None:
            return f"not measured ({self.note})"
        if self.mark is None:
            return "told only"
        return "holds" if self.mark.held_by(self.ratio.middle) else "misses"

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as text, in the order of `HEADINGS`."""
        ratio = "" if self.ratio is None else str(self.ratio)
        mark = "" if self.mark is None else str(self.mark)
        return (self.what, self.against, self.ours, self.theirs, ratio, mark, self.verdict)


HEADINGS = ("what", "against", "figure", "beside", "ratio [95 %]", "mark", "verdict")


def not_measured(what: str, against: str, mark: Mark | None, why: str) -> Row:
    """Return a row that says why there is no figure."""
    return Row(what, against, mark, None, note=why)


def as_text(rows: Sequence[Row]) -> str:
    """Return the rows as a table for a terminal."""
    lines = [HEADINGS, *(row.cells for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADINGS))]
    aligned = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    return "\n".join([*aligned, *_notes(rows)])


def _notes(rows: Sequence[Row]) -> list[str]:
    """Return what there is to know beside the figures that were measured."""
    return [f"{row.what}: {row.note}" for row in rows if row.note and row.ratio is not None]


def as_json(rows: Sequence[Row], facts: dict[str, Any]) -> str:
    """Return the rows and where they were measured as JSON."""
    told = [asdict(row) | {"verdict": row.verdict} for row in rows]
    return json.dumps({"facts": facts, "rows": told}, indent=1, ensure_ascii=False)
