"""The sentences of a scaling series: one line per case and phase, and reading notes."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from pffbench.units import Size
from pffbench_analysis.scaling.points import Curve, Estimate
from pffbench_analysis.scaling.prediction import FEWEST, WIDE, Prediction
from pffbench_analysis.scaling.series import Series

_MIB = 2**20


def phase_name(phase: str) -> str:
    """Return the name of a phase in tables."""
    return phase.replace("_total", " total")


def verdict(curve: Curve, series: Series) -> str:
    """Describe in one line the scaling of a case in a phase."""
    name = f"{case_name(curve)}, {phase_name(curve.phase)}"
    first, last = curve.points[0], curve.points[-1]
    if curve.kind is None:
        few = "one size: nothing scales" if len(curve.points) == 1 else "not a scaling series"
        return f"{name}: {rate_text(last.rate)} with {count(last.size, curve.over)}; {few}"
    parts = [
        f"{first.size}→{count(last.size, curve.over)}, {number(curve.speedup(last).value)}× "
        f"(ideal {curve.ideal(last):.3g}), efficiency {percent(curve.efficiency(last))}"
    ]
    if (found := series.prediction(curve)) is not None:
        parts.append(prediction_text(found, curve.over))
    below = "; below resolution, not to be relied on" if _unsound(curve) else ""
    return f"{name}: {'; '.join(parts)}{below}"


def _unsound(curve: Curve) -> bool:
    return any(point.below_resolution for point in curve.points)


def case_name(curve: Curve) -> str:
    """Name a case: backend, layout, transfer, and settings if not the usual ones."""
    s, case = curve.case.sample, curve.case
    settings = "raw" if case.raw else (s.settings if s.settings != "matched" else "")
    words = (s.backend, s.layout, s.transfer, settings, case.variant)
    return " ".join(word for word in words if word)


def count(size: int, over: str) -> str:
    """Return a size with its unit."""
    return f"{size} {over if size > 1 else over[:-1]}"


def prediction_text(found: Prediction, over: str) -> str:
    """State the predicted rate at a size, and its uncertainty."""
    at = count(found.size, over)
    if found.useless:
        return f"no prediction for {at} (its interval spans over a factor of {WIDE:g})"
    guess = f" (a guess: {found.why_guess})" if found.why_guess else ""
    return f"{rate_text(found.rate)} expected with {at} if nothing saturates{guess}"


def rate_text(rate: Estimate) -> str:
    """Return a rate in MiB/s with its interval."""
    return f"{interval(rate.scaled(1 / _MIB))} MiB/s"


def percent(found: Estimate) -> str:
    """Return a fraction in percent with its interval."""
    if math.isnan(found.low):
        return f"{found.value:.0%} (one repetition: no interval)"
    return f"{found.value:.0%} ({100 * found.low:.0f}–{100 * found.high:.0f}%)"


def interval(found: Estimate, digits: int = 3) -> str:
    """Return a number with its interval, if it has one."""
    value, low, high = (number(v, digits) for v in (found.value, found.low, found.high))
    return value if math.isnan(found.low) else f"{value} ({low}–{high})"


def number(value: float, digits: int = 3) -> str:
    """Return a number with significant digits, and no exponent unless it is tiny."""
    if not math.isfinite(value) or 0 < abs(value) < 1e-4:
        return f"{value:.{digits}g}"
    return np.format_float_positional(
        value, precision=digits, unique=False, fractional=False, trim="-"
    )


def work(curve: Curve) -> str:
    """Describe the work of a comparison, with the bytes that stay constant when the job grows."""
    s, point = curve.case.sample, curve.points[0]
    amount = f"{Size(point.nbytes)} in all"
    if curve.kind == "weak":
        amount = f"{Size(point.nbytes // point.ranks)} per rank"
    elif curve.kind is None:
        amount = f"{Size(point.nbytes)} with {count(point.ranks, 'ranks')}"
    kind = f"{curve.kind} scaling" if curve.kind else "one size"
    return f"{s.workload}, layout {s.layout}: {kind}, {amount}"


def can_tell(series: Series) -> Iterator[str]:
    """State the limits of conclusions from few sizes."""
    count = len(series.sizes)
    if count == 1:
        yield (
            "One size only: rates, but no speed-up and no efficiency. "
            f"Add runs of the same experiment with other numbers of {series.over}."
        )
    elif count < FEWEST:
        yield (
            f"{count} sizes only: speed-up and efficiency between them, but no prediction, "
            f"for which there must be {FEWEST} or more."
        )


def summary_lines(series: Series) -> list[str]:
    """Return the lines for a terminal: problems, then the totals of all cases."""
    lines = [*series.alarms, *can_tell(series)]
    lines += [verdict(c, series) for c in series.curves if c.phase.endswith("_total")]
    return lines + [f"note: {note}" for note in series.notes]


#: Method notes, below tables and figures.
HOW_TO_READ = (
    "Rate: bytes of all ranks over the median job time; in brackets the 95 % interval of the "
    "median. Efficiency: the rate over that of the smallest size, as a part of how much larger the "
    "job is.",
    "Expected: the mean slope of the three largest sizes, continued on double logarithmic axes. "
    "The interval holds the error of that slope, its change and a rate that stays as it is, such "
    "as that of a full link. It does not hold a rate that falls for a reason which no smaller job "
    "shows.",
    "Repetitions show the noise of one job, not that of another day.",
)
