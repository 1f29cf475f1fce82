"""Data of the charts of a summary, without drawing."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pffbench.summary.columns import many_arrays
from pffbench.summary.statistics import FEWEST_FOR_INTERVAL, Spread
from pffbench.summary.summary import CaseSummary, PhaseSummary, Summary

from pffbench.phases import MOVING, TOTALS, in_order
from pffbench.text import value_text
from pffbench_analysis.derived_files import known

_MIB = 2**20


@dataclass(frozen=True)
class CaseMedian:
    """One mark: the median of a case in a phase, its interval and its repetitions.

    Parameters
    ----------
    case : CaseSummary
        The case.
    value : float
        Median over the repetitions.
    low, high : float
        Its 95 % interval; of fewer than five repetitions, which allow none, their range.
    repetitions : tuple of float
        The repetitions in their order.
    unsure : bool
        Whether the phase is too short to be distinguished from the harness.
    """

    case: CaseSummary
    value: float
    low: float
    high: float
    repetitions: tuple[float, ...]
    unsure: bool

    @property
    def has_interval(self) -> bool:
        """Whether `low` and `high` are an interval, not a range."""
        return len(self.repetitions) >= FEWEST_FOR_INTERVAL


@dataclass(frozen=True)
class Panel:
    """One phase; a case without that phase has None in its place.

    Parameters
    ----------
    heading : str
        The phase.
    medians : tuple of CaseMedian or None
        The cases.
    limit : float or None
        Value reached by raw bytes, in the unit of the chart.
    limit_name : str
        What reaches it.
    """

    heading: str
    medians: tuple[CaseMedian | None, ...]
    limit: float | None = None
    limit_name: str = ""

    @property
    def drawn(self) -> list[CaseMedian]:
        """The medians without gaps."""
        return [median for median in self.medians if median is not None]


@dataclass(frozen=True)
class Chart:
    """Panels of one comparison that belong together and share an axis.

    Parameters
    ----------
    name : {"metadata", "data", "totals"}
        The group of phases.
    heading : str
        Quantity of the chart.
    unit : str
        Label of the axis of values.
    panels : tuple of Panel
        The phases.
    labels : tuple of str
        The cases, one for each place in every panel.
    """

    name: str
    heading: str
    unit: str
    panels: tuple[Panel, ...]
    labels: tuple[str, ...]


def charts(cases: Sequence[CaseSummary], summary: Summary) -> Iterator[Chart]:
    """Yield the charts of one comparison; those without any number are left out.

    INVALID cases are not drawn, since readers compare any visible mark.
    """
    ordered = sorted((case for case in cases if not case.invalid), key=place)
    if not ordered:
        return
    labels = tuple(map(label, ordered))
    metadata, totals = _metadata(ordered), tuple(TOTALS)
    of_metadata = _times(ordered, metadata)
    if many_arrays(ordered):
        of_metadata = "µs per dataset", _per_array_us
    for name, heading, phases, (unit, convert) in (
        ("metadata", _OTHER_PHASES, metadata, of_metadata),
        ("data", _DATA, ("write", "update", "read"), ("MiB/s", _rates)),
        ("totals", _TOTALS, totals, _times(ordered, totals)),
    ):
        panels = (_panel(ordered, summary, phase, convert) for phase in phases)
        if drawn := tuple(panel for panel in panels if panel.drawn):
            yield Chart(name, heading, unit, drawn, labels)


_OTHER_PHASES = "Other phases: time of each but writing and reading (less is better)"
_DATA = "Data: rate of all ranks together (more is better)"
_TOTALS = "Totals: time to write everything, and to read it back (less is better)"


@dataclass(frozen=True)
class RawLimit:
    """Bound on the cases of a comparison in a phase.

    Parameters
    ----------
    seconds : float
        The smallest median of a raw transfer of the same bytes, never less than copying them in
        memory takes.
    nbytes : int
        The bytes.
    label : str
        The raw transfer.
    of_memory : bool
        Whether copying takes longer than that transfer did.
    """

    seconds: float
    nbytes: int
    label: str
    of_memory: bool = False


def raw_limit(cases: Sequence[CaseSummary], summary: Summary, phase: str) -> RawLimit | None:
    """Return the bound on the cases of a comparison in a phase; None without raw transfers."""
    found = [
        (told.seconds.median, label(case), round((told.rate or 0.0) * told.seconds.median))
        for case in cases
        if case.raw and not case.invalid and case.entry.get("verified", True)
        if phase in MOVING and (told := case.phases.get(phase)) is not None
    ]
    if not found:
        return None
    seconds, name, nbytes = min(found)
    copy_rate = summary.record.floor.get("memory_copy_bytes_per_second", 0.0)
    copying = nbytes / copy_rate if copy_rate else 0.0
    return RawLimit(max(seconds, copying), nbytes, name, copying > seconds)


def reach(found: Spread) -> tuple[float, float]:
    """Return the interval of a median; of fewer than five repetitions their range."""
    if found.n < FEWEST_FOR_INTERVAL:
        return found.minimum, found.maximum
    return found.low, found.high


def label(case: CaseSummary) -> str:
    """Name a case within its comparison."""
    s = case.sample
    settings = "raw" if case.raw else s.settings
    return " ".join(word for word in (s.backend, settings, s.transfer, case.variant) if word)


def differences(groups: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Return for each comparison the parameters in which it differs from another.

    Parameters
    ----------
    groups : dict of str to dict
        For each comparison the parameters that its cases have in common.
    """
    words = {name: {k: value_text(v) for k, v in common.items()} for name, common in groups.items()}
    keys = dict.fromkeys(key for common in words.values() for key in common)
    telling = [key for key in keys if len({common.get(key) for common in words.values()}) > 1]
    return {
        name: {key: common[key] for key in telling if key in common}
        for name, common in words.items()
    }


