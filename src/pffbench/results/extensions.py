"""Extensions of reports by other packages: files, and a section of the page."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from pffbench.plugins import loaded

if TYPE_CHECKING:
    from pffbench.results.summary import Summary

#: Other packages extend reports by an entry point of this group: a class with these methods.
ENTRY_POINT_GROUP = "pffbench.reports"


class ReportExtension(Protocol):
    """What a package adds to reports; its module imports nothing that draws at the top."""

    #: Names of the files that the page lists as beside it, where they exist.
    listed: ClassVar[tuple[str, ...]]

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
    return tuple(
        make() for make in loaded(ENTRY_POINT_GROUP, "listed", "write", "section").values()
    )
