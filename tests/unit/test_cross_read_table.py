"""Who reads whose files, as a table and in sentences."""

from __future__ import annotations

import pytest

from pffbench.record.cross_reads import (
    CrossRead,
    cross_read_lines,
    cross_read_table,
    cross_reads_of,
)
from pffbench.record.run_json import RunRecord
from timed_runs import a_record

FOUND = [
    CrossRead("a", "hdf5", "old", "old", "VALID"),
    CrossRead("a", "hdf5", "old", "new", "VALID"),
    CrossRead("a", "hdf5", "new", "old", "FAILED", "open: OSError: bad superblock"),
    CrossRead("a", "hdf5", "new", "new", "VALID"),
    CrossRead("b", "hdf5", "old", "old", "VALID"),
    CrossRead("b", "hdf5", "old", "new", "LEFT_OUT", "impossible with new: no MPI"),
    CrossRead("b", "hdf5", "new", "old", "LEFT_OUT", "impossible with new: no MPI"),
    CrossRead("b", "hdf5", "new", "new", "LEFT_OUT", "impossible with new: no MPI"),
    CrossRead("c", "hdf5", "new", "old", "VALID"),
    CrossRead("d", "zarr", "new", "old", "LEFT_OUT", "not a case of old"),
    CrossRead("d", "zarr", "new", "new", "FAILED", "wrong data"),
    CrossRead("e", "zarr", "new", "new", "FAILED", "wrong data"),
]


def test_a_row_is_a_format_and_a_writer_and_a_column_a_reader():
    headings, rows = cross_read_table(FOUND)
    assert headings == ["format", "written by", "read by old", "read by new"]
    assert rows == [
        ["hdf5", "old", "VALID", "VALID"],
        ["hdf5", "new", "1 of 2 VALID", "VALID"],
        ["zarr", "new", "left out", "FAILED"],
    ]


def test_each_error_is_a_sentence():
    assert cross_read_lines(FOUND) == [
        "Who reads whose files: 5 of 8 reads VALID, every byte verified",
        "old does not read files of new with hdf5: open: OSError: bad superblock",
        "new does not read its own files with zarr: wrong data (2 cases)",
        "3 reads left out: impossible with new: no MPI",
        "1 reads left out: not a case of old",
    ]
    assert cross_read_lines([]) == []


def test_a_record_of_others_is_checked_before_it_is_shown(tmp_path):
    record = a_record({})
    assert cross_reads_of(record.cross_reads) == []
    record.cross_reads = [{"case": "a", "backend": "hdf5", "writer": "x", "reader": "y",
                           "result": "PERHAPS"}]  # fmt: skip
    record.save(tmp_path)
    with pytest.raises(ValueError, match="PERHAPS"):
        RunRecord.load(tmp_path)
