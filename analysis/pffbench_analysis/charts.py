"""From a summary to the numbers of its charts; nothing here draws."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pffbench.phases import MOVING, TOTALS
from pffbench.results.summary import CaseSummary, PhaseSummary, Summary

_MIB = 2**20
#: The order of a cycle; phases that are not named here follow in the order in which they ran.
_LADDER = (
    "create", "define", "flush", "close", "sync", "reopen", "reopen_array", "extend",
    "flush_update", "close_update", "sync_update", "open", "open_array", "close_read", "remove",
)  # fmt: skip


@dataclass(frozen=True)
class Bar:
    """One bar: a case in a phase.

    Parameters
    ----------
    label : str
        Names the case within its comparison.
    backend, settings, transfer : str
        Of the case.
    raw : bool
        Whether it moves raw bytes.
    roofline : bool
        Whether it may serve as roofline: raw bytes that are really kept.
    value, low, high : float
        Median over the repetitions and the 95 % interval; NaN bounds for one repetition.
    points : tuple of float
        The repetitions in their order.
    below_resolution : bool
        Whether the phase is too short to be told apart from the harness.
    """

    label: str
    backend: str
    settings: str
    transfer: str
    raw: bool
    roofline: bool
    value: float
    low: float
    high: float
    points: tuple[float, ...]
    below_resolution: bool


@dataclass(frozen=True)
class Panel:
    """The bars of one phase; a case without that phase has None in its place."""

    heading: str
    bars: tuple[Bar | None, ...]

    @property
    def drawn(self) -> list[Bar]:
        """The bars that there are."""
        return [bar for bar in self.bars if bar is not None]


@dataclass(frozen=True)
class Chart:
    """Panels of one comparison that belong together and share an axis.

    Parameters
    ----------
    name : {"metadata", "data", "totals"}
        The group of phases.
    heading : str
        What is shown.
    unit : str
        Label of the axis of values.
    more_is_better : bool
        Rates are good when high, times when low.
    panels : tuple of Panel
        The phases.
    labels : tuple of str
        The cases, one for each place in every panel.
    roofline : bool
        Whether the fastest raw transfer is marked.
    """

    name: str
    heading: str
    unit: str
    more_is_better: bool
    panels: tuple[Panel, ...]
    labels: tuple[str, ...]
    roofline: bool


def charts(cases: Sequence[CaseSummary], summary: Summary) -> Iterator[Chart]:
    """Yield the charts of one comparison; those without any number are left out."""
    entries = summary.record.cases
    ordered = sorted(cases, key=place)
    labels = tuple(map(label, ordered))
    metadata, totals = _metadata(ordered), tuple(TOTALS)
    unit, convert = _times(ordered, metadata)
    if ordered[0].sample.workload == "datasets":
        unit, convert = "ms per dataset", _per_array_ms
    unit_of_totals, convert_totals = _times(ordered, totals)
    found = (
        Chart(
            "metadata",
            "Metadata: time of each phase without array data (less is better)",
            unit,
            False,
            _panels(ordered, entries, metadata, convert),
            labels,
            False,
        ),
        Chart(
            "data",
            "Data: rate of all ranks together (more is better)",
            "MiB/s",
            True,
            _panels(ordered, entries, ("write", "update", "read"), _rates),
            labels,
            True,
        ),
        Chart(
            "totals",
            "Totals: time to write everything, and to read it back (less is better)",
            unit_of_totals,
            False,
            _panels(ordered, entries, totals, convert_totals),
            labels,
            True,
        ),
    )
    yield from (chart for chart in found if chart.panels)


def label(case: CaseSummary) -> str:
    """Name a case within its comparison."""
    s = case.sample
    settings = "raw" if case.raw else s.settings
    return " ".join(word for word in (s.backend, settings, s.transfer, case.variant) if word)


def _word(value: object) -> str:
    return "×".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def differences(groups: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Tell comparisons apart: for each one the parameters in which it differs from another.

    Parameters
    ----------
    groups : dict of str to dict
        For each comparison the parameters that its cases have in common.
    """
    words = {name: {k: _word(v) for k, v in common.items()} for name, common in groups.items()}
    keys = dict.fromkeys(key for common in words.values() for key in common)
    telling = [key for key in keys if len({common.get(key) for common in words.values()}) > 1]
    return {
        name: {key: common[key] for key in telling if key in common}
        for name, common in words.items()
    }


