"""Which way to use, and what it costs: cells of runs with known times."""

import numpy as np
import pytest

from drawn_runs import a_case, timed_run
from pffbench.record.run import MeasuredRun
from pffbench.results.cells import cells_of, summed
from pffbench.results.compare import Question, compare
from pffbench.results.decision import decide_way
from pffbench.results.names import labels
from pffbench.results.purposes import decide_work, usable
from sharing import keys_of, word_of

ONCE = {"write": 1.0, "read": 1.0}
ROUNDS = 20


def cells(directory, cases, **how):
    """Write a run of cases that take these mean seconds to write and read; return its cells."""
    rng = np.random.default_rng(1)
    load = np.exp(0.3 * rng.standard_normal(ROUNDS))

    def drawn(mean):
        return mean * load * np.exp(0.02 * rng.standard_normal(ROUNDS))

    entries = {key: entry for (key, entry), _ in cases}
    seconds = {key: [drawn(t) for t in times] for (key, _), times in cases}
    timed_run(directory, seconds, entries, **how)
    return cells_of(MeasuredRun.load(directory))


def two_files(hdf5=(0.2, 0.1), zarr=(0.4, 0.2), apart=2.0):
    """Cases of two formats, in a file for each rank, and in one file that takes longer."""
    return [
        (a_case(backend, **keys_of(layout)), [t * more for t in times])
        for layout, more in (("per_rank", 1.0), ("one-shared", apart))
        for backend, times in (("hdf5", hdf5), ("zarr", zarr))
    ]


def test_cells_have_totals_keys_and_rounds(tmp_path):
    found = cells(tmp_path, two_files())
    assert {c.keys["total"] for c in found} == {"write", "read"}
    assert {word_of(c.keys) for c in found} == {"per_rank", "one-shared"}
    assert all(len(c.seconds) == ROUNDS for c in found)
    assert len({c.keys["work"] for c in found}) == 1  # layouts are ways of the same work


def test_the_fastest_way_is_used_and_costs_nothing(tmp_path):
    decision = decide_way(cells(tmp_path, two_files()), ONCE)
    assert decision.keys == ["backend", "files"]
    assert decision.way == ("hdf5", "per_rank")
    assert decision.price == 1.0
    assert decision.prices["zarr", "per_rank"] == pytest.approx(2.0, rel=0.15)


def test_of_ways_that_are_as_good_one_is_used_with_its_price(tmp_path):
    decision = decide_way(cells(tmp_path, two_files(zarr=(0.2, 0.1))), ONCE)
    assert 1.0 < decision.price < 1.12


def test_the_purpose_decides(tmp_path):
    found = cells(tmp_path, two_files(hdf5=(0.1, 0.4), zarr=(0.2, 0.1)))
    assert decide_way(found, {"write": 1.0}).way[0] == "hdf5"
    reading = decide_way(found, {"read": 1.0})
    assert reading.way[0] == "zarr"
    writing = decide_way(found, {"write": 1.0})
    assert writing.prices[writing.way_of(reading.used)] == pytest.approx(2.0, rel=0.15)
    assert decide_way(found, {"write": 10.0, "read": 1.0}).way[0] == "hdf5"


def test_purposes_add_totals_round_by_round(tmp_path):
    found = cells(tmp_path, two_files())
    write, read = (next(c for c in found if c.keys["total"] == t) for t in ("write", "read"))
    both = next(c for c in summed(found, {"write": 2.0, "read": 1.0}) if c.case == write.case)
    assert both.seconds == pytest.approx(
        {r: 2 * s + read.seconds[r] for r, s in write.seconds.items()}
    )


def test_comparisons_that_have_the_same_ways_are_averaged(tmp_path):
    sizes = [
        (a_case(backend, shape_per_rank=[n]), times)
        for n, hdf5, zarr in ((8, 0.1, 0.2), (64, 0.8, 0.4))
        for backend, times in (("hdf5", (hdf5, hdf5)), ("zarr", (zarr, zarr)))
    ]
    decision = decide_way(cells(tmp_path, sizes), ONCE)
    assert [len(some) for some in decision.cells.values()] == [2, 2]
    assert decision.price < 1.1  # half as fast in one, twice as fast in the other


