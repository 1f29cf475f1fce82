"""Runs of the workload `chunk_cache` beside the numbers of study 2."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

import drawn_runs
from drawn_runs import a_case, a_run, edit
from pffbench.record.repetitions import Counted
from pffbench.results.summary import summarise
from pffbench_studies.published import side_by_side
from pffbench_studies.published.order import OrderVerdict

STUDY = "hdf5-compression-tuning"
MIB = 2**20
PUBLISHED = {
    "workload": "study_chunk_cache", "files": "per_rank", "shape": [4, 30, 9, 717],
    "granules": 15, "codec": "gzip", "level": 6, "source": "cris",
    "chunks": [4, 30, 9, 717], "repack_chunks": None, "repack_with": "library", "read": "rows",
    "write": "chunks", "read_transfer": None, "sharing": "own", "byte_order": "big",
    "settings": "defaults",
}  # fmt: skip
SMALL = {"repack_chunks": [1, 30, 9, 717], "repack_with": "h5repack"}
THREE = SMALL | {"datasets": 3, "read": "chunks"}


@pytest.fixture(autouse=True)
def phases_with_repacking(monkeypatch):
    place = drawn_runs.PHASES.index("open")
    phases = (*drawn_runs.PHASES[:place], "repack", *drawn_runs.PHASES[place:])
    monkeypatch.setattr(drawn_runs, "PHASES", phases)


def case_of(seconds, cache=MIB, backend="hdf5", **changes):
    """Return a case like a published one, that reads in so many seconds."""
    _, entry = a_case(backend, **{**PUBLISHED, **changes})
    entry.options = {"chunk_cache": cache}
    entry.group = "one"
    name = "-".join(map(str, (backend, cache, *changes.values())))
    place = drawn_runs.PHASES.index("read") + 1
    return name, entry, seconds / place / 1.25  # drawn repetitions take 1.1 to 1.4 times as long


def compare_with_study(directory, *cases, counts=()):
    entries = [(name, entry) for name, entry, _ in cases]
    speed = {name: each for name, _, each in cases}
    run = a_run(directory, entries, speed=speed, repetitions=20, experiment={"study": STUDY})
    known = {name: (Counted("read", "decodes_counted", counted),) for name, counted in counts}
    edit(run, lambda one: replace(one, counts=known.get(one.case, ())))
    found = side_by_side(summarise(run))
    assert found is not None
    return found


def matches_by_number(found):
    return {(m.operation, m.published.value): m for m in found.matches}


def test_the_published_cases_are_matched(tmp_path):
    found = compare_with_study(
        tmp_path, case_of(300), case_of(0.5, cache=3 * MIB), case_of(0.4, read="chunks"),
        case_of(0.2, codec="none", level=None),
        case_of(0.05, codec="none", level=None, read="chunks"), case_of(0.45, **SMALL),
    )  # fmt: skip
    matches = matches_by_number(found)
    assert set(matches) == {
        ("read compressed", 345), ("read compressed", 0.37), ("read compressed", 0.36),
        ("read plain", 0.1), ("read plain", 0.04), ("repack", 12),
    }  # fmt: skip
    assert all(m.nearest for m in found.matches)
    slow = matches["read compressed", 345]
    assert slow.here == pytest.approx(288)  # the median of 20 repetitions
    assert slow.subject == "15 granules"
    assert slow.alternative == "gzip 6, 4×30×9×717, 1 MiB cache, by row"
    assert matches["repack", 12].phase.phase == "repack"


def test_three_datasets_in_one_call_stand_beside_their_own_number(tmp_path):
    found = compare_with_study(
        tmp_path, case_of(0.1, **THREE), case_of(0.1, **THREE, repack_datasets=1),
        case_of(0.1, **SMALL, repack_codec="none"),
    )  # fmt: skip
    assert {(m.alternative, m.published.value) for m in found.matches if "h5repack" in m.alternative
            and m.operation == "repack"} == {
        ("gzip 6, 1×30×9×717, h5repack, 3 of 3 datasets", 13),
        ("gzip 6, 1×30×9×717, h5repack, 1 of 3 datasets", 12),
    }  # fmt: skip
    assert {m.published.value for m in found.matches if m.operation == "read plain"} == {0.08}


def test_fewer_granules_stand_for_the_published_ones(tmp_path):
    found = compare_with_study(
        tmp_path, case_of(20, granules=1), case_of(0.03, cache=3 * MIB, granules=1)
    )
    slow = matches_by_number(found)["read compressed", 345]
    assert slow.here == pytest.approx(288)  # the median of 20 repetitions
    assert slow.subject == "1 granule for 15"
    about = {reason.about: reason.here for reason in found.reasons}
    assert about["number of granules"] == "1; times are brought to 15"


def test_the_order_is_held_or_broken(tmp_path):
    held = compare_with_study(tmp_path / "a", case_of(300), case_of(0.5, cache=3 * MIB))
    broken = compare_with_study(tmp_path / "b", case_of(0.3), case_of(0.5, cache=3 * MIB))
    assert [order.verdict for order in held.orders] == [OrderVerdict.SAME]
    assert [order.verdict for order in broken.orders] == [OrderVerdict.OTHER]


@pytest.mark.parametrize(
    "changes",
    [{"backend": "netcdf4"}, {"shape": [4, 6, 9, 717]}, {"cache": 2 * MIB}, {"cache": None},
     {"level": 4}, {"chunks": [2, 30, 9, 717]}, {"write": "rows"}, {"dtype": "float64"},
     {"codec": "zstd"}, {"chunks": "auto"}],
)  # fmt: skip
def test_what_the_study_did_not_do_stands_beside_nothing(tmp_path, changes):
    assert compare_with_study(tmp_path, case_of(1, **changes)).matches == ()


@pytest.mark.parametrize("chunks", ["auto", "rank_part"])
def test_other_ways_of_the_same_are_told_apart(tmp_path, chunks):
    found = compare_with_study(
        tmp_path, case_of(1, files="one", transfer="collective", settings="matched",
                          byte_order="native", chunks=chunks, sharing="interleaved"),
        case_of(1, cache=3 * MIB, cache_state="dropped"),
    )  # fmt: skip
    variants = {m.variant: m.nearest for m in found.matches}
    assert variants == {
        "one shared file, matched, native, warm, collective reads, interleaved": False,
        "one file per rank, library defaults, big-endian, warm": True,
    }


def test_decodes_that_were_counted_are_told(tmp_path):
    slow, fast = case_of(300), case_of(0.5, cache=3 * MIB)
    found = compare_with_study(tmp_path, slow, fast, counts=[(slow[0], 16_200), (fast[0], 15)])
    (told,) = [r.here for r in found.reasons if r.about == "chunks that were decoded"]
    assert told.count("16200") == 1
    assert "3 MiB cache, by row (one file per rank, library defaults, big-endian, warm): 15" in told
