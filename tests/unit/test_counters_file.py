"""`counters.csv`: what is written is what was counted."""

from __future__ import annotations

import pytest

from pffbench.record.counters import append_counts, read_counts
from pffbench.record.gather import Count


@pytest.mark.parametrize("total", [0.0, 3.0, 1_610_612_736.0, 2.0**53 - 1, 0.125, 1e-7])
def test_a_count_is_read_as_it_was_counted(tmp_path, total):
    """Bytes of 64 ranks have more than nine digits, and counts are compared exactly."""
    append_counts(tmp_path, "case", 0, False, [Count("write", "bytes_pwrite64", total, total / 2)])
    (row,) = read_counts(tmp_path)
    assert (row.total, row.largest) == (total, pytest.approx(total / 2, rel=1e-8))
