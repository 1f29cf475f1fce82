"""Compression against speed as files of a results directory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pffbench.regular_files import make_own_directory, write_replacing
from pffbench.summary.summary import Summary, compression_ratio
from pffbench_analysis.derived_files import bounded, slug, write_csv
from pffbench_analysis.picture import save
from pffbench_analysis.recommend.frontier import DIRECTIONS, DataKind, Speed, kinds_of, standings
from pffbench_analysis.recommend.frontier_figure import draw_kind
from pffbench_analysis.recommend.frontier_text import markdown

_MIB = 2**20
_NAME = "pareto"


def write_frontier(summary: Summary, directory: str | Path) -> Iterator[Path]:
    """Write `pareto.md`, `pareto.csv` and a figure for each kind of data under `plots`.

    Nothing is written for a run that compressed no kind of data by more than one codec; files of
    an earlier report are then removed.

    Yields
    ------
    Path
        Each file that was written.
    """
    place = Path(directory)
    text, table = (place / f"{_NAME}{suffix}" for suffix in (".md", ".csv"))
    kinds = kinds_of(summary)
    plots = place / "plots"
    if kinds or os.path.lexists(plots):
        make_own_directory(plots)
    for old in plots.glob(f"{_NAME}-*.[ps][nvd][gf]"):
        old.unlink()
    if not kinds:
        text.unlink(missing_ok=True)
        table.unlink(missing_ok=True)
        return
    write_replacing(text, "\n".join(markdown(kinds, summary)) + "\n")
    write_csv(table, (row for kind in kinds for row in rows_of(kind)))
    yield from (text, table)
    for name, kind in zip(file_names(kinds), kinds, strict=True):
        yield from save(draw_kind(kind, summary), plots / name, links=False)


def file_names(kinds: Sequence[DataKind]) -> list[str]:
    """Name the figures by their kinds of data, numbered where names are equal."""
    stems = [slug(f"{_NAME}-{kind.name}") for kind in kinds]
    return [s if stems.count(s) == 1 else f"{s}-{i}" for i, s in enumerate(stems, start=1)]


def rows_of(kind: DataKind) -> Iterator[dict[str, Any]]:
    """Yield a row for each point and direction that was measured."""
    both = standings(kind, DIRECTIONS)
    for direction in DIRECTIONS:
        placed = standings(kind, (direction,))
        for point, own, joint in zip(kind.points, placed, both, strict=True):
            speed = Speed.of(point, direction)
            if speed is None:
                continue
            seconds, rate, stored = speed.phase.seconds, speed.rate(), speed.rate(stored=True)
            yield {
                "kind": kind.name,
                "ranks": kind.ranks,
                "case": point.case.sample.case,
                "way": kind.way(point),
                "backend": point.backend,
                "codec": point.codec,
                "ratio": compression_ratio(point.case),
                "stored_bytes": round(point.stored_bytes),
                "direction": direction,
                "bytes": speed.nbytes,
                "repetitions": seconds.n,
                **bounded("median_s low_s high_s", seconds.estimate),
                **bounded("rate_mib_s rate_low_mib_s rate_high_mib_s", rate, 1 / _MIB),
                **bounded(
                    "stored_rate_mib_s stored_rate_low_mib_s stored_rate_high_mib_s",
                    stored,
                    1 / _MIB,
                ),
                **bounded("rate_per_rank_mib_s", rate, 1 / _MIB / kind.ranks),
                **bounded("stored_rate_per_rank_mib_s", stored, 1 / _MIB / kind.ranks),
                "below_resolution": speed.unsure,
                "standing": own.standing.value,
                "due_to": "" if own.by is None else kind.way(kind.points[own.by]),
                "standing_both": joint.standing.value,
            }
