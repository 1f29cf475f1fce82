"""Compression against speed as files of a results directory and as a frame."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from pffbench.regular_files import make_own_directory, write_replacing
from pffbench.summary.summary import Summary
from pffbench_analysis.derived_files import known, row_of, slug, write_csv
from pffbench_analysis.pareto.advice import markdown
from pffbench_analysis.pareto.figure import draw_kind
from pffbench_analysis.pareto.front import FrontPosition, standings
from pffbench_analysis.pareto.points import (
    DIRECTIONS,
    CompressionPoint,
    DataKind,
    Direction,
    Speed,
    kinds_of,
)
from pffbench_analysis.saving import save

if TYPE_CHECKING:
    import pandas as pd

_MIB = 2**20
_NAME = "pareto"


@dataclass(frozen=True)
class _Row:
    """A point in one direction, with its standing."""

    kind: DataKind
    point: CompressionPoint
    direction: Direction
    speed: Speed
    own: FrontPosition
    both: FrontPosition

    def rate(self, bound: int, *, stored: bool = False, per: int = 1) -> float | None:
        """Return MiB/s: the median (0) or a bound of its interval (1, 2)."""
        rate = self.speed.rate(stored=stored)
        return None if rate is None else known(rate[bound] / _MIB / per)


COLUMNS: Mapping[str, Callable[[_Row], object]] = {
    "kind": attrgetter("kind.name"),
    "ranks": attrgetter("kind.ranks"),
    "case": attrgetter("point.candidate.case.sample.case"),
    "way": attrgetter("point.name"),
    "backend": attrgetter("point.backend"),
    "codec": attrgetter("point.codec"),
    "ratio": attrgetter("point.ratio"),
    "stored_bytes": lambda row: round(row.point.stored),
    "direction": attrgetter("direction"),
    "bytes": attrgetter("speed.nbytes"),
    "repetitions": attrgetter("speed.seconds.n"),
    "median_s": attrgetter("speed.seconds.median"),
    "low_s": lambda row: known(row.speed.seconds.low),
    "high_s": lambda row: known(row.speed.seconds.high),
    "rate_mib_s": lambda row: row.rate(0),
    "rate_low_mib_s": lambda row: row.rate(1),
    "rate_high_mib_s": lambda row: row.rate(2),
    "stored_rate_mib_s": lambda row: row.rate(0, stored=True),
    "stored_rate_low_mib_s": lambda row: row.rate(1, stored=True),
    "stored_rate_high_mib_s": lambda row: row.rate(2, stored=True),
    "rate_per_rank_mib_s": lambda row: row.rate(0, per=row.kind.ranks),
    "stored_rate_per_rank_mib_s": lambda row: row.rate(0, stored=True, per=row.kind.ranks),
    "below_resolution": attrgetter("speed.below_resolution"),
    "standing": attrgetter("own.standing.value"),
    "due_to": lambda row: "" if row.own.by is None else row.kind.points[row.own.by].name,
    "standing_both": attrgetter("both.standing.value"),
}


def write_pareto(summary: Summary, directory: str | Path) -> Iterator[Path]:
    """Write `pareto.md`, `pareto.csv` and a figure for each kind of data under `plots`.

    Nothing is written for a run that compressed no kind of data by more than one codec; files of
    an earlier report are then removed.

    Yields
    ------
    Path
        Each file that was written.
    """
    place = Path(directory)
    kinds = kinds_of(summary)
    plots = place / "plots"
    if kinds or os.path.lexists(plots):
        make_own_directory(plots)
    for old in plots.glob(f"{_NAME}-*.[ps][nv]g"):
        old.unlink()
    if not kinds:
        for suffix in (".md", ".csv"):
            (place / _NAME).with_suffix(suffix).unlink(missing_ok=True)
        return
    lines = markdown(kinds, summary, directory)
    write_replacing(place / f"{_NAME}.md", "\n".join(lines) + "\n")
    rows = (row for kind in kinds for row in rows_of(kind))
    write_csv(place / f"{_NAME}.csv", COLUMNS, rows)
    yield from (place / f"{_NAME}.md", place / f"{_NAME}.csv")
    for name, kind in zip(file_names(kinds), kinds, strict=True):
        yield from save(draw_kind(kind, summary), plots / name, links=False)


def file_names(kinds: Sequence[DataKind]) -> list[str]:
    """Name the figures by their kinds of data, numbered where names are equal."""
    stems = [slug(f"{_NAME}-{kind.name}") for kind in kinds]
    return [s if stems.count(s) == 1 else f"{s}-{i}" for i, s in enumerate(stems, start=1)]


def pareto_frame(kinds: Sequence[DataKind]) -> pd.DataFrame:
    """Return the points of some kinds of data as a frame, with the columns of `pareto.csv`."""
    import pandas as pd

    rows = [row for kind in kinds for row in rows_of(kind)]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def rows_of(kind: DataKind) -> Iterator[dict[str, object]]:
    """Yield a row for each point and direction that was measured."""
    both = standings(kind.points, DIRECTIONS, kind.work.design)
    for direction in DIRECTIONS:
        placed = standings(kind.points, (direction,), kind.work.design)
        for point, own, joint in zip(kind.points, placed, both, strict=True):
            if (speed := point.speed(direction)) is not None:
                yield row_of(COLUMNS, _Row(kind, point, direction, speed, own, joint))