def place(case: CaseSummary) -> tuple[object, ...]:
    """Order formats before raw bytes, as the tables do, and numbers in labels by their size."""
    s = case.sample
    words = re.split(r"(\d+)", case.variant)
    natural = [(int(word), "") if word.isdigit() else (0, word) for word in words]
    return (case.raw, s.backend, s.settings, s.transfer, natural, s.case)


def _metadata(cases: Sequence[CaseSummary]) -> tuple[str, ...]:
    """Return the phases that move no data: the ladder first, then what a workload adds."""
    names = dict.fromkeys(name for case in cases for name in case.phases if name not in MOVING)
    return tuple(n for n in _LADDER if n in names) + tuple(n for n in names if n not in _LADDER)


#: Median, bounds of its interval and the repetitions, in the unit of a chart.
Converted = tuple[float, float, float, tuple[float, ...]]
Convert = Callable[[PhaseSummary, CaseSummary], Converted | None]


def _times(cases: Sequence[CaseSummary], phases: Sequence[str]) -> tuple[str, Convert]:
    """Return the unit that suits the longest of some times, and what converts to it."""
    found = [case.phases[name].seconds.median for case in cases for name in phases
             if name in case.phases]  # fmt: skip
    if max(found, default=1.0) >= 1.0:
        return "seconds", lambda phase, _: _scaled(phase, 1.0)
    return "ms", lambda phase, _: _scaled(phase, 1e3)


def _panels(
    cases: Sequence[CaseSummary],
    entries: Mapping[str, Any],
    phases: Sequence[str],
    convert: Convert,
) -> tuple[Panel, ...]:
    def bar(case: CaseSummary, phase: str) -> Bar | None:
        found = case.phases.get(phase)
        numbers = None if found is None else convert(found, case)
        if found is None or numbers is None:
            return None
        s = case.sample
        return Bar(
            label(case),
            s.backend,
            s.settings,
            s.transfer,
            case.raw,
            case.raw and keeps_data(case, entries),
            *numbers,
            any(w.code == "below_resolution" for w in found.warnings),
        )

    found = (
        Panel(
            phase.replace("_total", " total"),
            tuple(bar(case, phase) for case in cases),
        )
        for phase in phases
    )
    return tuple(panel for panel in found if panel.drawn)


def keeps_data(case: CaseSummary, entries: Mapping[str, Any]) -> bool:
    """Whether what a case writes can be read back; without that it bounds nothing."""
    return bool(entries.get(case.sample.case, {}).get("verified", True))


def _scaled(phase: PhaseSummary, factor: float) -> Converted:
    s = phase.seconds
    points = tuple(factor * seconds for seconds in phase.by_block.values())
    return factor * s.median, factor * s.low, factor * s.high, points


def _per_array_ms(phase: PhaseSummary, case: CaseSummary) -> Converted:
    return _scaled(phase, 1e3 / case.sample.arrays)


def _rates(phase: PhaseSummary, case: CaseSummary) -> Converted | None:  # noqa: ARG001
    """Convert times to MiB/s; the longest time is the lowest rate."""
    s = phase.seconds
    if phase.rate is None or min(phase.by_block.values()) <= 0:
        return None
    amount = phase.rate * s.median / _MIB
    points = tuple(amount / seconds for seconds in phase.by_block.values())
    return amount / s.median, amount / s.high, amount / s.low, points
