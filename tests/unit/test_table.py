"""Tables of text: one line a row where that fits, else narrow, and never wider than asked for."""

from __future__ import annotations

import pytest

from pffbench.results.table import Table

COLUMNS = ["", "old", "new"]


def test_a_table_that_fits_has_a_line_for_each_row():
    table = Table("Title", COLUMNS, [["HDF5", "1 ms", 2.0], ["Zarr", "10 ms", 3.0]])
    assert list(table.lines(80)) == list(table.lines()) == [
        "Title", "      old    new", "HDF5  1 ms     2", "Zarr  10 ms    3",
    ]  # fmt: skip


def test_a_wide_name_stands_above_its_rows_once():
    name = "HDF5, one file per rank"
    table = Table("", COLUMNS, [[name, "1 ms", "2 ms"], [name, "3 ms", "4 ms"], ["Zarr", "5", "6"]])
    assert list(table.lines(30)) == [
        "  old   new", name, "  1 ms  2 ms", "  3 ms  4 ms", "Zarr", "  5     6",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["Zarr", "a word " * 30, "x" * 300])
@pytest.mark.parametrize("columns", [1, 3, 40])
@pytest.mark.parametrize("width", [40, 80])
def test_no_line_is_wider_and_no_value_is_lost(name, columns, width):
    values = [f"{n}.25× (1–2) ~" for n in range(columns)]
    table = Table("t " * 60, ["", *map(str, range(columns))], [[name, *values], ["b", *values]])
    lines = list(table.lines(width))
    assert max(map(len, lines)) <= width
    assert all("\n".join(lines).count(f" {value}") == 2 for value in values)
