"""`pffbench report`: summary, tables and figures of results directories, made anew."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from pffbench.errors import UserError
from pffbench.results.exports import write_summary
from pffbench.results.fom import write_fom
from pffbench.results.summary import Summary, summarise
from pffbench_analysis.captions import footnote, heading, how_to_read, stamp, verdict
from pffbench_analysis.charts import charts, differences
from pffbench_analysis.figures import Words, draw
from pffbench_analysis.page import write_page
from pffbench_analysis.style import RC

#: Twice as fine as a figure of nine inches is shown on a page of 900 pixels.
_DOTS_PER_INCH = 200
_LONGEST_NAME = 100


def report(runs: Sequence[str | Path]) -> Iterator[Path]:
    """Rebuild everything derived of some runs; nothing is written unless all can be read.

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
        try:
            yield from _report(directory, summary)
        except OSError as error:
            where = error.filename or directory
            raise UserError(f"{where} cannot be written: {error.strerror}") from None


def readable(run: str | Path) -> Summary:
    """Summarise a run.

    Raises
    ------
    UserError
        The directory holds no run, not one of this version, or one without any result.
    """
    try:
        summary = summarise(run)
    except ValueError as error:
        raise UserError(str(error)) from None
    except (TypeError, KeyError) as error:  # the version fits, the content does not
        raise UserError(f"{run} holds what pffbench did not write: {error}") from None
    if not summary.groups:
        raise UserError(f"{run} holds no repetition that counts: it ended before the first one did")
    return summary


def _report(directory: Path, summary: Summary) -> Iterator[Path]:
    write_summary(summary, directory)
    yield from (directory / "summary.csv", directory / "summary.md", write_fom(summary, directory))
    plots = directory / "plots"
    plots.mkdir(exist_ok=True)
    for name, figure in figures(summary):
        yield from save(figure, plots / name)
    yield write_page(summary, directory, _common(summary))


def figures(summary: Summary) -> Iterator[tuple[str, Figure]]:
    """Draw a figure for each group of phases of each comparison, and name it."""
    differs = differences(_common(summary))
    names = file_names(summary)
    for group, cases in summary.groups.items():
        for chart in charts(cases, summary):
            words = Words(
                title=heading(cases, summary, differs.get(group, {})),
                notes=how_to_read(chart, cases, summary),
                alarms=verdict(summary, group),
                footnote=footnote(summary),
                stamp=stamp(summary),
            )
            yield f"{names[group]}-{chart.name}", draw(chart, words)


def save(figure: Figure, path: Path) -> Iterator[Path]:
    """Write a figure as PNG and SVG; the same figure gives the same bytes.

    Parameters
    ----------
    figure : Figure
        What `pffbench_analysis.figures.draw` made.
    path : Path
        Where to, without the suffix.

    Yields
    ------
    Path
        The files.
    """
    with mpl.rc_context(RC):
        for suffix, metadata in ((".png", {"Software": None}), (".svg", {"Date": None})):
            file = path.with_name(path.name + suffix)
            figure.savefig(file, dpi=_DOTS_PER_INCH, metadata=metadata)
            yield file
            # The places stay as they are: to find them takes as long as to draw.
            figure.set_layout_engine("none")


def _common(summary: Summary) -> dict[str, dict[str, Any]]:
    """Return, for each comparison that was planned, the parameters that its cases share.

    Planned ones, so that names stay the same when a run is interrupted and goes on. What varies
    within any comparison tells none of them apart.
    """
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for entry in summary.record.cases.values():
        groups.setdefault(entry["group"], []).append(entry["parameters"])
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
    """Name the figures of each comparison: workload, layout and what tells equal ones apart."""
    common = _common(summary)
    names: dict[str, str] = {}
    for group, parameters in common.items():
        stem = [parameters["workload"], parameters["layout"]]
        alike = {g: p for g, p in common.items() if [p["workload"], p["layout"]] == stem}
        own = differences(alike)[group]
        names[group] = slug("-".join([*stem, *(f"{key}-{value}" for key, value in own.items())]))
    taken = list(names.values())
    return {g: n if taken.count(n) == 1 else f"{n}-{g[-8:]}" for g, n in names.items()}


def slug(text: str) -> str:
    """Return text as part of a file name."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text.replace("×", "x"))[:_LONGEST_NAME].strip("-.")
