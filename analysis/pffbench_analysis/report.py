"""`pffbench report`: makes summary, page and figures of results directories again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pffbench.regular_files import make_own_directory
from pffbench.results.columns import title
from pffbench.results.document import write_results
from pffbench.results.export import write_summary
from pffbench.results.extensions import report_extensions
from pffbench.results.summary import Summary, load
from pffbench_analysis.derived_files import slug, writing
from pffbench_analysis.figures import answer_figure, group_figures
from pffbench_analysis.page import write_page
from pffbench_analysis.picture import save
from pffbench_analysis.ranks import Ranks, read_ranks


def report(runs: Sequence[str | Path], *, figures: bool = False) -> Iterator[Path]:
    """Make all derived files of some runs again; nothing is written unless all can be read.

    Parameters
    ----------
    runs : sequence of str or Path
        Results directories.
    figures : bool
        Whether the figures of each group of cases are files too, in `plots`.

    Yields
    ------
    Path
        Each file that was written, the page last.

    Raises
    ------
    UserError
        A directory holds no run with results, or cannot be written to.
    """
    summaries = [(Path(run), load(run)) for run in runs]
    for directory, summary in summaries:
        with writing(directory):
            yield from _report(directory, summary, figures=figures)


def _report(directory: Path, summary: Summary, *, figures: bool) -> Iterator[Path]:
    plots = directory / "plots"
    if figures:
        make_own_directory(plots)  # before anything is written
    yield from write_summary(summary, directory)
    yield write_results(summary, directory)
    for extension in report_extensions():
        yield from extension.write(summary, directory)
    answer, place = answer_figure(summary), directory / "answer.svg"
    if answer:
        yield save(answer, place)
    else:
        place.unlink(missing_ok=True)
    ranks = _ranks(summary, directory)
    drawn = {
        group: group_figures(cases, summary, ranks) for group, cases in summary.timed_groups.items()
    }
    for number, (group, found) in enumerate(drawn.items() if figures else (), start=1):
        stem = f"{number}-{slug(title(summary.groups[group], summary))}"
        for name, figure in found.items():
            yield save(figure, plots / f"{stem}-{name}.svg", links=False)
    yield write_page(summary, directory, answer, drawn, ranks.missing)


def _ranks(summary: Summary, directory: Path) -> Ranks:
    rounds = {
        case.name: frozenset().union(*(phase.by_round for phase in case.phases.values()))
        for case in summary.cases
    }
    return read_ranks(directory, rounds)
