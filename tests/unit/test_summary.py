"""What a summary says of ranks, of operations, of raw transfers, of unproved caches and of gaps."""

from __future__ import annotations

import csv

import pytest
from msgspec.structs import replace

from drawn_runs import (
    BYTES,
    PHASES,
    USUAL,
    a_case,
    a_repetition,
    a_run,
    edit,
    timed_run,
    with_phase,
)
from pffbench.record.repetitions import FILE, ReadState
from pffbench.record.run_json import FloorEntry
from pffbench.results.columns import columns_of, details
from pffbench.results.export import SAMPLES, write_summary
from pffbench.results.summary import summarise

MIB = 2**20
NOISE = [0.97, 1.03, 1.0, 0.99, 1.02, 1.01, 0.98]


def a_timed(directory, **times):
    """Write a run whose cases take these times to write and to read, one case for each backend."""
    cases = {backend: a_case(backend) for backend in times}
    seconds = {cases[backend][0]: (some, some) for backend, some in times.items()}
    floor = FloorEntry(1e-7, 1e-7, 1e-9)
    return summarise(timed_run(directory, seconds, cases.values(), floor=floor))


def test_the_slowest_rank_and_host_are_named(tmp_path):
    run = a_run(tmp_path, USUAL, repetitions=4)
    edit(run, lambda one: with_phase(one, "write", slowest_rank=int(one.round % 3 > 0)))
    found = summarise(run).cases[0].phases["write"].ranks
    assert (found.slowest_rank, found.slowest_host) == (1, "b")
    assert found.slowest_share == found.host_share == 0.75
    assert found.last == 2 * found.first  # the fastest rank needs half as long
    assert found.imbalance == 1  # and the middle one as long as the slowest


def test_first_done_is_the_rate_of_the_fastest_rank(tmp_path):
    phases = summarise(a_run(tmp_path, USUAL)).cases[0].phases
    assert phases["write"].first_done == pytest.approx(BYTES / phases["write"].ranks.first)
    assert phases["write"].first_done == pytest.approx(2 * phases["write"].rate)
    assert phases["create"].first_done is None
    assert phases["write_total"].ranks is None


def test_operations_per_second(tmp_path):
    phases = summarise(a_run(tmp_path, USUAL)).cases[0].phases
    define = phases["define"]
    assert define.operations_rate == pytest.approx(1 / define.seconds.median)
    assert phases["read_total"].operations_rate is None


def test_rates_and_times_per_array_are_medians(tmp_path):
    (case,) = a_timed(tmp_path, hdf5=[1.0, 2.0, 4.0]).cases
    assert case.phases["write"].rate == BYTES / 2
    assert case.phases["write"].per_array == 0.5
    assert case.phases["write_total"].seconds.median == pytest.approx(2.0)
    assert case.phases["create"].rate is None


def test_a_roof_is_the_part_of_the_speed_of_raw_bytes(tmp_path):
    """Memory-mapped against the order of the file, a slice was read at 1824 % of its speed."""
    times = {"hdf5": [v / 18.24 for v in NOISE], "zarr": [v / 0.97 for v in NOISE], "mpiio": NOISE}
    summary = a_timed(tmp_path, **times)
    cases = {case.backend: case for case in summary.cases}
    assert cases["zarr"].phases["write"].roofline == pytest.approx(0.97)
    assert cases["mpiio"].phases["write"].roofline is None
    roof = next(c for c in columns_of(summary.cases) if c.heading == "roof")
    assert roof.cell(cases["hdf5"]).text == ">100%"
    assert roof.cell(cases["zarr"]).text == "97%"


def test_reads_without_a_proved_cache_state_are_warned_of(tmp_path):
    run = a_run(tmp_path, USUAL[:1])
    edit(run, lambda one: replace(one, read=ReadState("unproved", 0.3, BYTES)))
    phases = summarise(run).cases[0].phases
    warned = {p for p, s in phases.items() if any(w.code == "cache_unproved" for w in s.warnings)}
    assert warned == {"open", "open_array", "read", "close_read", "read_total"}


