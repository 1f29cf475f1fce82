"""The extension of reports by published numbers: files, a section of the page, two options."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from pffbench.errors import UserError
from pffbench.run.output import make_console
from pffbench.summary.summary import Summary

#: Columns where the width is unknown, such as in a log.
_WIDTH = 140


class PublishedNumbers:
    """A `ReportExtension` that puts published numbers beside those of a run."""

    listed: ClassVar[tuple[str, ...]] = ("published.md",)

    def add_options(self, exclusive: Any) -> None:
        """Add the options that print the comparison, or write the files of study 1."""
        exclusive.add_argument(
            "--published",
            action="store_true",
            help="print the results beside the published ones of the study that the run redoes, "
            "and write nothing",
        )
        exclusive.add_argument(
            "--published-csv",
            action="store_true",
            help="write only published-csv/ in the results directory: the times in the layout of "
            "the study's own files; for file-format-testing",
        )

    def instead(self, arguments: argparse.Namespace) -> Iterator[Path] | None:
        """Print the comparison, or write the files of study 1, if asked for."""
        if arguments.published:
            _print(arguments.runs)
            return iter(())
        return _write_csv(arguments.runs) if arguments.published_csv else None

    def write(self, summary: Summary, directory: Path) -> Iterator[Path]:
        """Write the comparison of a run with its study; nothing where it has none."""
        from pffbench_studies.published.writing import write_published

        return write_published(summary, directory)

    def section(self, summary: Summary, directory: Path) -> str:
        """Return the section of the page."""
        from pffbench_studies.published.writing import section

        return section(summary, directory)


def _print(runs: Sequence[str]) -> None:
    """Print runs next to the studies that they repeat."""
    from pffbench_analysis.runs import readable
    from pffbench_studies.published.sidebyside import side_by_side
    from pffbench_studies.published.terminal import print_side_by_side
    from pffbench_studies.published.values import STUDIES

    console = make_console(_WIDTH)
    for run, summary in [(run, readable(run)) for run in runs]:
        found = side_by_side(summary)
        if found is None:
            raise UserError(
                f"{run}: its experiment names no study (key study: one of {', '.join(STUDIES)})"
            )
        if len(runs) > 1:
            console.print(f"\n{run}", style="bold", highlight=False, markup=False)
        print_side_by_side(found, console)


def _write_csv(runs: Sequence[str]) -> Iterator[Path]:
    from pffbench_analysis.runs import readable
    from pffbench_studies.published.csvlayout import write_study_csv

    for run in runs:
        yield from write_study_csv(readable(run), run)
