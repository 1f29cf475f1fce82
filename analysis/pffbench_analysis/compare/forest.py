"""The figure of a comparison: the ratio of each case with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from pffbench.phases import TOTALS
from pffbench.summary.conclusions import number
from pffbench.summary.inference import MARGIN
from pffbench_analysis.compare.comparison import Comparison, Pair
from pffbench_analysis.compare.sentences import machine
from pffbench_analysis.picture import Picture, PicturePanel, Words
from pffbench_analysis.runs import ABSENT
from pffbench_analysis.specs import (
    ROW,
    Spec,
    equality,
    log_scale,
    marks,
    number_axis,
    panel,
    point,
)
from pffbench_analysis.style import colour

#: Largest number of cases in a readable figure.
_MOST = 80


def forest(found: Comparison, allowed: float | None = None) -> Picture | None:
    """Return the figure of every comparable case: one panel for writing, one for reading.

    Parameters
    ----------
    found : Comparison
        Comparison to draw.
    allowed : float, optional
        Largest allowed relative slowdown, where the band ends. By default the band is as wide as
        the margin within which runs count as equal.

    Returns
    -------
    Picture or None
        None if no sum of phases is comparable.
    """
    pairs = [pair for pair in found.rows if pair.is_total]
    labels = _labels(pairs)
    if not labels:
        return None
    margin = MARGIN if allowed is None else allowed
    # Both sides of 1 are equally wide.
    bounds = [abs(math.log(v)) for p in pairs for v in (p.low, p.high, p.ratio) if v > 0]
    reach = math.exp(max(0.06, 1.08 * max(bounds)))
    x = number_axis("new / base seconds, logarithmic", log_scale([1 / reach, reach], 0))
    panels = [
        PicturePanel(phase.replace("_", " "), _panel(labels, mine, margin, x))
        for phase in TOTALS
        if (mine := [pair for pair in pairs if pair.phase == phase])
    ]
    words = _text(found, margin, pairs, labels)
    heading = "Time of the new run over that of the base run"
    return Picture(heading, words, tuple(panels))


def _labels(pairs: Sequence[Pair]) -> list[str]:
    """Return the rows: all if few, else those with the largest changes."""
    effect: dict[str, float] = {}
    for pair in pairs:
        effect[pair.case.label] = max(effect.get(pair.case.label, 0), abs(math.log(pair.ratio)))
    kept = set(sorted(effect, key=lambda label: -effect[label])[:_MOST])
    return [label for label in effect if label in kept]


def _text(found: Comparison, band: float, pairs: Sequence[Pair], labels: Sequence[str]) -> Words:
    notes = [
        "Points: ratio of the medians, left of 1 faster, right of 1 slower. Lines: intervals "
        "of the ratio, in view of the number of comparisons. Filled: a difference is shown. "
        f"Band: within {100 * band:g} %.",
        machine(found),
    ]
    left_out = len({pair.case.label for pair in pairs}) - len(labels)
    if left_out:
        notes.append(f"{left_out} cases that changed less are not drawn.")
    runs = [f"{s.which} {run.record.run_id}" for s in (found.base, found.new) for run in s.runs]
    differs = ", ".join(map(str, found.differences)) or "nothing that is recorded"
    return Words(
        title=f"{Path(found.new.name).name} over {Path(found.base.name).name}",
        notes=notes,
        footnote=f"{'; '.join(runs)}; differs: {differs}",
    )


def _panel(labels: Sequence[str], pairs: Sequence[Pair], margin: float, x: Spec) -> Spec:
    rows = {label: f"{i} {label}" for i, label in enumerate(labels)}
    drawn = {pair.case.label: pair for pair in pairs if pair.case.label in rows}
    values = [
        {
            "row": rows[label],
            "value": pair.ratio,
            "low": min(pair.low, pair.ratio),
            "high": max(pair.high, pair.ratio),
            "sure": True,
            "text": number(pair.ratio),
            **point(
                colour(pair.case.backend),
                filled=pair.different,
                shape="circle" if pair.case.base else "diamond",
            ),
        }
        for label, pair in drawn.items()
    ]
    values += [{"row": rows[label], "text": ABSENT} for label in labels if label not in drawn]
    layers = [*equality(margin, x), *marks(list(rows.values()), values, x)]
    return panel(layers, ROW * len(rows))
