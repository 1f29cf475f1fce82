"""Data of the interactive figures of a page, as plain values for JSON.

The size of a page is bounded so that it opens at once: surplus repetitions are left out, and
`pffbench_analysis.page.ranks` groups ranks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pffbench.record.samples import Sample
from pffbench.summary.quantities import PHASE_QUANTITIES
from pffbench.summary.summary import CaseSummary, PhaseSummary, Summary, compression_ratio

from pffbench.phases import MOVING, TOTALS, in_order
from pffbench_analysis.answer import (
    AnswerRow,
    answer_heading,
    answer_least_width,
    answer_legend,
    answer_marks,
    answer_notes,
    answer_panels,
    answer_specs,
)
from pffbench_analysis.captions import stamp
from pffbench_analysis.charts import differences, kept, label, place, raw_limit
from pffbench_analysis.page.interactive import interactive_specs
from pffbench_analysis.page.ranks import RankTimes
from pffbench_analysis.style import colour

#: Largest number of repetitions, over all cases and phases, that are drawn individually.
MOST_POINTS = 40_000
#: Smallest number of repetitions that a case shows in each phase.
_FEWEST_POINTS = 8

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
        "run": summary.record.run_id,
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
        "what": "By median times, less is better.",
        "heading": answer_heading(summary),
        "legend": answer_legend(panels),
        "least": answer_least_width(panels),
        "marks": answer_marks(panels, summary.margin),
        "notes": answer_notes(panels, summary),
        "panels": [
            {"heading": panel.heading, "spec": panel.spec}
            for panel in answer_specs(panels, summary.margin)
        ],
        "values": [row.facts(panel.heading) for panel, row in rows],
        "numbers": [_answer_row(row) | {"total": panel.total} for panel, row in rows],
    }


def _answer_row(row: AnswerRow) -> Plain:
    return {
        "comparison": row.comparison,
        "format": row.name,
        "case": row.case,
        "standing": row.standing,
        "median_s": row.seconds,
        "ratio": row.ratio.value,
        "low": row.ratio.low,
        "high": row.ratio.high,
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
        "name": comparison_name(s, differs),
        "arrays": s.arrays,
        "limits": {
            phase: {
                "seconds": limit.seconds,
                "bytes": limit.nbytes,
                "case": limit.label,
            }
            for phase, limit in limits.items()
            if limit is not None
        },
        "cases": [_case(case, ranks, most) for case in ordered if not case.invalid],
        "invalid": [label(case) for case in ordered if case.invalid],
    }


def comparison_name(sample: Sample, differs: Mapping[str, str]) -> str:
    """Name a comparison by its workload, layout and distinguishing parameters."""
    more = [f"{k} {v}" for k, v in differs.items() if k not in ("workload", "layout")]
    return ", ".join([sample.workload, f"layout {sample.layout}", *more])


def _case(case: CaseSummary, ranks: RankTimes, most: int) -> Plain:
    s = case.sample
    return {
        "case": s.case,
        "label": label(case),
        "backend": s.backend,
        "colour": colour(s.backend),
        "settings": "raw" if case.raw else s.settings,
        "transfer": s.transfer,
        "variant": case.variant,
        "raw": case.raw,
        "stored_bytes": case.counts.get(("write", "stored_bytes")),
        "compression_ratio": compression_ratio(case),
        "phases": {name: _phase(found, most) for name, found in case.phases.items()},
        "ranks": ranks.of(s.case),
    }


def _phase(found: PhaseSummary, most: int) -> Plain:
    """Return the quantities of a phase, by their names in `summary.csv`, and its repetitions."""
    blocks, seconds, ranks = list(found.by_block), list(found.by_block.values()), found.ranks
    places = kept(seconds, most)
    return {
        **{quantity.name: quantity.of(found) for quantity in PHASE_QUANTITIES},
        "ranks": None if ranks is None else [ranks.first, ranks.middle, ranks.last],
        "blocks": [blocks[place] for place in places],
        "seconds": [seconds[place] for place in places],
    }
