"""The legend below the tables explains the words that occur in them, and no others."""

from pathlib import Path

import pytest

from pffbench.summary.columns import columns_of
from pffbench.summary.legend import legend_lines
from pffbench.summary.summary import summarise

RESULTS = sorted((Path(__file__).resolve().parents[2] / "docs" / "results").rglob("run.json"))


@pytest.mark.parametrize("file", RESULTS, ids=lambda file: file.parent.name)
def test_columns_are_explained_where_a_table_has_them(file):
    summary = summarise(file.parent)
    headings = {
        column.heading for cases in summary.groups.values() for column in columns_of(cases)
    }
    told = "; ".join(legend_lines(summary))
    for word in ("threads", "+MiB", "inodes", "×best", "roof", "n"):
        assert (f"{word}: " in told) == (word in headings), word


def test_counts_of_which_no_table_has_a_column_are_not_explained():
    """Zarr alone has threads; among other formats its tables do not show them."""
    summary = summarise(next(file.parent for file in RESULTS if "default" in str(file)))
    for case in summary.cases:
        if case.sample.backend == "zarr":
            case.counts["write", "threads"] = 4.0
    assert not any(line.startswith("threads") for line in legend_lines(summary))
