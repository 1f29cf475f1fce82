"""The answer of a run that compares nothing: the times of its cases."""

from __future__ import annotations

import math

import msgspec

from pffbench.phases import TOTALS
from pffbench.summary.again import command_again
from pffbench.summary.conclusions import column_heading, listed
from pffbench.summary.labels import format_title
from pffbench.summary.phases import PhaseSummary
from pffbench.summary.summary import CaseSummary, Summary
from pffbench.summary.sweep_table import verb_of
from pffbench.units import seconds_text

#: Cases in the table.
_MOST_ROWS = 8


class MeasuredTimes(msgspec.Struct, frozen=True):
    """What a run measured that compares nothing: fields of its answer, which explains them."""

    sentence: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    legend: str
    notes: tuple[str, ...]
    open: str
    command: str


def measured_times(summary: Summary) -> MeasuredTimes | None:
    """Return what was measured, and the command that compares it; None without a time."""
    valid = [case for case in summary.cases if not case.invalid]
    cases = [case for case in valid if not case.raw] or valid
    totals = [total for total in TOTALS if any(total in case.phases for case in cases)]
    if not totals:
        return None
    headings = {
        total: column_heading(total, [case for case in cases if total in case.phases])
        for total in totals
    }
    names = list(dict.fromkeys(case.sample.backend for case in cases))
    other = "hdf5" if "zarr" in names else "zarr"
    command = command_again(summary.record, {"backend": f"[{', '.join([*names, other])}]"})
    more = len(cases) - _MOST_ROWS
    return MeasuredTimes(
        _sentence(cases, headings, names),
        tuple(headings.values()),
        tuple(
            (_name(case, cases), *(_cell(case.phases.get(total)) for total in totals))
            for case in cases[:_MOST_ROWS]
        ),
        "Medians, [95% interval], bytes of the arrays over the time.",
        (f"{more} more cases are in summary.md.",) if more > 0 else (),
        f"To compare with {format_title(other)}:" if command else "",
        command,
    )


def _sentence(cases: list[CaseSummary], headings: dict[str, str], names: list[str]) -> str:
    who = listed([format_title(name) for name in names])
    nothing = "there is nothing to compare it with"
    if len(cases) > 1:
        return f"{len(cases)} cases of {who} were measured, and none is comparable with another."
    times = [
        f"{seconds_text(cases[0].phases[total].seconds.median)} to {verb_of(heading)}"
        for total, heading in headings.items()
    ]
    return f"{who} takes {listed(times)}; {nothing}."


def _name(case: CaseSummary, cases: list[CaseSummary]) -> str:
    """Name a case by its format, and by what sets it apart."""
    sample = case.sample
    facts = [
        (format_title(sample.backend), True),
        (sample.workload, len({c.sample.workload for c in cases}) > 1),
        (f"layout {sample.layout}", len({c.sample.layout for c in cases}) > 1),
        (sample.settings, len({c.sample.settings for c in cases}) > 1),
        (sample.transfer, len({c.sample.transfer for c in cases}) > 1),
        (case.variant, bool(case.variant)),
    ]
    return " ".join(text for text, telling in facts if telling)


def _cell(found: PhaseSummary | None) -> str:
    """Return the time of a total with its interval, and the rate."""
    if found is None:
        return "–"
    spread = found.seconds
    text = seconds_text(spread.median)
    if not math.isnan(spread.low):
        text += f" [{seconds_text(spread.low)}–{seconds_text(spread.high)}]"
    return f"{text}, {found.rate / 1e9:.2g} GB/s" if found.rate else text
