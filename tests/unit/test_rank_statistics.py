"""What a summary says of ranks, of operations, of unproved caches and of gaps."""

from __future__ import annotations

import csv

import msgspec
import pytest

from drawn_runs import BYTES, PHASES, USUAL, a_case, a_run, a_sample
from pffbench.record.samples import read_samples
from pffbench.summary.columns import details
from pffbench.summary.export import write_summary
from pffbench.summary.phases import phase_summary
from pffbench.summary.summary import summarise

MIB = 2**20


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


def test_the_details_name_the_rank_that_lags_and_are_silent_where_none_does(tmp_path):
    told = " ".join(details(summarise(a_run(tmp_path / "alike", USUAL))))
    assert "imbalance" not in told
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
    assert "largest rank imbalance: read of zarr shared independent, slowest/median 2.5" in told
    assert "usually rank 0 (100% of repetitions), host a (100%)" in told


@pytest.mark.parametrize(
    ("faults", "new", "part"),
    [(12, 24 * MIB, 1.0), (6144, 24 * MIB, 1.0), (6144, None, 1.0), (3, 2 * MIB, None)],
    ids=["huge pages", "small pages", "other phases", "little"],
)
def test_a_fresh_array_trips_the_caution_whatever_the_size_of_pages(faults, new, part):
    """A page fault brings 4 KiB or 2 MiB; what counts are the bytes."""
    rows = [
        msgspec.structs.replace(
            a_sample(*USUAL[0], number, "read", 0.010), bytes=24 * MIB, minor_faults=faults,
            new_memory=new,
        )
        for number in range(8)
    ]  # fmt: skip
    by_block = {row.repetition: row.seconds for row in rows if not row.warmup}
    found = phase_summary("read", {"read": by_block}, {"read": rows}, None, None, 0.0, 1.0, 10e9)
    cautions = [w.message for w in found.warnings if w.code == "page_faults"]
    if part is None:
        assert not cautions
        return
    assert found.faulted == pytest.approx(part)
    assert found.new_memory_seconds == pytest.approx(24 * MIB / 10e9)
    assert "100% of the bytes" in cautions[0]
    assert "about 2.52 of 10 ms" in cautions[0]


def test_every_column_of_the_summary_is_filled(tmp_path):
    run = a_run(tmp_path, (*USUAL, a_case("netcdf4")))
    write_summary(summarise(run), run)
    with (run / "summary.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["case"] == USUAL[1][0]]
    assert [row["phase"] for row in rows] == [*PHASES, "write_total", "read_total"]
    write = next(row for row in rows if row["phase"] == "write")
    # The case is valid and nothing is to be warned of; page faults were not recorded.
    assert {name for name, value in write.items() if value == ""} <= {
        "warnings", "warning_codes", "invalid", "faulted", "new_memory_s",
    }  # fmt: skip
    assert float(write["first_done_mib_s"]) == pytest.approx(2 * float(write["rate_mib_s"]))
    assert write["slowest_host"] == "a"
