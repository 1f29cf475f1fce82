"""Table of the cost and savings of compression at each size of the job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pffbench.text import markdown_table
from pffbench_analysis.charts import label
from pffbench_analysis.scaling.points import Curve, Estimate, Point
from pffbench_analysis.scaling.sentences import count, interval, number, phase_name
from pffbench_analysis.scaling.series import Series

_MIB = 2**20
#: Parameters of compression.
_CODEC = ("codec", "level", "compressor", "shuffle")


def per_rank(point: Point, *, stored: bool = False) -> Estimate | None:
    """Return MiB/s of each rank on average, with the interval.

    Parameters
    ----------
    point : Point
        A case in a phase at one size.
    stored : bool
        Count bytes as stored in the files; None where these were not counted.
    """
    if stored and point.stored is None:
        return None
    share = point.stored / point.nbytes if stored and point.stored is not None else 1.0
    return point.rate.scaled(share / point.ranks / _MIB)


def ratio(point: Point) -> float | None:
    """Return bytes of the arrays over those in the files; None where these were not counted."""
    return None if point.stored is None else point.nbytes / point.stored


def uncompressed(curve: Curve, others: Sequence[Curve], series: Series) -> Curve | None:
    """Return the same way without compression: equal in all parameters and options but the codec.

    None without one, or where the curve itself is uncompressed.
    """
    mine = _way(curve, series)
    if _codec(curve, series) == "none":
        return None
    same = (o for o in others if o.phase == curve.phase and _way(o, series) == mine)
    return next((o for o in same if _codec(o, series) == "none"), None)


def price(point: Point, base: Curve | None) -> float | None:
    """Return the time over that without compression at the same size; None if not measured."""
    points = base.points if base is not None else ()
    found = next((p for p in points if p.size == point.size), None)
    return None if found is None else point.time.median / found.time.median


def compression_table(curves: Sequence[Curve], series: Series) -> Iterator[str]:
    """Yield a table of one comparison as Markdown; nothing for fewer than two codecs."""
    totals = [c for c in curves if c.phase.endswith("_total") and c.points[-1].stored is not None]
    if len({_codec(curve, series) for curve in totals}) < 2:
        return
    yield from ("", "### Compression over ranks", "")
    yield (
        "MiB/s of each rank in bytes of the arrays (95 % interval) / in bytes of the files; × the "
        "time over that of the same way without compression:"
    )
    yield ""
    headings = ["case", "phase", "ratio", *(count(size, series.over) for size in series.sizes)]
    rows = []
    for curve in totals:
        base = uncompressed(curve, curves, series)
        cells = {point.size: _cell(point, base) for point in curve.points}
        names = [label(curve.case), phase_name(curve.phase), _ratios(curve.points)]
        rows.append([*names, *(cells.get(size, "") for size in series.sizes)])
    yield from markdown_table(headings, rows, ["case", "phase"])


def _cell(point: Point, base: Curve | None) -> str:
    logical, stored = per_rank(point), per_rank(point, stored=True)
    assert logical is not None
    text = interval(logical) + ("†" if point.below_resolution else "")
    text += "" if stored is None else f" / {number(stored.value)}"
    times = price(point, base)
    return text if times is None else f"{text}, ×{number(times)}"


def _ratios(points: Sequence[Point]) -> str:
    """Return the ratio; its range if it depends on the size, as for growing data."""
    told = dict.fromkeys(f"{found:.3g}" for p in points if (found := ratio(p)) is not None)
    return "–".join(sorted({min(told, key=float), max(told, key=float)}, key=float))


def _entry(curve: Curve, series: Series) -> Mapping[str, Any]:
    name = curve.case.sample.case
    return next(r.record.cases[name] for r in reversed(series.runs) if name in r.record.cases)


def _codec(curve: Curve, series: Series) -> str:
    entry = _entry(curve, series)
    stored = entry.get("stored_as") or {}
    return str(stored.get("codec") or entry["parameters"].get("codec") or "none")


def _way(curve: Curve, series: Series) -> tuple[dict[str, Any], Any]:
    entry = _entry(curve, series)
    rest = {k: v for k, v in entry["parameters"].items() if k not in _CODEC}
    return rest, entry.get("options")
