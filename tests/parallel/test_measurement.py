"""The clock, the statistics of a phase and the order of cases, seen through the null backend.

Asleep for a known time on a known rank, the null backend tells what each column must hold.
"""

import csv
import json
import re
from collections import Counter, defaultdict
from itertools import pairwise

import h5py
import numpy as np
import pytest

from launch import PROGRAMS, run_experiment
from pffbench.phases import TOTALS
from pffbench.results.summary import summarise
from sharing import word_of

pytestmark = pytest.mark.parallel

RANKS = 3
SLOW = 1
#: Seconds that each verb takes on the slow rank; all differ, so that none can pass for another.
DELAYS = {"create": 0.10, "define": 0.12, "write": 1.0, "flush": 0.14, "close": 0.16,
          "open": 0.18, "arrays": 0.20, "read": 0.24}  # fmt: skip
PHASES = {"create": "create", "define": "define", "write": "write", "flush": "flush",
          "close": "close", "open": "open", "open_array": "arrays", "read": "read",
          "close_read": "close"}  # fmt: skip
NULL = {"workload": "hyperslab", "backend": "null", "shape_per_rank": [4, 4]}


@pytest.fixture(scope="module")
def delayed(tmp_path_factory):
    """One slow case in a group of four, four times after a warm-up; and a group of one."""
    ways = {"transfer": ["independent", "collective"], "settings": ["matched", "defaults"]}
    slow = NULL | {"files": "one", "arrays": "per_rank", "durability": "flush",
                   "null": {"delays": DELAYS, "delay_rank": SLOW}}  # fmt: skip
    return run_experiment(
        tmp_path_factory.mktemp("delayed"), RANKS, repetitions=3, warmup=1,
        cases=[NULL | ways, slow], timeout=180,
    )  # fmt: skip


@pytest.fixture(scope="module")
def slow(delayed):
    assert delayed.status == 0, delayed.said
    return delayed.phases(delayed.case(files="one", arrays="per_rank"))


def test_a_delay_shows_in_its_own_phase(slow):
    for phase, verb in PHASES.items():
        for row in slow[phase]:
            assert float(row["own_max"]) >= DELAYS[verb], phase
    # A phase without a delay has none of another phase, in one of four repetitions at least.
    assert min(float(row["own_max"]) for row in slow["remove"]) < DELAYS["write"]


def test_the_slow_rank_is_named_with_its_host(slow, delayed):
    for phase in PHASES:
        named = [(int(row["slowest_rank"]), row["slowest_host"]) for row in slow[phase]]
        # On a busy machine another rank may lose its processor for longer, but not always.
        assert (SLOW, delayed.record["topology"]["hosts"][SLOW]) in named, phase
    assert {int(row["slowest_rank"]) for row in slow["write"]} == {SLOW}


def test_the_other_ranks_are_not_charged_for_the_slow_one(slow):
    fastest = min(float(row["own_min"]) for row in slow["write"])
    middle = min(float(row["own_median"]) for row in slow["write"])
    assert fastest <= middle < DELAYS["write"] / 2


def test_the_phase_lasts_as_long_for_all_ranks(slow, delayed):
    with h5py.File(delayed.out / "ranks.h5") as file:
        group = file[delayed.case(files="one", arrays="per_rank")]
        write = list(group.attrs["phases"]).index("write")
        synced, own = group["synced"][:, write], group["own"][:, write]
    assert synced.shape == (4, RANKS)
    assert np.all(synced >= own)
    assert np.all(np.median(synced, axis=0) > DELAYS["write"] / 2)
    for row, by_rank, own_by_rank in zip(slow["write"], synced, own, strict=True):
        assert float(row["synced_max"]) == by_rank.max()
        assert float(row["own_max"]) == own_by_rank.max()
        assert float(row["own_min"]) == own_by_rank.min()
        assert float(row["own_median"]) == np.median(own_by_rank)


def test_phases_come_in_order(slow):
    assert list(slow) == [*PHASES, "remove"]


def test_nothing_is_counted_unasked(delayed):
    assert not delayed.counts


def test_the_warm_up_is_kept_and_flagged(slow):
    for rows in slow.values():
        assert [(int(row["repetition"]), row["warmup"]) for row in rows] == [
            (0, "true"), (1, "false"), (2, "false"), (3, "false"),
        ]  # fmt: skip


def test_the_summary_leaves_the_warm_up_out(slow, delayed):
    with (delayed.out / "summary.csv").open(newline="") as file:
        rows = {(r["case"], r["phase"]): r for r in csv.DictReader(file)}
    row = rows[delayed.case(files="one", arrays="per_rank"), "write"]
    counted = [float(r["seconds"]) for r in slow["write"] if r["warmup"] == "false"]
    assert int(row["repetitions"]) == 3
    assert float(row["median_s"]) == pytest.approx(np.median(counted), rel=1e-12)
    assert float(row["max_s"]) == max(counted)
    total = [
        sum(float(slow[phase][i]["seconds"]) for phase in ("create", "define", "write", "flush",
                                                           "close"))
        for i in (1, 2, 3)
    ]  # fmt: skip
    row = rows[delayed.case(files="one", arrays="per_rank"), "write_total"]
    assert float(row["median_s"]) == pytest.approx(np.median(total), rel=1e-12)


def test_short_phases_are_marked_as_below_resolution(delayed):
    floor = delayed.record["floor"]
    assert floor["own"] > 0
    assert floor["synced"] > floor["own"]
    assert floor["memory_copy_bytes_per_second"] == 0  # caches hold what is moved
    assert floor["tick"] > 0
    assert floor["measured"] == 5  # at the start, and after each round
    low, high = floor["synced_range"]
    assert low <= floor["synced"] <= high
    summary = summarise(delayed.out)
    for case in summary.cases:
        for phase in case.phases.values():
            below = phase.seconds.median < summary.run.resolution
            assert phase.warned("below_resolution") == below


