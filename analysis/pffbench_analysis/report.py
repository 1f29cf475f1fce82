"""`pffbench report`: rebuilds summary, tables and figures of results directories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pffbench.summary.export import write_summary
from pffbench.summary.extensions import report_extensions
from pffbench.summary.results import write_results
from pffbench.summary.summary import Summary

from pffbench.grouping import grouped
from pffbench.regular_files import make_own_directory
from pffbench_analysis.answer import answer_heading, answer_notes, answer_panels, draw_answer
from pffbench_analysis.captions import (
    alarms,
    alarms_of_group,
    footnote,
    heading,
    how_to_read,
    stamp,
)
from pffbench_analysis.charts import charts, differences
from pffbench_analysis.derived_files import slug, writing
from pffbench_analysis.figures import draw
from pffbench_analysis.page import write_page
from pffbench_analysis.picture import Picture, Words, save
from pffbench_analysis.runs import readable

__all__ = ["figures", "file_names", "report", "save"]


def report(runs: Sequence[str | Path], *, pictures: bool = True) -> Iterator[Path]:
    """Rebuild all derived files of some runs; nothing is written unless all can be read.

    Parameters
    ----------
    runs : sequence of str or Path
        Results directories.
    pictures : bool
        Whether figures are drawn as files too, after the page, which takes most of the time.

    Yields
    ------
    Path
        Each file that was written.

    Raises
    ------
    UserError
        A directory holds no run with results, or cannot be written to.
    """
    summaries = [(Path(run), readable(run)) for run in runs]
    for directory, summary in summaries:
        with writing(directory):
            yield from _report(directory, summary, pictures=pictures)


def _report(directory: Path, summary: Summary, *, pictures: bool) -> Iterator[Path]:
    plots = directory / "plots"
    if pictures:
        make_own_directory(plots)  # before anything is written
    write_summary(summary, directory)
    yield from (directory / "summary.csv", directory / "summary.md")
    yield write_results(summary, directory)
    for extension in report_extensions():
        yield from extension.write(summary, directory)
    yield write_page(summary, directory, shared_parameters(summary))
    for name, picture in figures(summary) if pictures else ():
        yield from save(picture, plots / name, links=False)


def figures(summary: Summary) -> Iterator[tuple[str, Picture]]:
    """Yield the names and figures.

    The answer of the run comes first, then a figure for each group of phases of each comparison.
    """
    if panels := answer_panels(summary):
        words = Words(
            title=summary.record.question or summary.record.name,
            notes=answer_notes(panels, summary),
            alarms=alarms(summary),
            footnote=footnote(summary),
            stamp=stamp(summary),
        )
        yield "answer", draw_answer(panels, summary.margin, answer_heading(summary), words)
    differs = differences(shared_parameters(summary))
    names = file_names(summary)
    for group, cases in summary.groups.items():
        for chart in charts(cases, summary):
            words = Words(
                title=heading(cases, summary, differs.get(group, {})),
                notes=how_to_read(chart, cases),
                alarms=[*alarms(summary), *alarms_of_group(summary, group)],
                footnote=footnote(summary),
                stamp=stamp(summary),
            )
            yield f"{names[group]}-{chart.name}", draw(chart, words)


def shared_parameters(summary: Summary) -> dict[str, dict[str, Any]]:
    """Return, for each comparison that was planned, the parameters that its cases share.

    Planned comparisons keep names stable when a run is interrupted and resumed. Parameters that
    vary within any comparison are left out.
    """
    cases = summary.record.cases.values()
    groups = grouped((entry["group"], entry["parameters"]) for entry in cases)
    varying = {
        key
        for cases in groups.values()
        for key in cases[0]
        if any(case.get(key) != cases[0][key] for case in cases)
    }
    return {
        group: {key: value for key, value in cases[0].items() if key not in varying}
        for group, cases in groups.items()
    }


def file_names(summary: Summary) -> dict[str, str]:
    """Name the figures of each comparison: workload, layout and distinguishing parameters."""
    common = shared_parameters(summary)
    names: dict[str, str] = {}
    for group, parameters in common.items():
        stem = [parameters["workload"], parameters["layout"]]
        alike = {g: p for g, p in common.items() if [p["workload"], p["layout"]] == stem}
        own = differences(alike)[group]
        names[group] = slug("-".join([*stem, *(f"{key}-{value}" for key, value in own.items())]))
    taken = list(names.values())
    return {g: n if taken.count(n) == 1 else f"{n}-{g[-8:]}" for g, n in names.items()}
