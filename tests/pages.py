"""Report pages of runs."""

from __future__ import annotations

from pathlib import Path

from pffbench_analysis.report import report


def page_of(directory: str | Path) -> Path:
    """Report on a run and return the path of its page."""
    *_, page = report([directory])
    return page
