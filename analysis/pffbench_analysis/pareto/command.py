"""Compression against speed as files of a results directory and as a frame."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pffbench.regular_files import make_own_directory, replacing, write_replacing
from pffbench.summary.summary import Summary
from pffbench_analysis.pareto.advice import markdown
from pffbench_analysis.pareto.figure import draw_kind
from pffbench_analysis.pareto.front import standings
from pffbench_analysis.pareto.points import DIRECTIONS, DataKind, Speed, kinds_of
from pffbench_analysis.picture import save

if TYPE_CHECKING:
    import pandas as pd

_MIB = 2**20
_NAME = "pareto"
COLUMNS = (
    "kind", "ranks", "case", "way", "backend", "codec", "ratio", "stored_bytes", "direction",
    "bytes", "repetitions", "median_s", "low_s", "high_s",
    "rate_mib_s", "rate_low_mib_s", "rate_high_mib_s",
    "stored_rate_mib_s", "stored_rate_low_mib_s", "stored_rate_high_mib_s",
    "rate_per_rank_mib_s", "stored_rate_per_rank_mib_s", "below_resolution",
    "standing", "due_to", "standing_both",
)  # fmt: skip


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
    for old in plots.glob(f"{_NAME}-*.[ps][nvd][gf]"):
        old.unlink()
    if not kinds:
        for suffix in (".md", ".csv"):
            (place / _NAME).with_suffix(suffix).unlink(missing_ok=True)
        return
    lines = markdown(kinds, summary, directory)
    write_replacing(place / f"{_NAME}.md", "\n".join(lines) + "\n")
    with replacing(place / f"{_NAME}.csv") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(row for kind in kinds for row in rows_of(kind))
    yield from (place / f"{_NAME}.md", place / f"{_NAME}.csv")
    for name, kind in zip(file_names(kinds), kinds, strict=True):
        yield from save(draw_kind(kind, summary), plots / name, links=False)


def file_names(kinds: Sequence[DataKind]) -> list[str]:
    """Name the figures by their kinds of data, numbered where names are equal."""
    # The report's module imports this one.
    from pffbench_analysis.report import slug

    stems = [slug(f"{_NAME}-{kind.name}") for kind in kinds]
    return [s if stems.count(s) == 1 else f"{s}-{i}" for i, s in enumerate(stems, start=1)]


def pareto_frame(kinds: Sequence[DataKind]) -> pd.DataFrame:
    """Return the points of some kinds of data as a frame, with the columns of `pareto.csv`."""
    import pandas as pd

    rows = [row for kind in kinds for row in rows_of(kind)]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def rows_of(kind: DataKind) -> Iterator[dict[str, Any]]:
    """Yield a row for each point and direction that was measured."""
    both = standings(kind.points, DIRECTIONS, kind.work.design)
    for direction in DIRECTIONS:
        placed = standings(kind.points, (direction,), kind.work.design)
        for point, own, joint in zip(kind.points, placed, both, strict=True):
            speed = point.speed(direction)
            if speed is None:
                continue
            yield {
                "kind": kind.name,
                "ranks": kind.ranks,
                "case": point.candidate.case.sample.case,
                "way": point.name,
                "backend": point.backend,
                "codec": point.codec,
                "ratio": point.ratio,
                "stored_bytes": round(point.stored),
                "direction": direction,
                **_numbers(speed, kind.ranks),
                "standing": own.standing.value,
                "due_to": "" if own.by is None else kind.points[own.by].name,
                "standing_both": joint.standing.value,
            }


def _numbers(speed: Speed, ranks: int) -> dict[str, Any]:
    s = speed.seconds
    found: dict[str, Any] = {
        "bytes": speed.nbytes,
        "repetitions": s.n,
        "median_s": s.median,
        "low_s": _known(s.low),
        "high_s": _known(s.high),
        "below_resolution": str(speed.below_resolution).lower(),
    }
    for name, stored in (("rate", False), ("stored_rate", True)):
        middle, low, high = speed.rate(stored=stored) or (math.nan,) * 3
        found |= {
            f"{name}_mib_s": _known(middle / _MIB),
            f"{name}_low_mib_s": _known(low / _MIB),
            f"{name}_high_mib_s": _known(high / _MIB),
            f"{name}_per_rank_mib_s": _known(middle / ranks / _MIB),
        }
    return found


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
