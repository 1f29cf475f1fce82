"""Histories: what edits say is what tables are, counts are right, and all comes of the seed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pffbench_studies.versions.history import COLUMNS, KINDS, Chances, History
from pffbench_studies.versions.interface import expected_bytes
from pffbench_studies.versions.repetition import Tally

AS_PUBLISHED = dict(KINDS)
HISTORIES = st.builds(
    History, st.sampled_from(sorted(KINDS)), st.integers(1, 12),
    st.sampled_from(["as_described", "as_published"]), st.sampled_from(["batch", "element"]),
    st.integers(0, 2**70), st.integers(0, 99),
)  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def eventful():
    """Let events be likely, so that a few versions show them all, and tables small."""
    often = Chances(0.6, 0.5, 0.5, in_first=True)
    before = dict(KINDS)
    for name, kind in before.items():
        rows = (37, *kind.start[1:])
        KINDS[name] = replace(kind, start=rows, changes=min(kind.changes, 50), chances=often)
    yield
    KINDS.update(before)


def applied(columns, edit):
    """Resize a column as HDF5 does, with zeros behind, and assign."""
    old = columns.get(edit.column, np.zeros((0,) * len(edit.shape), edit.data.dtype))
    new = np.zeros(edit.shape, edit.data.dtype)
    both = tuple(slice(0, min(a, b)) for a, b in zip(old.shape, new.shape, strict=True))
    new[both] = old[both]
    new[edit.slices] = edit.data
    columns[edit.column] = new


@settings(max_examples=60, deadline=None)
@given(HISTORIES)
def test_edits_make_each_table_of_the_one_before(history):
    columns = {}
    for version in history:
        for edit in version.edits:
            applied(columns, edit)
        assert set(columns) == set(version.table) == set(COLUMNS)
        for name, values in version.table.items():
            assert columns[name].dtype == values.dtype
            np.testing.assert_array_equal(columns[name], values)
            assert values.flags.c_contiguous


@settings(max_examples=40, deadline=None)
@given(HISTORIES)
def test_rows_are_counted_as_they_come_and_go(history):
    before = None
    for version in history:
        rows, table = version.rows, version.table
        if before is not None:
            assert version.length == len(before["key0"]) + rows.gained
            if not (rows.inserted or rows.deleted) and table["val"].ndim == 1:
                old = before["val"]
                assert np.count_nonzero(table["val"][: len(old)] != old) == rows.changed
        assert table["val"].shape == (
            (len(table["key0"]), len(table["key1"])) if KINDS[history.kind].dense
            else (len(table["key0"]),)
        )  # fmt: skip
        before = table


@settings(max_examples=30, deadline=None)
@given(HISTORIES)
def test_a_history_can_be_made_again_and_both_ways_of_changing_end_alike(history):
    other = replace(history, change="batch" if history.change == "element" else "element")
    for one, again, otherwise in zip(history, history, other, strict=True):
        assert one.rows == again.rows == otherwise.rows
        for name in COLUMNS:
            assert one.table[name].tobytes() == again.table[name].tobytes()
            assert one.table[name].tobytes() == otherwise.table[name].tobytes()


def test_ranks_have_different_histories():
    one, other = (list(History("mostly_appends_sparse", 3, rank=r))[-1] for r in (0, 1))
    assert one.table["val"][:10].tolist() != other.table["val"][:10].tolist()


def test_element_wise_changes_are_one_edit_each():
    history = History("small_fraction_changes_sparse", 20, "as_described", "element")
    single = [e for v in history for e in v.edits if e.data.size == 1 and v.number]
    assert len(single) > 20


def test_a_wrong_length_is_noticed():
    from pffbench_studies.versions.interface import ColumnStorage

    tally = Tally(ColumnStorage(16, "none", 0))
    first, second = list(History("mostly_appends_sparse", 1))[:2]
    tally.see(first)
    with pytest.raises(RuntimeError, match="rows instead of"):
        tally.see(replace(second, rows=replace(second.rows, appended=second.rows.appended + 1)))


class TestAsTheStudyHadThem:
    """The kinds as they are, without the events of the other tests."""

    @pytest.fixture(autouse=True)
    def as_they_are(self, monkeypatch):
        for name, kind in AS_PUBLISHED.items():
            monkeypatch.setitem(KINDS, name, kind)

    @pytest.mark.parametrize(
        ("kind", "versions", "rows", "tolerance"),
        [
            # 11.6 rows a version on average, since draws below 0 count as none.
            ("large_fraction_changes_sparse", 1000, 5000 + 10.4 * 1000, 0.05),
            ("large_fraction_constant_sparse", 1000, 5000 + 18_500 / 5, 0.08),  # 23 500 after 5000
            ("mostly_appends_sparse", 100, 1000 + 1000 * 100, 0.01),
        ],
    )
    def test_published_tables_grow_as_they_did(self, kind, versions, rows, tolerance):
        *_, last = History(kind, versions, "as_published")
        assert last.length == pytest.approx(rows, rel=tolerance)

    def test_published_histories_hardly_change_a_value(self):
        seen = list(History("large_fraction_changes_sparse", 2000, "as_published"))
        assert 5 <= sum(v.rows.changed > 0 for v in seen) <= 40  # 1 % of 2000, not 90 %
        described = list(History("large_fraction_changes_sparse", 100, "as_described"))
        assert sum(v.rows.changed > 800 for v in described) > 75
        assert not described[1].rows.changed

    def test_the_constant_table_is_constant_as_described(self):
        seen = list(History("large_fraction_constant_sparse", 30, "as_described"))
        assert {v.length for v in seen} == {5000}
        assert all(v.rows.changed > 800 for v in seen[1:])

    @pytest.mark.parametrize("keep", ["last", "copies", "chunks"])
    def test_space_is_not_estimated_too_low(self, keep):
        for kind in KINDS:
            for probabilities in ("as_described", "as_published"):
                history = History(kind, 30, probabilities)
                tables = [v.nbytes for v in history]
                least = sum(tables) if keep == "copies" else tables[-1]
                assert expected_bytes(kind, 30, probabilities, keep, 256) >= least