def test_raw_transfers_are_not_used(tmp_path):
    cases = [*two_files(), (a_case("posix", files="per_rank"), (0.01, 0.01))]
    assert decide_way(cells(tmp_path, cases), ONCE).way[0] == "hdf5"


def test_cases_that_failed_are_not_used(tmp_path):
    cases = two_files()
    cases[0][0][1].invalid = "read something else"
    assert decide_way(cells(tmp_path, cases), ONCE).way != ("hdf5", "per_rank")


def test_a_single_way_decides_nothing(tmp_path):
    assert decide_way(cells(tmp_path, [(a_case("hdf5"), (0.1, 0.1))]), ONCE) is None


def test_names_are_of_what_sets_a_way_apart(tmp_path):
    found = {c.case: c.keys for c in cells(tmp_path, two_files()) if c.keys["total"] == "write"}
    assert set(labels(found).values()) == {
        "HDF5, one file per rank", "Zarr, one file per rank",
        "HDF5, one shared file", "Zarr, one shared file",
    }  # fmt: skip
    alike = {case: keys for case, keys in found.items() if keys["files"] == "one"}
    assert set(labels(alike).values()) == {"HDF5", "Zarr"}


def test_a_switch_is_on_or_off_in_a_name():
    keys = {value: {"backend": "hdf5", "hdf5.swmr": value} for value in ("True", "False")}
    assert labels(keys) == {"True": "HDF5, swmr on", "False": "HDF5, swmr off"}


def test_a_codec_is_named_with_its_settings_and_then_its_shuffle():
    codecs = ("gzip 4 byte", "blosc 5 bit zstd", "zstd 3", "none")
    keys = {value: {"backend": "hdf5", "codec": value} for value in codecs}
    assert labels(keys) == {
        "gzip 4 byte": "HDF5, gzip 4 with byte shuffle",
        "blosc 5 bit zstd": "HDF5, blosc 5 zstd with bit shuffle",
        "zstd 3": "HDF5, zstd 3",
        "none": "HDF5, no compression",
    }


def test_one_engine_compares_by_any_key(tmp_path):
    found = cells(tmp_path, two_files())
    formats, files = compare(
        [
            (found, Question("backend", ["total"], ["files"], "hdf5")),
            (found, Question("files", ["total", "backend"], [], "per_rank")),
        ]
    )
    assert {(c.value, c.verdict.word) for c in formats} == {("zarr", "slower")}
    assert all(len(c.cells) == 2 for c in formats)
    assert {(c.value, c.verdict.word) for c in files} == {("one", "slower")}
    assert len(files) == 4  # two formats, two totals
    turned = formats[0].turned
    assert (turned.value, turned.base, turned.verdict.word) == ("hdf5", "zarr", "faster")


def test_each_part_of_the_work_has_a_price_and_the_worst_comparison_is_named(tmp_path):
    sizes = [
        (a_case(backend, shape_per_rank=[n]), times)
        for n, hdf5, zarr in ((8, 0.1, 0.2), (64, 0.8, 0.6))
        for backend, times in (("hdf5", (hdf5, hdf5)), ("zarr", (zarr, zarr)))
    ]
    decided = decide_work(cells(tmp_path, sizes))
    assert decided.decision.used == {"backend": "hdf5"}
    assert set(decided.prices) == {"write to disk", "read, page cache"}
    assert decided.worst.price == pytest.approx(0.8 / 0.6, rel=0.15)


def test_a_purpose_that_the_way_was_not_measured_for_has_no_price(tmp_path):
    cold = [
        (a_case(backend, files="per_rank", cache="dropped"), (t, t))
        for backend, t in (("hdf5", 0.2), ("zarr", 0.1))
    ]
    found = cells(tmp_path, [*two_files(apart=0.5), *cold])
    decided = decide_work(found)
    assert word_of(decided.decision.used) == "one-shared"
    assert "read from disk" in decided.each
    assert "read from disk" not in decided.prices


def test_times_that_the_clock_does_not_resolve_are_not_used(tmp_path):
    found = cells(tmp_path, two_files())
    assert usable(found, 0.0) == found
    assert usable(found, 1e3) == []
    fast = min(found, key=lambda cell: cell.median)
    assert fast not in usable(found, 1.01 * fast.median)