def place(case: CaseSummary) -> tuple[object, ...]:
    """Sort key: formats before raw bytes, as in tables, and numbers in labels by size."""
    s = case.sample
    words = re.split(r"(\d+)", case.variant)
    natural = [(int(word), "") if word.isdigit() else (0, word) for word in words]
    return (case.raw, s.backend, s.settings, s.transfer, natural, s.case)


def _metadata(cases: Sequence[CaseSummary]) -> tuple[str, ...]:
    """Return the phases that move no data: the usual ones first, then those of the workload."""
    names = dict.fromkeys(name for case in cases for name in case.phases if name not in MOVING)
    return tuple(in_order(names))


#: Converts seconds of a phase of a case to the unit of a chart; NaN where nothing is moved.
Convert = Callable[[float, PhaseSummary, CaseSummary], float]


def _times(cases: Sequence[CaseSummary], phases: Sequence[str]) -> tuple[str, Convert]:
    """Return the unit that suits the longest of some times, and the conversion to it."""
    found = [case.phases[name].seconds.median for case in cases for name in phases
             if name in case.phases]  # fmt: skip
    if max(found, default=1.0) >= 1.0:
        return "seconds", lambda seconds, *_: seconds
    return "ms", lambda seconds, *_: 1e3 * seconds


def _per_array_us(seconds: float, _: PhaseSummary, case: CaseSummary) -> float:
    return 1e6 * seconds / case.sample.arrays


def _rates(seconds: float, phase: PhaseSummary, _: CaseSummary) -> float:
    """Convert to MiB/s; the longest time is the lowest rate."""
    if phase.rate is None or seconds <= 0:
        return math.nan
    return phase.rate * phase.seconds.median / _MIB / seconds


def _panel(cases: Sequence[CaseSummary], summary: Summary, phase: str, convert: Convert) -> Panel:
    medians = tuple(_median(case, phase, convert) for case in cases)
    bound, name = None, ""
    if (limit := raw_limit(cases, summary, phase)) is not None:
        some = next(case for case in cases if phase in case.phases)
        bound = known(convert(limit.seconds, some.phases[phase], some))
        name = "memory copy" if limit.of_memory else "raw"
    return Panel(phase.replace("_total", " total"), medians, bound, name)


def _median(case: CaseSummary, phase: str, convert: Convert) -> CaseMedian | None:
    found = case.phases.get(phase)
    if found is None:
        return None
    value = convert(found.seconds.median, found, case)
    bounds = [convert(seconds, found, case) for seconds in reach(found.seconds)]
    repetitions = tuple(convert(seconds, found, case) for seconds in found.by_block.values())
    if any(map(math.isnan, (value, *bounds, *repetitions))):
        return None
    unsure = found.warned("below_resolution")
    return CaseMedian(case, value, min(bounds), max(bounds), repetitions, unsure)


#: Largest number of repetitions of one mark that a static figure can resolve.
MOST_DOTS = 200
#: Largest number of dots of a figure, unless too few remain for one mark: SVG keeps each.
_MOST_IN_ALL = 4000
_FEWEST_DOTS = 20


def dots_each(medians: int) -> int:
    """Return the largest number of repetitions per median in a figure of so many medians."""
    return min(MOST_DOTS, max(_FEWEST_DOTS, _MOST_IN_ALL // max(1, medians)))


def kept(values: Sequence[float], most: int) -> list[int]:
    """Return the indices of at most `most` values, evenly spaced in their order.

    The smallest and the largest one are always among them; `most` is three or more.
    """
    if len(values) <= most:
        return list(range(len(values)))
    spaced = np.linspace(0, len(values) - 1, most - 2).round().astype(int).tolist()
    return sorted({*spaced, int(np.argmin(values)), int(np.argmax(values))})
