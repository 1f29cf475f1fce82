"""What a scaling figure says in words: which work, how to read it, where it comes from."""

from __future__ import annotations

from collections.abc import Sequence

from pffbench.results.statistics import FEWEST_FOR_INTERVAL
from pffbench.results.summary import Summary
from pffbench_analysis.captions import footnote
from pffbench_analysis.framing import Words
from pffbench_analysis.scaling.bootstrap import WIDE
from pffbench_analysis.scaling.series import Series
from pffbench_analysis.scaling.study import Fitted
from pffbench_analysis.scaling.words import work


def figure_words(series: Series, fitted: Sequence[Fitted]) -> Words:
    """Return the text of the figure of one comparison in one phase."""
    record = series.runs[-1].record
    case = fitted[0].curve.case.sample.case
    parameters = record.cases.get(case, {}).get("parameters", {})
    told = ", ".join(
        f"{key} {parameters[key]}" for key in ("decomposition", "cache") if parameters.get(key)
    )
    until = f", written until {parameters['durability']}" if "durability" in parameters else ""
    notes = [
        "Points: bytes of all ranks over the median job time, with its 95 % interval. Dotted: the "
        "ideal, from the smallest job.",
    ]
    if any(point.time.n < FEWEST_FOR_INTERVAL for one in fitted for point in one.curve.points):
        notes.append("Hollow: fewer than five repetitions, no interval.")
    if any(one.fits.chosen for one in fitted):
        notes.append(
            "Line: the law that predicts the largest size best from the others; × is that "
            "prediction, to the right of what was measured. Diamond: a size that was not measured. "
            f"Pale lines: their 95 % intervals; none is drawn that spans a factor of {WIDE:g}."
        )
    elif len(series.sizes) > 1:
        notes.append(f"No law: {fitted[0].fits.reason}.")
    if any(point.below_resolution for one in fitted for point in one.curve.points):
        notes.append(
            "Some points are under 100 times what the harness itself takes; see scaling.csv."
        )
    return Words(
        title=f"{record.name}: {work(fitted[0].curve)}{', ' + told if told else ''}{until}",
        notes=notes,
        alarms=list(series.alarms),
        footnote=f"{len(series.runs)} runs, the last: {footnote(Summary(record, {}))}",
        stamp="INVALID" if any(a.startswith("INVALID") for a in series.alarms) else "",
    )
