"""Statistics against values known by hand and against SciPy; summaries; tables and records."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pffbench.record.run_json import RunRecord
from pffbench.record.samples import Sample, SamplesLog, drop_unfinished, read_samples, whole
from pffbench.summary.columns import columns_of
from pffbench.summary.conclusions import sentences
from pffbench.summary.statistics import (
    FEWEST_FOR_INTERVAL,
    interval_of_median,
    modified_z_scores,
    spread,
    warnings_for,
)
from pffbench.summary.summary import summarise

seconds = st.lists(st.floats(1e-6, 1e3), min_size=2, max_size=30)


def test_spread_of_known_values():
    found = spread([3.0, 1.0, 2.0, 10.0, 4.0])
    assert (found.n, found.minimum, found.median, found.maximum) == (5, 1, 3, 10)
    assert found.mad == 1  # deviations 0, 2, 1, 7, 1
    assert found.cv == pytest.approx(math.sqrt(12.5) / 4)


@given(seconds)
def test_spread_agrees_with_scipy(values):
    found = spread(values)
    assert found.median == np.median(values)
    assert found.mad == pytest.approx(stats.median_abs_deviation(values))
    assert found.cv == pytest.approx(stats.variation(values, ddof=1))


@given(st.lists(st.floats(1e-6, 1e3), min_size=FEWEST_FOR_INTERVAL, max_size=40))
def test_the_interval_lies_within_the_values_and_holds_their_median(values):
    low, high = interval_of_median(np.array(values))
    assert min(values) <= low <= np.median(values) <= high <= max(values)
    assert (low, high) == interval_of_median(np.array(values[::-1]))
    wider = interval_of_median(np.array(values), 2.0)
    assert wider[0] <= low
    assert high <= wider[1]


@pytest.mark.parametrize("value", [0.1, 0.2, 0.3, 1 / 3])
@pytest.mark.parametrize("n", range(FEWEST_FOR_INTERVAL, 30))
def test_equal_values_have_an_interval_of_no_width(value, n):
    """Not even by rounding is a bound on the other side of the median: figures refuse that."""
    found = spread([value] * n)
    assert found.low == found.high == value
    assert found.mad == 0


@pytest.mark.parametrize("n", [6, 11, 25, 100, 500])
def test_the_interval_is_between_the_order_statistics_of_the_sign_test(n):
    """The outer ones cover the median with 95 % or more, the inner ones with less."""
    values = np.sort(np.random.default_rng(n).lognormal(size=n))
    outer = max(d for d in range(1, n // 2 + 1) if stats.binom.cdf(d - 1, n, 0.5) <= 0.025)
    low, high = interval_of_median(values)
    assert values[outer - 1] <= low <= values[outer]
    assert values[n - outer - 1] <= high <= values[n - outer]


@pytest.mark.parametrize("n", [501, 1500, 100_000])
def test_the_interval_of_many_values_is_that_of_the_sign_test_within_one_place(n):
    values = np.arange(float(n))
    outer = int(stats.binom.ppf(0.025, n, 0.5))  # the place after the outer one
    low, high = interval_of_median(values)
    assert abs(low - (outer - 1)) <= 1
    assert low + high == n - 1


def test_the_interval_holds_the_median_as_often_as_it_promises():
    """Of 200 samples of 15, the 95 % intervals miss the true median about 10 times."""
    draw = np.random.default_rng(1)
    held = 0
    for _ in range(200):
        low, high = interval_of_median(draw.lognormal(size=15))
        held += low <= 1 <= high
    assert 175 <= held <= 200


def test_the_interval_narrows_with_the_number_of_values():
    draw = np.random.default_rng(2)
    few, many = draw.normal(10, 1, 8), draw.normal(10, 1, 400)
    assert np.ptp(interval_of_median(many)) < np.ptp(interval_of_median(few)) / 3


@pytest.mark.parametrize("n", range(1, FEWEST_FOR_INTERVAL))
def test_few_values_have_no_interval(n):
    found = spread([2.0, 1.0, 3.0, 5.0][:n])
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert math.isnan(found.cv) == (n == 1)


def test_the_interval_of_five_values_is_their_range():
    found = spread([3.0, 1.0, 2.0, 10.0, 4.0])
    assert (found.low, found.high) == (1, 10)


def test_modified_z_scores():
    assert modified_z_scores(np.array([1.0, 2, 3, 4, 100])).tolist() == pytest.approx(
        [1.349, 0.6745, 0, 0.6745, 65.4265]
    )
    assert not modified_z_scores(np.array([5.0, 5, 5, 9])).any()


def codes(values, warmup=(), resolution=1e-6):
    return [caveat.code for caveat in warnings_for(values, warmup, resolution)]


def test_warnings():
    assert codes([1.0, 1.01, 0.99, 1.0, 1.0]) == []
    assert codes([1.0, 1.3, 0.7, 1.2, 0.8]) == ["large_spread"]
    assert codes([1.0, 1.0]) == codes([1.0, 1.3, 0.7, 1.0]) == ["few_repetitions"]
    assert codes([1.0, 1.01, 0.99, 1.02, 3.0]) == ["large_spread", "outliers"]
    assert codes([1.0] * 5, warmup=[2.0]) == ["slow_first"]
    assert codes([1.0] * 5, warmup=[1.2]) == []
    assert codes([1.0, 5.0], resolution=100) == ["below_resolution"]


# Summaries, from results directories as a run leaves them


def results(place, times, floor=1e-7, durability="close", roofline=()):
    """Write a results directory: for each backend its seconds to write and read in each block."""
    place.mkdir(exist_ok=True)
    record = RunRecord(
        run_id="x", name="x", question="", command=[], ranks=2, started="", experiment={},
        experiment_file="", left_out=[], scratch="", topology={"nodes": [0, 0]},
        floor={"own": floor, "synced": floor, "tick": 1e-9}, startup={}, provenance={}, valid=True,
        cases={
            f"{backend}.own": entry(backend, durability, backend in roofline) for backend in times
        },
    )  # fmt: skip
    record.save(place)
    log = SamplesLog(str(place / "samples.csv"))
    for backend, blocks in times.items():
        for number, value in enumerate(blocks):
            log.append(
                sample(backend, number, phase, value)
                for phase in ("create", "write", "open", "read", "remove")
            )
    return place


def entry(backend, durability, raw):
    parameters = {
        "workload": "hyperslab", "backend": backend, "durability": durability, "layout": "own",
        "settings": "matched",
    }  # fmt: skip
    return {"parameters": parameters, "options": {}, "group": "g", "raw": raw, "verified": True}


def sample(backend, number, phase, value, **more):
    told = {
        "case": f"{backend}.own", "repetition": number, "warmup": False, "position": 0,
        "phase": phase, "backend": backend, "workload": "hyperslab", "layout": "own",
        "transfer": "independent", "settings": "matched", "group": "g", "ranks": 2,
        "nodes": 1, "arrays": 4, "operations": 4,
        "bytes": 2**20 if phase in ("write", "read") else 0,
        "own_max": value, "own_median": value, "own_min": value, "synced_max": value,
        "slowest_rank": 0, "slowest_host": "h", "below_resolution": False, "cache": "warm",
        "resident": 1.0, "verified_bytes": 1,
        "peak_memory": 1, "disk_bytes": None, "disk_files": None, "valid": True,
        "started": "2026-01-01T00:00:00", "seconds": value,
    }  # fmt: skip
    return Sample(**(told | more))


NOISE = [0.97, 1.03, 1.0, 0.99, 1.02, 1.01, 0.98]


def sentences_of(place, **times):
    return sentences(summarise(results(place, times)))


def test_a_load_that_grows_in_all_alike_hides_no_large_difference(tmp_path):
    drift = np.geomspace(1, 1.3, 12).tolist()
    noise = [*NOISE, *NOISE][:12]
    slower = [3 * v * n for v, n in zip(drift, noise, strict=True)]
    for line in sentences_of(tmp_path, hdf5=drift, zarr=slower):
        assert "HDF5 is fastest; Zarr takes 2.98 times [2." in line


def test_under_seven_repetitions_nothing_is_told_apart(tmp_path):
    for n in (2, 6):
        for line in sentences_of(
            tmp_path / str(n), hdf5=NOISE[:n], zarr=[9 * v for v in NOISE[:n]]
        ):
            told_ = "9.00 times (too few repetitions for an interval)"
            assert f"not decided between HDF5 and Zarr ({told_})" in line
    for line in sentences_of(tmp_path / "7", hdf5=NOISE, zarr=[9 * v for v in NOISE]):
        assert "HDF5 is fastest; Zarr takes 9.00 times" in line


def test_raw_bytes_are_no_competitor(tmp_path):
    times = {"hdf5": NOISE, "zarr": [2 * v for v in NOISE], "mpiio": [v / 9 for v in NOISE]}
    summary = summarise(results(tmp_path, times, roofline=["mpiio"]))
    assert all("mpiio" not in text for text in sentences(summary))
    phases = {case.sample.backend: case.phases for case in summary.cases}
    assert phases["hdf5"]["write"].roofline == pytest.approx(1 / 9)
    assert phases["zarr"]["write"].ratio.value == pytest.approx(2)
    assert phases["hdf5"]["write"].ratio.value == 1
    assert phases["mpiio"]["write"].ratio is None


def test_raw_bytes_that_are_no_limit_get_no_number(tmp_path):
    """Memory-mapped against the order of the file, a slice was read at 1824 % of its speed."""
    times = {"hdf5": [v / 18.24 for v in NOISE], "zarr": [v / 0.97 for v in NOISE], "mpiio": NOISE}
    summary = summarise(results(tmp_path, times, roofline=["mpiio"]))
    told = {}
    for cases in summary.groups.values():
        column = next(c for c in columns_of(cases) if c.heading == "roof")
        told |= {case.sample.backend: column.cell(case).text for case in cases}
    assert told["hdf5"] == ">100%"
    assert told["zarr"] == "97%"


def test_one_backend_alone_is_compared_with_nothing(tmp_path):
    assert sentences_of(tmp_path, hdf5=NOISE) == []


def test_rates_and_times_per_array_are_medians(tmp_path):
    (case,) = summarise(results(tmp_path, {"hdf5": [1.0, 2.0, 4.0]})).cases
    assert case.phases["write"].rate == 2**20 / 2
    assert case.phases["write"].per_array == 0.5
    assert case.phases["write_total"].seconds.median == 4.0  # create and write
    assert case.phases["create"].rate is None


# The log


def test_rows_come_back_as_they_were_written(tmp_path):
    path = tmp_path / "samples.csv"
    rows = [sample("a,\"b\"", 1, "read", 1 / 3, resident=None), sample("ü", 2, "close", 1e-9,
            disk_bytes=5, disk_files=1, valid=False)]  # fmt: skip
    log = SamplesLog(str(path))
    log.append(rows[:1])
    SamplesLog(str(path)).append(rows[1:])
    # What was not recorded is no number, which equals nothing.
    assert [repr(row) for row in read_samples(path)] == [repr(row) for row in rows]


@given(st.integers(1, 400))
def test_a_log_torn_anywhere_keeps_every_whole_repetition(cut):
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as place:
        path = results(Path(place), {"hdf5": [1.0, 2.0, 3.0]}) / "samples.csv"
        text = path.read_text()
        path.write_text(text[:-cut])
        before = whole(read_samples(path)).finished
        drop_unfinished(str(path))
        assert {(s.case, s.repetition) for s in read_samples(path)} == before
        assert text.startswith(path.read_text())
        assert {("hdf5.own", 0), ("hdf5.own", 1)} <= before | {("hdf5.own", 1)}


def test_another_table_is_refused(tmp_path):
    path = tmp_path / "samples.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="not a table of samples"):
        read_samples(path)


def test_a_broken_row_in_the_midst_is_refused_with_its_line(tmp_path):
    path = results(tmp_path, {"hdf5": [1.0]}) / "samples.csv"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:2], "nonsense\n", *lines[2:]]))
    with pytest.raises(ValueError, match="line 3"):
        read_samples(path)


def test_a_record_comes_back_as_it_was_saved(tmp_path):
    results(tmp_path, {"hdf5": [1.0]})
    first = RunRecord.load(tmp_path)
    first.save(tmp_path)
    assert RunRecord.load(tmp_path) == first
    assert not list(tmp_path.glob("*.new"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [("{", "not valid JSON"), ("[]", "names no schema_version"),
     ('{"schema_version": 99}', "of a newer pffbench")],
)  # fmt: skip
def test_a_record_that_cannot_be_read_is_refused(tmp_path, text, expected):
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(ValueError, match=expected):
        RunRecord.load(tmp_path)
