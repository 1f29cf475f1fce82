"""The extension of reports by published numbers: files, and a section of the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from pffbench.results.summary import Summary


class PublishedNumbers:
    """A `ReportExtension` that puts published numbers beside those of a run."""

    listed: ClassVar[tuple[str, ...]] = ("published.md",)

    def write(self, summary: Summary, directory: Path) -> Iterator[Path]:
        """Write the comparison of a run with its study; nothing where it has none."""
        if summary.record.experiment.get("study"):
            from pffbench_studies.published.writing import write_published

            yield from write_published(summary, directory)

    def section(self, summary: Summary, directory: Path) -> str:
        """Return the section of the page; empty where a run has no study."""
        if not summary.record.experiment.get("study"):
            return ""
        from pffbench_studies.published.writing import section

        return section(summary, directory)
