"""Assembly of the page from templates: answer, tables, figures and provenance in one file.

Content of files is not trusted. Jinja2 escapes every text; and the page's content security policy
allows only the script whose digest it lists, and no requests.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pffbench import __version__
from pffbench.commands import to_install_analysis
from pffbench.commands.report import PAGE
from pffbench.errors import UserError
from pffbench.record.repetitions import FILE as REPETITIONS
from pffbench.regular_files import write_replacing
from pffbench.results.columns import details, legends, title
from pffbench.results.export import group_tables
from pffbench.results.extensions import report_extensions
from pffbench.results.grid import ways_table
from pffbench.results.summary import CaseSummary, Summary
from pffbench.results.table import Table
from pffbench_analysis.captions import footnote, gaps, place_of
from pffbench_analysis.page.provenance import provenance_of
from pffbench_analysis.picture import Figure, entry_svg, panel_svg
from pffbench_analysis.style import plain

if TYPE_CHECKING:
    import jinja2

_ASSETS = files("pffbench_analysis.page") / "assets"
#: Files next to the page; absent ones are not named.
_BESIDE = (
    "run.json", REPETITIONS, "samples.csv", "ranks.h5", "summary.csv", "summary.md",
    "results.json", "answer.svg", "plots",
)  # fmt: skip
_KINDS = {"USE": "good", "MEASURED": "good", "INVALID": "bad"}


class Group(NamedTuple):
    """A group of cases on the page: its subject, tables and figures."""

    title: str
    tables: Sequence[Table]
    figures: Sequence[Figure]


def write_page(
    summary: Summary,
    directory: Path,
    answer: Figure | None,
    figures: Mapping[str, Mapping[str, Figure]],
    missing: str = "",
) -> Path:
    """Write the page of a run into its results directory and return its path.

    Parameters
    ----------
    summary : Summary
        The run.
    directory : Path
        Its results directory.
    answer : Figure or None
        The figure of the answer.
    figures : dict of str to dict of str to Figure
        The figures of each group, by their names.
    missing : str
        What figures lack; usually empty.
    """
    path = directory / PAGE
    write_replacing(path, render(summary, directory, answer, figures, missing))
    return path


def render(
    summary: Summary,
    directory: Path,
    answer: Figure | None,
    figures: Mapping[str, Mapping[str, Figure]],
    missing: str = "",
) -> str:
    """Return the page as text; see `write_page`."""
    script = (_ASSETS / "page.js").read_text(encoding="utf-8")
    word = summary.answer.word if summary.answer else ""
    return (
        page_environment("pffbench_analysis.page")
        .get_template("page.html")
        .render(
            place=place_of(summary.record),
            name=summary.record.name,
            question=summary.record.question,
            kind=_KINDS.get(word, "open"),
            answer=summary.answer,
            answer_figure=answer,
            run=directory.name,
            gaps=[*gaps(summary), *filter(None, [missing])],
            ways=ways_table(summary.compared) if summary.compared else None,
            groups=[
                _group(cases, summary, figures.get(group, {}))
                for group, cases in summary.timed_groups.items()
            ],
            details=[*details(summary), *legends(summary)],
            facts=provenance_of(summary.record),
            added=[extension.section(summary, directory) for extension in report_extensions()],
            beside=[name for name in _beside() if (directory / name).exists()],
            about=footnote(summary),
            panel_svg=panel_svg,
            entry_svg=entry_svg,
            style=(_ASSETS / "page.css").read_text(encoding="utf-8"),
            script=script,
            digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            version=__version__,
        )
    )


def _group(cases: Sequence[CaseSummary], summary: Summary, figures: Mapping[str, Figure]) -> Group:
    subject = title(cases, summary)
    tables = [t._replace(title="") for t in group_tables(cases, summary)]
    return Group(subject, tables, list(figures.values()))


def _beside() -> tuple[str, ...]:
    return sum((extension.listed for extension in report_extensions()), _BESIDE)


def page_environment(package: str) -> jinja2.Environment:
    """Return the environment of the templates of a package, which make a page or a part of it.

    Raises
    ------
    UserError
        Jinja2 is not installed.
    """
    try:
        import jinja2
    except ModuleNotFoundError:
        raise UserError(
            f"the page needs jinja2, which is not installed: {to_install_analysis()}"
        ) from None
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _shown(value: object) -> object:
    """Return what a template shows: text that fonts can show; markup stays as it is."""
    return plain(value) if type(value) is str else value
