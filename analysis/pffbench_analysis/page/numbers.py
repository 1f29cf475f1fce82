"""Data of the interactive figures of a page, as plain values for JSON.

The size of a page is bounded so that it opens at once: surplus repetitions are left out, and
`pffbench_analysis.page.ranks` groups ranks.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pffbench.phases import MOVING, TOTALS, in_order
from pffbench.record.samples import Sample
from pffbench.summary.summary import CaseSummary, PhaseSummary, Summary
from pffbench_analysis.answer import AnswerRow, answer_notes, answer_panels, margin_of
from pffbench_analysis.captions import stamp
from pffbench_analysis.charts import differences, kept, label, place, raw_limit
from pffbench_analysis.forest import answer_specs, row_facts
from pffbench_analysis.page.interactive import interactive_specs
from pffbench_analysis.page.ranks import RankTimes
from pffbench_analysis.style import colour, plain

#: Largest number of repetitions, over all cases and phases, that are drawn individually.
MOST_POINTS = 40_000
#: Smallest number of repetitions that a case shows in each phase.
_FEWEST_POINTS = 8
_DIGITS = 5

Plain = dict[str, Any]


def figure_data(summary: Summary, ranks: RankTimes, common: Mapping[str, Plain]) -> Plain:
    """Return the data of all figures of a page.

    Parameters
    ----------
    summary : Summary
        The run.
    ranks : RankTimes
        Times of the ranks, or the reason for their absence.
    common : dict of str to dict
        For each comparison, the parameters that its cases share.
    """
    series = sum(len(case.phases) for case in summary.cases)
    most = max(_FEWEST_POINTS, MOST_POINTS // max(1, series))
    told = differences(common)
    found = {name for case in summary.cases if not case.invalid for name in case.phases}
    moving = [name for name in dict.fromkeys((*TOTALS, *MOVING)) if name in found]
    return {
        "run": plain(summary.record.run_id),
        "stamp": stamp(summary),
        "ranks": summary.record.ranks,
        "memoryCopy": summary.record.floor.get("memory_copy_bytes_per_second"),
        "noRanks": ranks.missing,
        "phases": [*moving, *in_order(sorted(found.difference(moving)))],
        "totals": {name: list(parts) for name, parts in TOTALS.items()},
        "moving": list(MOVING),
        "mostPoints": most,
        "specs": interactive_specs(),
        "answer": _answer(summary),
        "groups": [
            _group(cases, summary, ranks, told.get(name, {}), most)
            for name, cases in summary.groups.items()
            if not all(case.invalid for case in cases)
        ],
    }


def _answer(summary: Summary) -> Plain | None:
    """Return the figure of the answer; None where nothing is compared."""
    panels = answer_panels(summary)
    if not panels:
        return None
    rows = [(panel, row) for panel in panels for row in panel.rows]
    return {
        "what": "Median time over the smallest one of each comparison, less is better.",
        "notes": answer_notes(summary),
        "panels": [
            {"heading": panel.heading, "spec": panel.spec}
            for panel in answer_specs(panels, margin_of(summary))
        ],
        "values": [row_facts(row, panel.heading) for panel, row in rows],
        "numbers": [_answer_row(row) | {"total": panel.total} for panel, row in rows],
    }


def _answer_row(row: AnswerRow) -> Plain:
    return {
        "comparison": row.comparison,
        "format": row.name,
        "case": row.case,
        "standing": row.standing,
        "median_s": short(row.seconds),
        "ratio": short(row.ratio.value),
        "low": short(row.ratio.low),
        "high": short(row.ratio.high),
        "repetitions": row.ratio.n,
        "needed": row.needed,
    }


def _group(
    cases: Sequence[CaseSummary],
    summary: Summary,
    ranks: RankTimes,
    differs: Mapping[str, str],
    most: int,
) -> Plain:
    """Return the data of a comparison; INVALID cases are named and have no numbers."""
    s = cases[0].sample
    ordered = sorted(cases, key=place)
    limits = {phase: raw_limit(cases, summary, phase) for phase in MOVING}
    return {
        "name": plain(comparison_name(s, differs)),
        "arrays": s.arrays,
        "limits": {
            phase: {
                "seconds": short(limit.seconds),
                "bytes": limit.nbytes,
                "case": plain(limit.label),
            }
            for phase, limit in limits.items()
            if limit is not None
        },
        "cases": [_case(case, ranks, most) for case in ordered if not case.invalid],
        "invalid": [plain(label(case)) for case in ordered if case.invalid],
    }


def comparison_name(sample: Sample, differs: Mapping[str, str]) -> str:
    """Name a comparison by its workload, layout and distinguishing parameters."""
    more = [f"{k} {v}" for k, v in differs.items() if k not in ("workload", "layout")]
    return ", ".join([sample.workload, f"layout {sample.layout}", *more])


def _case(case: CaseSummary, ranks: RankTimes, most: int) -> Plain:
    s = case.sample
    return {
        "case": plain(s.case),
        "label": plain(label(case)),
        "backend": plain(s.backend),
        "colour": colour(s.backend),
        "settings": "raw" if case.raw else plain(s.settings),
        "transfer": plain(s.transfer),
        "raw": case.raw,
        "phases": {name: _phase(found, most) for name, found in case.phases.items()},
        "ranks": ranks.of(s.case),
    }


def _phase(found: PhaseSummary, most: int) -> Plain:
    s, ratio, ranks = found.seconds, found.ratio, found.ranks
    numbers, seconds = list(found.by_block), list(found.by_block.values())
    places = kept(seconds, most)
    return {
        "n": s.n,
        "min": short(s.minimum),
        "median": short(s.median),
        "max": short(s.maximum),
        "low": short(s.low),
        "high": short(s.high),
        "mad": short(s.mad),
        "cv": short(s.cv),
        "rate": short(found.rate),
        "firstDone": short(found.first_done),
        "operations": short(found.operations_rate),
        "perArray": short(found.per_array),
        "ratio": None
        if ratio is None
        else [short(v) for v in (ratio.value, ratio.low, ratio.high)],
        "roof": short(found.roofline),
        "cpu": short(found.cpu_seconds),
        "warnings": [{"code": w.code, "message": plain(w.message)} for w in found.warnings],
        "spread": None
        if ranks is None
        else {
            "first": short(ranks.first),
            "middle": short(ranks.middle),
            "last": short(ranks.last),
            "imbalance": short(ranks.imbalance),
            "rank": ranks.slowest_rank,
            "rankShare": short(ranks.slowest_share),
            "host": plain(ranks.slowest_host),
            "hostShare": short(ranks.host_share),
        },
        "repetitions": [numbers[place] for place in places],
        "seconds": [short(seconds[place]) for place in places],
    }


def short(value: float | None) -> float | None:
    """Round a number to the digits that a figure can show; None if it is not a number."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{_DIGITS}g}")