def test_each_case_of_a_group_comes_in_each_place_and_after_each_other_one_equally_often(delayed):
    rounds = defaultdict(dict)
    for row in delayed.rows:
        if word_of(row) == "one-shared":
            rounds[int(row["repetition"])][row["case"]] = int(row["position"]), row["started"]
    orders = [sorted(order, key=order.get) for _, order in sorted(rounds.items())]
    assert len(orders) == len(orders[0]) == 4
    for place in range(4):
        assert {order[place] for order in orders} == set(orders[0])
    followed = Counter(pair for order in orders for pair in pairwise(order))
    assert set(followed.values()) == {1}
    assert len(followed) == 4 * 3


def test_positions_are_the_order_in_time(delayed):
    for number in range(4):
        rows = {r["case"]: r for r in delayed.rows if int(r["repetition"]) == number}
        by_position = sorted(rows.values(), key=lambda r: int(r["position"]))
        assert [int(r["position"]) for r in by_position] == list(range(5))
        assert [r["started"] for r in by_position] == sorted(r["started"] for r in by_position)


def test_nothing_was_kept_so_nothing_claims_a_cache_state(delayed):
    assert {row["cache"] for row in delayed.rows if row["phase"] == "read"} == {"unproved"}
    assert {row["resident"] for row in delayed.rows} == {""}


def test_run_json_tells_what_ran_and_where(delayed):
    record = delayed.record
    assert record["status"] == "finished"
    assert record["ranks"] == RANKS == len(record["topology"]["hosts"])
    assert record["finished"] >= record["started"]
    assert record["experiment"]["repetitions"] == 3
    assert json.loads((delayed.out / "run.json").read_text())["schema_version"] == 2
    assert any("pffbench" in word for word in record["command"])
    for entry in record["cases"].values():
        assert entry["verified"] is False  # null keeps nothing


def test_a_time_budget_ends_the_run_early_and_says_so(tmp_path):
    done = run_experiment(
        tmp_path, None, repetitions=50, warmup=0, time_budget="2 s",
        cases=[NULL | {"null": {"delays": {"write": 0.2}}}],
    )  # fmt: skip
    assert done.status == 0, done.said
    rounds = {int(row["repetition"]) for row in done.rows}
    assert 1 <= len(rounds) < 11
    assert any("time budget of 2 s" in why for why in done.record["stops"])
    assert {entry["stopped_after"] for entry in done.record["cases"].values()} == {len(rounds)}
    assert "time budget of 2 s" in (done.out / "summary.md").read_text()


def test_comparisons_that_the_time_budget_does_not_hold_are_named_in_the_verdict(tmp_path):
    done = run_experiment(
        tmp_path, None, repetitions=2, time_budget="0.01 s",
        cases=[NULL, NULL | {"files": "one", "arrays": "per_rank"}],
    )  # fmt: skip
    assert done.status == 0, done.said
    (case,) = done.record["cases"]
    assert {row["case"] for row in done.rows} == {case}
    (out,) = done.record["left_out"]
    assert out["reason"].startswith("the time budget of 0.01 s does not hold")
    assert out["limit"] == "time"
    said = r"1 of 2 cases left out, .+: the time budget of 0\.01 s does not hold"
    assert re.search(said, done.stdout)
    assert done.record["time_needed"] > 0
    assert "\nNot measured: " in done.stdout
    assert "VALID: nothing verified, 1 of 2 cases fitted in the time" in done.stdout


def test_a_total_is_the_largest_sum_of_a_rank(tmp_path):
    """A sum of the slowest ranks of all phases would be longer."""
    case = {"workload": "hyperslab", "shape_per_rank": [64, 256], "durability": "sync",
            "files": "per_rank", "backend": ["hdf5", "posix"]}  # fmt: skip
    done = run_experiment(tmp_path, 2, repetitions=3, cases=[case])
    assert done.status == 0, done.said
    if done.record["clock"] != "own":
        pytest.skip("ranks share a core here, and totals are sums of phases")
    longer = 0
    with h5py.File(done.out / "ranks.h5") as file:
        for one in done.repetitions:
            group = file[one["case"]]
            names = list(group.attrs["phases"])
            own = group["own"][list(group["repetition"]).index(one["round"])]
            for total, seconds in one["totals"].items():
                parts = [names.index(part) for part in TOTALS[total] if part in names]
                assert seconds == pytest.approx(own[parts].sum(axis=0).max(), rel=1e-12)
                longer += own[parts].max(axis=1).sum() > seconds * (1 + 1e-9)
    assert longer


def test_memory_begins_at_another_place_of_a_page_in_each_round(tmp_path):
    """The kernel copies to some places faster; NumPy's memory begins at any multiple of 16."""
    case = {"workload": "hyperslab", "shape_per_rank": [16, 256], "backend": "posix"}
    done = run_experiment(
        tmp_path, 1, repetitions=8, cases=[case], program=(PROGRAMS / "places.py",),
        env={"PLACES": str(tmp_path / "places")},
    )  # fmt: skip
    assert done.status == 0, done.said
    lines = [line.split() for line in (tmp_path / "places").read_text().splitlines()]
    for direction in ("write", "read"):
        begins = [int(begin) for way, begin in lines if way == direction]
        assert len(set(begins)) >= 6, begins
        assert all(begin % 16 == 0 for begin in begins), begins
