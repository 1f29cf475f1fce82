"""What a summary says of ranks, of operations, of doubtful differences and of gaps."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from scipy.stats import bootstrap

from drawn_runs import BYTES, PHASES, USUAL, a_case, a_run
from pffbench.results.exports import write_summary
from pffbench.results.samples import read_samples
from pffbench.results.statistics import doubts_about, interval_of_median, spread
from pffbench.results.summary import summarise
from pffbench.results.tables import details


@pytest.mark.parametrize("n", [2, 5, 6, 15, 200])
def test_the_interval_is_that_of_scipy(n):
    values = np.random.default_rng(n).lognormal(size=n)
    expected = bootstrap(
        (np.sort(values),), np.median, n_resamples=2000, method="percentile",
        vectorized=True, rng=np.random.default_rng(0),
    ).confidence_interval  # fmt: skip
    assert interval_of_median(values) == pytest.approx((expected.low, expected.high), rel=1e-12)


def test_the_slowest_rank_and_host_are_told(tmp_path):
    run = a_run(tmp_path, USUAL, repetitions=4)
    lines = (run / "samples.csv").read_text().splitlines()
    changed = [
        line.replace(",0,a,false,", ",1,b,false,") if ",write," in line and i % 3 else line
        for i, line in enumerate(lines)
    ]
    (run / "samples.csv").write_text("\n".join(changed) + "\n")
    rows = [
        row for row in read_samples(run / "samples.csv")
        if row.case == USUAL[0][0] and row.phase == "write" and not row.warmup
    ]  # fmt: skip
    found = summarise(run).cases[0].phases["write"].ranks
    share = sum(row.slowest_rank == found.slowest_rank for row in rows) / len(rows)
    assert share == found.slowest_share == found.host_share >= 0.5
    assert found.slowest_host == ("a", "b")[found.slowest_rank]
    assert found.last == 2 * found.first  # the helper's fastest rank takes half as long
    assert found.imbalance == 1  # and its middle one as long as the slowest


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


def test_rates_of_ranks_that_took_turns_are_said_to_be_upper_bounds(tmp_path):
    """Four ranks on two cores: 2 s each, and yet 5 s until all are done."""
    run = a_run(tmp_path, USUAL, repetitions=4)
    assert "upper bounds" not in "\n".join(details(summarise(run)))
    lines = (run / "samples.csv").read_text().splitlines()
    columns = lines[0].split(",")
    own, synced = columns.index("own_max"), columns.index("synced_max")
    rows = [line.split(",") for line in lines[1:]]
    for row in rows:
        if row[columns.index("phase")] == "read":
            row[synced] = str(2.5 * float(row[own]))
    (run / "samples.csv").write_text("\n".join([lines[0], *map(",".join, rows)]) + "\n")
    summary = summarise(run)
    for case in summary.cases:
        told = [w.message for w in case.phases["read"].warnings if w.code == "ranks_apart"]
        assert "2.5 times as long passed" in told[0]
        assert not [w for w in case.phases["read_total"].warnings if w.code == "ranks_apart"]
        assert not [w for w in case.phases["write"].warnings if w.code == "ranks_apart"]
    text = "\n".join(details(summary))
    assert f"upper bounds in {len(summary.cases)} of {2 * len(summary.cases)} transfers" in text


def test_a_difference_that_is_not_shown_is_doubted():
    (found,) = doubts_about(spread([0.9, 1.2, 1.3, 1.2, 1.25]))
    assert found.code == "too_few_for_difference"
    assert "1.20 times" in found.message
    assert doubts_about(spread([1.2, 1.3, 1.25, 1.2])) == []  # shown
    assert doubts_about(spread([0.98, 1.01, 1.02, 0.99])) == []  # too small to matter
    assert doubts_about(None) == []


def test_reads_without_a_proved_cache_state_are_warned_of(tmp_path):
    run = a_run(tmp_path, USUAL[:1])
    text = (run / "samples.csv").read_text()
    (run / "samples.csv").write_text(text.replace(",warm,1.0,", ",unproved,0.3,"))
    phases = summarise(run).cases[0].phases
    warned = {p for p, s in phases.items() if any(w.code == "cache_unproved" for w in s.warnings)}
    assert warned == {"open", "open_array", "read", "close_read", "read_total"}


def test_a_torn_table_and_a_repetition_cut_short_are_told(tmp_path):
    run = a_run(tmp_path, USUAL)
    assert summarise(run).gaps == ()
    text = (run / "samples.csv").read_text()
    (run / "samples.csv").write_text(text[: text.rindex(",write,") + 3])
    told = " ".join(summarise(run).gaps)
    assert "ends in the midst of a line" in told
    assert "1 repetition was cut short" in told


def test_the_closing_lines_name_the_rank_that_lags_and_are_silent_where_none_does(tmp_path):
    told = " ".join(details(summarise(a_run(tmp_path / "alike", USUAL))))
    assert "furthest apart" not in told
    run = a_run(tmp_path / "lags", USUAL)
    rows = list(csv.DictReader((run / "samples.csv").open(newline="")))
    for row in rows:
        if row["phase"] == "read" and row["case"] == USUAL[2][0]:
            row["own_median"] = repr(float(row["own_max"]) / 2.5)
    with (run / "samples.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    told = " ".join(details(summarise(run)))
    assert f"furthest apart in read of {USUAL[2][0]}: the slowest takes 2.5 times" in told
    assert "rank 0 (100% of the repetitions), or one on a (100%)" in told


def test_every_column_of_the_summary_is_filled(tmp_path):
    run = a_run(tmp_path, (*USUAL, a_case("netcdf4")))
    write_summary(summarise(run), run)
    with (run / "summary.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["case"] == USUAL[1][0]]
    assert [row["phase"] for row in rows] == [*PHASES, "write_total", "read_total"]
    write = next(row for row in rows if row["phase"] == "write")
    assert {name for name, value in write.items() if value == ""} <= {"warnings", "warning_codes"}
    assert float(write["first_done_mib_s"]) == pytest.approx(2 * float(write["rate_mib_s"]))
    assert write["slowest_host"] == "a"
