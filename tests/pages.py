"""Report pages of runs, written without the other files of a report."""

from __future__ import annotations

from pathlib import Path

from pffbench_analysis.page import write_page
from pffbench_analysis.report import readable, shared_parameters


def page_of(directory: str | Path) -> Path:
    """Write the page of a run and return its path."""
    summary = readable(directory)
    return write_page(summary, directory, shared_parameters(summary))
