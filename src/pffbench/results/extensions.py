"""Extensions of reports by other packages: files, a section of the page, and options."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from pffbench.plugins import load, plugins

if TYPE_CHECKING:
    import argparse

    from pffbench.results.summary import Summary

#: Other packages extend reports by an entry point of this group: a class with these methods.
ENTRY_POINT_GROUP = "pffbench.reports"


class ReportExtension(Protocol):
    """What a package adds to reports; its module imports nothing that draws at the top."""

    #: Names of the files that the page lists as beside it, where they exist.
    listed: ClassVar[tuple[str, ...]]

    def add_options(self, exclusive: Any) -> None:
        """Add options of `pffbench report` to a group of which a user may give one.

        Parameters
        ----------
        exclusive : argparse group
            The group.
        """

    def instead(self, arguments: argparse.Namespace) -> Iterator[Path] | None:
        """Do what one of its options asks for in place of a report.

        Returns
        -------
        iterator of Path or None
            The files that are written; None where none of its options was given.
        """

    def write(self, summary: Summary, directory: Path) -> Iterator[Path]:
        """Write files into a results directory, and yield each."""

    def section(self, summary: Summary, directory: Path) -> str:
        """Return a section of the page, as HTML that is safe; empty where there is none.

        Parameters
        ----------
        summary : Summary
            The run.
        directory : Path
            Its results directory, with the files of `write`.
        """


@cache
def report_extensions() -> tuple[ReportExtension, ...]:
    """Return the extensions of the installed packages."""
    return tuple(load(place)() for place in plugins(ENTRY_POINT_GROUP).values())
