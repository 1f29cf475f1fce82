"""The legend below the tables explains the words that occur in them, and no others."""

import html
from pathlib import Path

import pytest
from msgspec.structs import replace

from drawn_runs import a_case, a_run
from pffbench.summary.columns import columns_of
from pffbench.summary.legend import legend_lines
from pffbench.summary.summary import summarise
from pffbench_analysis.page import write_page
from pffbench_analysis.recommend.candidates import Candidate

RESULTS = sorted((Path(__file__).resolve().parents[2] / "docs" / "results").rglob("run.json"))


@pytest.mark.parametrize("of", ["text", "page"])
@pytest.mark.parametrize("file", RESULTS, ids=lambda file: file.parent.name)
def test_columns_are_explained_where_a_table_has_them(file, of):
    summary = summarise(file.parent)
    columns = [c for cases in summary.groups.values() for c in columns_of(cases, of)]
    headings = {column.heading for column in columns if of == "text" or not column.is_text}
    told = "; ".join(["", *legend_lines(summary, of)])
    for word in ("threads", "+MiB", "inodes", "×best", "roof", "MiB/s", "n"):
        assert (f"; {word}: " in told) == (word in headings), word
    assert ("; data only: " in told) == ("data only MiB/s" in headings)


def test_the_page_has_the_legend_of_its_tables(tmp_path):
    a_run(tmp_path, [a_case("hdf5", "independent"), a_case("zarr", "independent")])
    summary = summarise(tmp_path)
    page = html.unescape(write_page(summary, tmp_path, {}).read_text())
    told = list(legend_lines(summary, "page"))
    assert any(line.startswith("×best: ") for line in told)
    assert [line for line in told if line not in page] == []


def test_counts_of_which_no_table_has_a_column_are_not_explained():
    """Zarr alone has threads; among other formats its tables do not show them."""
    summary = summarise(next(file.parent for file in RESULTS if "default" in str(file)))
    for case in summary.cases:
        if case.sample.backend == "zarr":
            case.counts["write", "threads"] = 4.0
    assert not any(line.startswith("threads") for line in legend_lines(summary))


@pytest.mark.parametrize(("files", "store"), [(1, "file"), (9, "file or directory")])
def test_a_store_of_several_files_is_not_called_one_file(tmp_path, files, store):
    case, entry = a_case("hdf5", "independent", layout="own")
    a_run(tmp_path, [(case, entry)])
    summary = summarise(tmp_path)
    cases = [replace(one, disk_files=files) for one in summary.cases]
    told = legend_lines(replace(summary, groups={"g": cases}))
    found = Candidate(cases[0], entry["parameters"], {}, None)
    assert f"one {'directory' if files > 1 else 'file'}, an array for each rank" in str(found.words)
    assert f"layout own: one {store} for all ranks, in it an array for each" in told
