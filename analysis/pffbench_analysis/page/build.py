"""Assembly of the page from templates: data, tables, text and scripts in one file.

Content of files is not trusted. Jinja2 escapes every text; numbers and names for the figures are
JSON without any character special to HTML; and the page's content security policy allows only the
scripts whose digests it lists, and no requests.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pffbench.summary.extensions import report_extensions
from pffbench.summary.legend import legend_lines
from pffbench.summary.shards import shard_costs
from pffbench.summary.summary import Summary

from pffbench import __version__
from pffbench.commands import to_install_analysis
from pffbench.errors import UserError
from pffbench.regular_files import write_replacing
from pffbench_analysis.captions import footnote
from pffbench_analysis.charts import differences
from pffbench_analysis.page.numbers import figure_data
from pffbench_analysis.page.provenance import provenance_of
from pffbench_analysis.page.ranks import read_ranks
from pffbench_analysis.page.sections import choice_of, machine_of, verdict_of
from pffbench_analysis.page.tables import table_of
from pffbench_analysis.picture import converter
from pffbench_analysis.style import drawable, plain

if TYPE_CHECKING:
    import jinja2

_ASSETS = files("pffbench_analysis.page") / "assets"
#: In order of dependence.
_SCRIPTS = (
    "data.js", "specs.js", "tables.js", "controls.js", "figures.js", "pictures.js", "page.js",
)  # fmt: skip
#: Files next to the page; absent ones are not linked.
_BESIDE = (
    "run.json", "samples.csv", "ranks.h5", "counters.csv", "summary.csv", "summary.md",
    "plots",
)  # fmt: skip


def write_page(
    summary: Summary, directory: str | Path, common: Mapping[str, dict[str, Any]]
) -> Path:
    """Write `report.html` into a results directory.

    Parameters
    ----------
    summary : Summary
        The run.
    directory : str or Path
        Results directory of the run, where the page is written.
    common : dict of str to dict
        For each comparison, the parameters that its cases share.

    Returns
    -------
    Path
        The page.
    """
    path = Path(directory) / "report.html"
    write_replacing(path, render(summary, Path(directory), common))
    return path


def render(summary: Summary, directory: Path, common: Mapping[str, dict[str, Any]]) -> str:
    """Return the page as text."""
    ranks = read_ranks(directory, _repetitions(summary))
    differs = differences(common)
    scripts = (_library(), _scripts())
    gaps = [ranks.missing] if ranks.missing else []
    costs = shard_costs(summary)
    return (
        page_environment("pffbench_analysis.page")
        .get_template("page.html")
        .render(
            name=summary.record.name,
            question=summary.record.question,
            about=footnote(summary),
            verdict=verdict_of(summary, gaps),
            contents=[
                ("verdict", "Answer"),
                ("machine", "Machine"),
                ("tables", "Numbers"),
                *([("figures", "Figures")] if any(not c.invalid for c in summary.cases) else []),
                ("provenance", "Provenance"),
                ("files", "Files"),
            ],
            choice=choice_of(summary, directory),
            machine=machine_of(summary),
            tables=[
                table_of(cases, summary, differs.get(group, {}), costs)
                for group, cases in summary.groups.items()
            ],
            legend=list(legend_lines(summary, "page")),
            facts=provenance_of(summary.record),
            added=[extension.section(summary, directory) for extension in report_extensions()],
            beside=[name for name in _beside() if (directory / name).exists()],
            data=drawable(figure_data(summary, ranks, common)),
            style=(_ASSETS / "page.css").read_text(encoding="utf-8"),
            scripts=scripts,
            policy=_policy(scripts),
            version=__version__,
        )
    )


def _beside() -> tuple[str, ...]:
    return sum((extension.listed for extension in report_extensions()), _BESIDE)


def _repetitions(summary: Summary) -> dict[str, frozenset[int]]:
    """Return the repetitions that count, by case."""
    return {
        case.sample.case: frozenset().union(*(phase.by_block for phase in case.phases.values()))
        for case in summary.cases
    }


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
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return environment


def _shown(value: object) -> object:
    """Return what a template shows: text that fonts can show; markup stays as it is."""
    return plain(value) if type(value) is str else value


@cache
def _library() -> str:
    """Return the JavaScript of Vega, Vega-Lite and Vega-Embed, bundled with vl-convert."""
    return _harmless(_alone(converter().javascript_bundle("window.vegaEmbed = vegaEmbed;")))


def _scripts() -> str:
    """Return the page's own scripts."""
    parts = [(_ASSETS / name).read_text(encoding="utf-8") for name in _SCRIPTS]
    return _harmless(_alone("\n".join(['"use strict";', *parts])))


def _alone(script: str) -> str:
    """Return a script in a scope of its own."""
    return f"(() => {{\n{script}\n}})();"


def _harmless(script: str) -> str:
    """Return a script that cannot end its enclosing element."""
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _policy(scripts: Sequence[str]) -> str:
    """Return the content security policy: only these scripts run, and nothing is fetched."""
    digests = (base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