def test_a_line_cut_short_is_reported(tmp_path):
    run = a_run(tmp_path, USUAL)
    assert summarise(run).gaps == ()
    whole = (run / FILE).read_bytes()
    (run / FILE).write_bytes(whole[:-20])
    summary = summarise(run)
    assert "ends in the middle of a line" in summary.gaps[0]
    assert sum(case.repetitions for case in summary.cases) == 4 * len(USUAL) - 1


def test_the_details_name_the_rank_that_lags_and_are_silent_if_none_does(tmp_path):
    assert "imbalance" not in " ".join(details(summarise(a_run(tmp_path / "alike", USUAL))))
    run = a_run(tmp_path / "lags", USUAL)

    def lag(one):
        if one.case != USUAL[2][0]:
            return one
        return with_phase(one, "read", own_median=one.by_phase["read"].own_max / 2.5)

    text = " ".join(details(summarise(edit(run, lag))))
    assert "largest rank imbalance: read of Zarr" in text
    assert "slowest/median 2.5; usually rank 0 (100% of repetitions), host a (100%)" in text


@pytest.mark.parametrize(
    ("faults", "new", "part"),
    [(12, 24 * MIB, 3.0), (6144, 24 * MIB, 3.0), (6144, None, 3.0), (3, 2 * MIB, None)],
    ids=["huge pages", "small pages", "other phases", "little"],
)
def test_a_fresh_array_trips_the_caution_whatever_the_size_of_pages(tmp_path, faults, new, part):
    """A page fault brings 4 KiB or 2 MiB. What counts are the bytes."""
    name, entry = USUAL[0]
    run = a_run(tmp_path, [(name, entry)], floor=FloorEntry(0, 0, memory_new_bytes_per_second=10e9))

    def fault(one):
        state = ReadState("warm", 1.0, BYTES, new_memory=new)
        return with_phase(replace(one, read=state), "read", minor_faults=faults, seconds=0.01)

    found = summarise(edit(run, fault)).cases[0].phases["read"]
    cautions = [w.message for w in found.warnings if w.code == "page_faults"]
    if part is None:
        assert not cautions
        return
    assert found.faulted == pytest.approx(part)
    assert found.new_memory_seconds == pytest.approx(24 * MIB / 10e9)
    assert "300% of the bytes" in cautions[0]
    assert "about 2.52 of 10 ms" in cautions[0]


def test_every_column_of_the_summary_is_filled(tmp_path):
    run = a_run(tmp_path, (*USUAL, a_case("netcdf4")))
    write_summary(summarise(run), run)
    with (run / "summary.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["case"] == USUAL[1][0]]
    assert [row["phase"] for row in rows] == [*PHASES, "write_total", "read_total"]
    write = next(row for row in rows if row["phase"] == "write")
    # The case is valid and nothing is to be warned of. Page faults were not recorded.
    assert {name for name, value in write.items() if value == ""} <= {
        "warnings", "warning_codes", "invalid", "faulted", "new_memory_s",
    }  # fmt: skip
    assert float(write["first_done_mib_s"]) == pytest.approx(2 * float(write["rate_mib_s"]))
    assert write["slowest_host"] == "a"


def test_the_samples_are_tidy_a_row_for_each_phase_and_total(tmp_path):
    run = a_run(tmp_path, USUAL[:1], repetitions=2)
    write_summary(summarise(run), run)
    with (run / "samples.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(SAMPLES) <= 15
    assert [row["phase"] for row in rows[: len(PHASES) + 2]] == [
        *PHASES, "write_total", "read_total",
    ]  # fmt: skip
    assert {row["warmup"] for row in rows if row["round"] == "0"} == {"true"}
    own = next(row for row in rows if row["phase"] == "write" and row["round"] == "2")
    expected = a_repetition(*USUAL[0], 2, {"write": float(own["seconds"])}).by_phase["write"]
    assert float(own["own_min"]) == expected.own_min
    assert int(own["bytes"]) == BYTES
