"""The sentences of a scaling series: one line per case and phase, and reading notes."""

from __future__ import annotations

from collections.abc import Iterator

from pffbench.phases import TOTALS
from pffbench.units import Estimate, Size, percent, significant
from pffbench_analysis.scaling.points import Curve
from pffbench_analysis.scaling.series import Series

_MIB = 2**20


def phase_name(phase: str) -> str:
    """Return the name of a phase in tables."""
    return phase.replace("_total", " total")


def verdict(curve: Curve) -> str:
    """Describe in one line the scaling of a case in a phase."""
    name = f"{case_name(curve)}, {phase_name(curve.phase)}"
    first, last = curve.points[0], curve.points[-1]
    if curve.kind is None:
        few = "one size: nothing scales" if len(curve.points) == 1 else "not a scaling series"
        return f"{name}: {rate_text(last.rate)} with {count(last.size, curve.over)}; {few}"
    parts = [
        f"{first.size}→{count(last.size, curve.over)}, {significant(curve.speedup(last).value)}× "
        f"(ideal {curve.ideal(last):.3g}), efficiency {efficiency_text(curve.efficiency(last))}"
    ]
    if any(point.below_resolution for point in curve.points):
        parts.append("below resolution, not to be relied on")
    return f"{name}: {'; '.join(parts)}"


def case_name(curve: Curve) -> str:
    """Name a case: backend, layout, transfer, what is not usual, and its comparison."""
    s = curve.case.sample
    names = (s.backend, s.layout, s.transfer, *_unusual(curve), curve.apart)
    return " ".join(filter(None, names))


def name_in_comparison(curve: Curve) -> str:
    """Name a case in the legend of a figure: backend, and what is not usual."""
    return " ".join(filter(None, (curve.case.sample.backend, *_unusual(curve))))


def _unusual(curve: Curve) -> tuple[str, str]:
    s, case = curve.case.sample, curve.case
    settings = "raw" if case.raw else (s.settings if s.settings != "matched" else "")
    return settings, case.variant


def count(size: int, over: str) -> str:
    """Return a size with its unit."""
    return f"{size} {over if size > 1 else over[:-1]}"


def rate_text(rate: Estimate) -> str:
    """Return a rate in MiB/s with its interval."""
    return f"{rate.scaled(1 / _MIB)} MiB/s"


def efficiency_text(found: Estimate) -> str:
    """Return an efficiency in percent with its interval."""
    bounds = "too few repetitions for an interval"
    if found.has_interval:
        bounds = f"{percent(found.low)}–{percent(found.high)}".replace(" %–", "–")
    return f"{percent(found.value)} ({bounds})"


def work(curve: Curve) -> str:
    """Describe the work of a comparison, with the bytes that stay constant when the job grows."""
    s, point = curve.case.sample, curve.points[0]
    amount = f"{Size(point.nbytes)} in all"
    if curve.kind == "weak":
        amount = f"{Size(point.nbytes // point.ranks)} per rank"
    elif curve.kind is None:
        amount = f"{Size(point.nbytes)} with {count(point.ranks, 'ranks')}"
    kind = f"{curve.kind} scaling" if curve.kind else "one size"
    apart = f", {curve.apart}" if curve.apart else ""
    return f"{s.workload}, layout {s.layout}{apart}: {kind}, {amount}"


def can_tell(series: Series) -> Iterator[str]:
    """State the limits of conclusions from few sizes."""
    if len(series.sizes) == 1:
        yield (
            "One size only: rates, but no speed-up and no efficiency. "
            f"Add runs of the same experiment with other numbers of {series.over}."
        )


def verdicts(series: Series) -> list[str]:
    """Return the verdicts on the totals of all cases."""
    return [verdict(c) for c in series.curves if c.phase in TOTALS]


def unscaled(series: Series) -> list[str]:
    """Return the verdicts on the totals of cases with one size, which no table has."""
    totals = (c for c in series.curves if c.phase in TOTALS and c.kind is None)
    return [verdict(curve) for curve in totals]


def summary_lines(series: Series) -> list[str]:
    """Return the lines for a terminal: problems, then the totals of all cases."""
    return [*series.alarms, *can_tell(series), *verdicts(series), *series.noted]


#: Method notes, below tables and figures.
HOW_TO_READ = (
    "Rate: bytes of all ranks over the median job time; in brackets the 95 % interval of the "
    "median. Efficiency: the rate over that of the smallest size, as a part of how much larger the "
    "job is.",
    "Repetitions show the noise of one job, not that of another day.",
)
