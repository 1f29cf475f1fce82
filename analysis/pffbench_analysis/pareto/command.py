"""Compression against speed as files of a results directory and as a frame."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pffbench.regular_files import make_own_directory, write_replacing
from pffbench.summary.summary import Summary
from pffbench_analysis.derived_files import known, slug, write_csv
from pffbench_analysis.pareto.advice import markdown
from pffbench_analysis.pareto.figure import draw_kind
from pffbench_analysis.pareto.front import standings
from pffbench_analysis.pareto.points import DIRECTIONS, DataKind, Speed, kinds_of
from pffbench_analysis.picture import save

if TYPE_CHECKING:
    import pandas as pd

_MIB = 2**20
_NAME = "pareto"


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
    lines = markdown(kinds, summary)
    write_replacing(place / f"{_NAME}.md", "\n".join(lines) + "\n")
    write_csv(place / f"{_NAME}.csv", (row for kind in kinds for row in rows_of(kind)))
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

    return pd.DataFrame([row for kind in kinds for row in rows_of(kind)])


def rows_of(kind: DataKind) -> Iterator[dict[str, object]]:
    """Yield a row for each point and direction that was measured."""
    both = standings(kind, DIRECTIONS)
    for direction in DIRECTIONS:
        placed = standings(kind, (direction,))
        for point, own, joint in zip(kind.points, placed, both, strict=True):
            speed = point.speed(direction)
            if speed is None:
                continue
            s, rates = speed.seconds, [_mib(speed, stored=stored) for stored in (False, True)]
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
                "bytes": speed.nbytes,
                "repetitions": s.n,
                "median_s": s.median,
                "low_s": known(s.low),
                "high_s": known(s.high),
                **dict(zip(_RATES, [*rates[0], *rates[1]], strict=True)),
                "rate_per_rank_mib_s": _share(rates[0][0], kind.ranks),
                "stored_rate_per_rank_mib_s": _share(rates[1][0], kind.ranks),
                "below_resolution": speed.below_resolution,
                "standing": own.standing.value,
                "due_to": "" if own.by is None else kind.points[own.by].name,
                "standing_both": joint.standing.value,
            }


_RATES = [f"{of}rate{bound}_mib_s" for of in ("", "stored_") for bound in ("", "_low", "_high")]


def _mib(speed: Speed, *, stored: bool) -> list[float | None]:
    """Return MiB/s, the median and its bounds; None where there is no number."""
    return [known(value / _MIB) for value in speed.rate(stored=stored) or (math.nan,) * 3]


def _share(rate: float | None, ranks: int) -> float | None:
    return None if rate is None else rate / ranks
