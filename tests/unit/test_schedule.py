"""Which cases run in the next round, when a run ends, and what the time budget holds."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from drawn_times import by_round, drawn
from pffbench.backends.registry import backend_class
from pffbench.experiment.schema import PLAIN_REPETITIONS
from pffbench.record.run_json import CaseEntry, FailureEntry
from pffbench.run.order import by_importance
from pffbench.run.schedule import ENOUGH, MOST_READS, Schedule
from plans import plan_cases

ENTRY = {"workload": "hyperslab", "shape": [8, 8], "files": "one", "arrays": "per_rank"}
FORMATS = ("hdf5", "netcdf4", "zarr")


class Recorded:
    """What rank 0 has recorded of a run whose times are known beforehand.

    Parameters
    ----------
    plan : Plan
        What is run.
    medians : dict of str to float
        Seconds that cases take, by a part of their names; those that are not named take one second.
    read : float
        Seconds that reading takes in each case.
    """

    def __init__(self, plan, medians, cv=0.05, seed=1, read=0.01):
        self.plan = plan
        self.timings, self.resolution = self, 1e-6
        self.cases = {
            case.id: CaseEntry(
                {"workload": "hyperslab", **msgspec.to_builtins(case.parameters)},
                case.group,
                plan.costs[case.id],
                raw=backend_class(case.parameters.backend).capabilities.raw,
            )
            for case in plan.cases
        }
        generator = np.random.default_rng(seed)
        self._times = {}
        for case in plan.cases:
            median = next((s for part, s in medians.items() if part in case.id), 1.0)
            noise = drawn("normal", 1, plan.experiment.rounds, generator, cv)[0]
            self._times[case.id] = by_round(median * noise)
        self._read = dict.fromkeys((case.id for case in plan.cases), read)
        self.ran = {case.id: [] for case in plan.cases}
        self.stopped = []
        self.left_out = []
        self.time_needed = 0.0

    def seconds(self, last):
        warmup = self.plan.experiment.warmup
        return {
            name: {"write_total": {b: self._times[name][b] for b in rounds if warmup <= b <= last}}
            for name, rounds in self.ran.items()
        }

    def read_seconds(self, case):
        return self._read[case] if self.ran[case] else None

    def stop(self, cases, repetitions, why):
        self.stopped.append((tuple(cases), repetitions, why))

    def need_time(self, seconds):
        self.time_needed = max(self.time_needed, seconds)

    def leave_out(self, cases, why):
        self.left_out.append((tuple(cases), why))
        for case in cases:
            del self.cases[case]

    def counted(self, part):
        """Return how many repetitions count of the one case whose name has a part."""
        (name,) = [name for name in self.ran if part in name]
        return sum(number >= self.plan.experiment.warmup for number in self.ran[name])


def a_plan(*entries, roofline=False, **top):
    return plan_cases(*(ENTRY | entry for entry in entries), roofline=roofline, **top)


def run(plan, record, seconds=1.0, after=None, later=None):
    """Run all rounds as the runner does; return what ran in each.

    A case takes `seconds`, and `later` from the second round on, if given.
    """
    schedule = Schedule(plan, record)
    following, told, passed = schedule.first(), [], 0.0
    for number in range(plan.experiment.rounds):
        if not following.cases:
            break
        told.append(following)
        expected = {}
        cases = [plan.cases[place] for place in following.cases]
        if number == 0:
            cases = [case for part in by_importance(plan.cases) for case in part]
        for case in cases:
            if number == 0 and schedule.leaves_out(case, passed, expected):
                continue
            record.ran[case.id].append(number)
            takes = seconds if number == 0 or later is None else later
            expected[case.id] = takes
            passed += takes
        if after is not None:
            after(number, record)
        following = schedule.after(number, passed, expected)
    return told


def test_a_run_ends_when_the_way_to_use_is_cheap_enough():
    plan = a_plan({"backend": list(FORMATS)})
    record = Recorded(plan, {"hdf5": 1.0, "netcdf4": 2.0, "zarr": 3.0})
    rounds = run(plan, record)
    assert len(rounds) == plan.experiment.warmup + ENOUGH
    ((cases, repetitions, why),) = record.stopped
    assert set(cases) == set(record.cases)
    assert (repetitions, why) == (ENOUGH, "the way to use is decided")


@pytest.mark.parametrize(("price", "rounds"), [(0.001, 40), (0.5, ENOUGH)])
def test_a_run_ends_at_the_price_of_its_experiment(price, rounds):
    plan = a_plan({"backend": list(FORMATS)}, price=price)
    record = Recorded(plan, {"hdf5": 1.0, "netcdf4": 1.01, "zarr": 3.0}, cv=0.3)
    run(plan, record)
    assert {record.counted(name) for name in FORMATS} == {rounds}


def test_all_ways_run_equally_often():
    for seed in range(6):
        plan = a_plan({"backend": list(FORMATS)}, {"backend": ["hdf5", "zarr"], "shape": [16, 16]})
        record = Recorded(plan, {"netcdf4": 1.15, "zarr": 1.4}, cv=0.12, seed=seed)
        run(plan, record)
        assert len({len(rounds) for rounds in record.ran.values()}) == 1


def test_what_is_compared_with_nothing_has_ten_repetitions():
    plan = a_plan({"backend": "hdf5"}, roofline=True)
    record = Recorded(plan, {})
    run(plan, record)
    assert record.counted("hdf5") == PLAIN_REPETITIONS
    ((_, _, why),) = record.stopped
    assert why == "nothing is compared"


@pytest.mark.parametrize("repetitions", [1, 3, 12])
def test_a_fixed_number_of_repetitions_is_that_of_each_case(repetitions):
    plan = a_plan({"backend": list(FORMATS)}, repetitions=repetitions, warmup=2)
    record = Recorded(plan, {"zarr": 9.0})
    run(plan, record)
    assert {record.counted(name) for name in FORMATS} == {repetitions}
    assert record.stopped == []


@pytest.mark.parametrize("most", [3, 7, 12])
def test_no_case_has_more_repetitions_than_are_allowed(most):
    plan = a_plan({"backend": list(FORMATS)}, max_repetitions=most, warmup=0)
    record = Recorded(plan, {}, cv=0.3)
    run(plan, record)
    assert {record.counted(name) for name in FORMATS} == {most}


def test_a_case_that_failed_runs_no_more_and_decides_nothing():
    plan = a_plan({"backend": list(FORMATS)}, max_repetitions=25)
    record = Recorded(plan, {"hdf5": 1.0, "netcdf4": 1.03, "zarr": 1.0}, cv=0.3)
    (zarr,) = [name for name in record.cases if "zarr" in name]

    def fails(number, record):
        if number == 4:
            record.cases[zarr].failure = FailureEntry("write", 0, "a", "E", "", 1, repetition=4)

    run(plan, record, after=fails)
    assert len(record.ran[zarr]) == 5
    assert record.counted("hdf5") == record.counted("netcdf4") == 25
    assert all(zarr not in cases for cases, *_ in record.stopped)


def test_with_one_format_left_there_is_nothing_to_decide():
    plan = a_plan({"backend": ["hdf5", "zarr"]})
    record = Recorded(plan, {}, cv=0.3)
    (zarr,) = [name for name in record.cases if "zarr" in name]

    def lose(number, record):
        if number:
            record.cases[zarr].invalid = "lost"

    run(plan, record, after=lose)
    assert record.counted("hdf5") == PLAIN_REPETITIONS


def test_no_round_begins_that_would_pass_the_time_budget():
    plan = a_plan({"backend": ["hdf5", "zarr"]}, time_budget="30 s")
    record = Recorded(plan, {}, cv=0.3)
    rounds = run(plan, record, seconds=1.0)
    assert len(rounds) == 15  # of two cases, one second each
    ((cases, repetitions, why),) = record.stopped
    assert len(cases) == 2
    assert repetitions == 14
    assert "time budget of 30 s" in why


def test_the_budget_ends_a_fixed_number_of_repetitions_too():
    plan = a_plan({"backend": ["hdf5", "zarr"]}, repetitions=50, time_budget="30 s")
    record = Recorded(plan, {})
    assert len(run(plan, record)) == 15


def test_a_warm_up_is_never_the_end():
    plan = a_plan({"backend": ["hdf5", "zarr"]}, time_budget="1 s", warmup=2)
    assert len(run(plan, Recorded(plan, {}))) == 3


THREE_COMPARISONS = [{"backend": ["hdf5", "zarr"], "shape": [8 * n, 8]} for n in (2, 1, 4)]


def test_comparisons_that_the_time_budget_does_not_hold_are_left_out_in_order():
    plan = a_plan(*THREE_COMPARISONS, time_budget="40 s")
    groups = list(dict.fromkeys(case.group for case in plan.cases))
    record = Recorded(plan, {})
    run(plan, record)
    ((out, why),) = record.left_out
    assert list(out) == [case.id for case in plan.cases if case.group == groups[2]]
    assert why == "the time budget of 40 s does not hold a warm-up and 7 rounds of each"
    # A round of 2 + 2 s has passed; the last two cases move 4/3 of these bytes.
    assert record.time_needed == pytest.approx(8 * (4 + 4 / 3 * 4), rel=0.1)
    assert all(len(record.ran[c.id]) == 10 for c in plan.cases if c.group != groups[2])


def test_a_later_comparison_that_fits_runs_where_one_before_it_does_not():
    plan = a_plan(*(THREE_COMPARISONS[i] for i in (0, 2, 1)), time_budget="40 s")
    record = Recorded(plan, {})
    run(plan, record)
    assert [len(rounds) for rounds in record.ran.values()] == [10, 10, 0, 0, 10, 10]


def test_small_arrays_do_not_make_much_larger_ones_look_slow():
    """A second for 512 bytes is a second for calls: 64 times the bytes need not take a minute."""
    sizes = [{"backend": ["hdf5", "zarr"], "shape": [8 * n, 8]} for n in (1, 64, 128)]
    plan = a_plan(*sizes, time_budget="90 s")
    record = Recorded(plan, {})
    run(plan, record)
    assert not record.left_out
    assert all(len(rounds) >= 1 + 7 for rounds in record.ran.values())


def test_a_slow_storage_is_found_by_the_first_large_comparison():
    """It may pass the budget once; the next one is judged by the time that was measured."""
    sizes = [{"backend": ["hdf5", "zarr"], "shape": [8 * n, 8]} for n in (1, 64, 128)]
    plan = a_plan(*sizes, time_budget="90 s")
    schedule = Schedule(plan, Recorded(plan, {}))
    small, large, larger = plan.cases[:2], plan.cases[2:4], plan.cases[4]
    seconds = {case.id: 1.0 for case in small}
    assert not schedule.leaves_out(large[0], 2.0, seconds)
    assert schedule.leaves_out(larger, 130.0, seconds | {case.id: 64.0 for case in large})


def test_one_comparison_runs_however_short_the_time_budget_is():
    plan = a_plan(*THREE_COMPARISONS, time_budget="0.1 s")
    record = Recorded(plan, {})
    run(plan, record)
    assert [len(rounds) for rounds in record.ran.values()] == [2, 2, 0, 0, 0, 0]
    ((cases, rounds, why),) = record.stopped
    assert (len(cases), rounds) == (2, 1)
    assert why == "the time budget of 0.1 s would have been passed"
    assert record.time_needed > 8 * 2  # those that were left out are in it


def test_repetitions_above_seven_go_before_any_case_does():
    plan = a_plan(*THREE_COMPARISONS[:2], time_budget="32 s")
    record = Recorded(plan, {})
    run(plan, record)
    assert not record.left_out
    assert not record.time_needed
    assert {len(rounds) for rounds in record.ran.values()} == {1 + 7}


def test_cases_that_turn_out_to_take_longer_leave_seven_repetitions_to_the_first_question():
    plan = a_plan(*THREE_COMPARISONS[:2], time_budget="40 s")
    record = Recorded(plan, {})
    run(plan, record, seconds=1.0, later=2.0)
    assert [len(rounds) for rounds in record.ran.values()] == [1 + 8, 1 + 8, 1 + 1, 1 + 1]
    assert [(len(cases), rounds) for cases, rounds, _ in record.stopped] == [(2, 1), (2, 8)]
    assert record.time_needed == 8 * 4 * 2


def test_what_an_earlier_start_stopped_does_not_run_again():
    plan = a_plan(
        {"backend": ["hdf5", "zarr"]},
        {"backend": ["hdf5", "zarr"], "files": "one", "arrays": "shared"},
    )
    record = Recorded(plan, {})
    for case in plan.cases[2:]:
        record.cases[case.id].stopped_after = 3
    run(plan, record)
    assert [len(rounds) for rounds in record.ran.values()][2:] == [1 + 3, 1 + 3]


def test_a_budget_goes_to_a_question_with_its_raw_transfer_then_to_others_then_to_other_sizes():
    ways = {"backend": ["hdf5", "zarr"], "settings": ["matched", "defaults"], "chunks": "rank_part"}
    plan = a_plan(
        ways, ways | {"shape": [16, 16]}, {"backend": ["hdf5", "zarr"], "files": "one",
                                           "arrays": "shared"},
        roofline=True,
    )  # fmt: skip
    parts = by_importance(plan.cases)
    assert sorted(case.id for part in parts for case in part) == sorted(c.id for c in plan.cases)
    small, large, shared = dict.fromkeys(case.group for case in plan.cases)
    told = [(part[0].group, [case.parameters.backend for case in part]) for part in parts]
    formats = ["hdf5", "zarr"]
    assert told[:4] == [
        (small, formats), (small, ["mpiio"]), (shared, formats), (shared, ["mpiio"]),
    ]  # fmt: skip
    size = told.index((large, formats))
    assert {group for group, _ in told[4:size]} == {small}
    assert {group for group, _ in told[size:]} == {large}
    assert all(backends != ["mpiio"] for _, backends in told[4:size])
    assert told[size + 1] == (large, ["mpiio"])


@pytest.mark.parametrize(
    ("budget", "kept"),
    [
        (16, "hz"),
        (24, "hmz"),
        (40, "hmz hz"),
        (48, "hmz hmz"),
        (56, "hhmz hmz"),
        (80, "hhmzz hhmzz"),
    ],
)
def test_a_raw_transfer_is_dropped_after_all_but_the_formats_it_stands_next_to(budget, kept):
    """Further ways of the formats, which are listed first, go before the raw rows."""
    ways = {"backend": ["hdf5", "zarr"], "settings": ["matched", "defaults"], "chunks": "rank_part"}
    plan = a_plan(ways, ways | {"arrays": "shared"}, roofline=True, time_budget=f"{budget} s")
    record = Recorded(plan, {})
    run(plan, record)
    ran = {case.group: "" for case in plan.cases}
    for case in plan.cases:
        ran[case.group] += case.parameters.backend[0] * bool(record.ran[case.id])
    assert ["".join(sorted(names)) for names in ran.values() if names] == kept.split()


def test_what_several_environments_run_is_dropped_together():
    plan = a_plan({"backend": ["hdf5", "zarr"], "settings": ["matched", "defaults"]})
    cases = [replace(case, environment=name) for name in ("old", "new") for case in plan.cases]
    for part in by_importance(cases):
        assert {case.environment for case in part} == {"old", "new"}


def test_what_else_a_comparison_has_goes_with_it():
    plan = a_plan(*THREE_COMPARISONS, roofline=True, time_budget="60 s")
    record = Recorded(plan, {})
    run(plan, record)
    ran = {case.group for case in plan.cases if record.ran[case.id]}
    ((out, *_),) = record.left_out
    assert 1 <= len(ran) < 3
    assert {case.id for case in plan.cases if case.group not in ran} <= set(out)


def test_with_time_enough_and_without_a_budget_nothing_is_left_out():
    for budget in ("100 s", None):
        record = Recorded(plan := a_plan(*THREE_COMPARISONS, time_budget=budget), {})
        run(plan, record)
        assert not record.left_out


def test_a_comparison_that_an_earlier_start_has_begun_is_not_left_out():
    plan = a_plan(*THREE_COMPARISONS, time_budget="0.1 s")
    last = plan.cases[-1]
    schedule = Schedule(plan, Recorded(plan, {}), begun={plan.cases[0].id, last.id})
    assert not schedule.leaves_out(last, 50.0, {plan.cases[0].id: 50.0})
    assert schedule.leaves_out(plan.cases[2], 50.0, {plan.cases[0].id: 50.0})


# Going on


@pytest.mark.parametrize("seed", range(6))
def test_a_run_that_is_resumed_comes_to_the_same_decisions(seed):
    """Rounds that are done are passed over, and the schedule is asked again after each of them."""
    plan = a_plan({"backend": list(FORMATS)}, {"backend": ["hdf5", "zarr"], "shape": [16, 16]})
    record = Recorded(plan, {"hdf5": 1.0, "netcdf4": 1.12, "zarr": 1.3}, cv=0.12, seed=seed)
    told = run(plan, record)
    again = Schedule(plan, record)
    replayed = [again.first()]
    for number in range(len(told) - 1):
        replayed.append(again.after(number, 0.0, {}))
    assert [spec.cases for spec in replayed] == [spec.cases for spec in told]
    assert [spec.reads for spec in replayed[1:]] == [spec.reads for spec in told[1:]]


def test_decisions_follow_from_data_up_to_the_round_alone():
    """A look back at an earlier round, with later ones recorded, finds what it found then."""
    plan = a_plan({"backend": list(FORMATS)}, max_repetitions=28)
    record = Recorded(plan, {"netcdf4": 1.1, "zarr": 1.5}, cv=0.15)
    told = run(plan, record)
    for length in range(11, len(told)):
        schedule = Schedule(plan, record)
        found = schedule.first()
        for number in range(length):
            found = schedule.after(number, 0.0, {})
        assert found.cases == told[length].cases


# Reads


@pytest.mark.parametrize(
    ("cache", "seconds", "expected"),
    [
        ("warm", 0.03, 2),
        ("shifted", 0.03, 2),
        ("warm", 1e-5, MOST_READS),
        ("warm", 0.2, 1),
        ("dropped", 0.001, 1),
    ],
)
def test_short_reads_are_repeated_where_that_is_the_same_work(cache, seconds, expected):
    plan = a_plan({"backend": ["hdf5", "zarr"], "cache": cache})
    told = run(plan, Recorded(plan, {}, read=seconds))
    # What a read takes is known from the first round on, and settled then.
    assert set(told[0].reads.values()) == {1}
    assert {n for spec in told[1:] for n in spec.reads.values()} == {expected}


def test_with_a_fixed_number_of_repetitions_each_reads_once():
    plan = a_plan({"backend": ["hdf5", "zarr"]}, repetitions=3)
    told = run(plan, Recorded(plan, {}, read=1e-5))
    assert {n for spec in told for n in spec.reads.values()} == {1}


def test_reads_are_settled_with_the_first_repetition_that_was_read():
    plan = a_plan({"backend": ["hdf5", "zarr"]})
    record = Recorded(plan, {}, read=0.03)

    def slower(number, record):
        record._read = dict.fromkeys(record._read, 0.03 if number == 0 else 0.01)

    told = run(plan, record, after=slower)
    assert {n for spec in told[1:] for n in spec.reads.values()} == {2}


def test_all_cases_of_a_comparison_read_equally_often():
    """What a case gains by reading again must not depend on its own speed."""
    plan = a_plan(
        {"backend": list(FORMATS)}, {"backend": list(FORMATS), "shape": [16, 16]},
    )  # fmt: skip
    record = Recorded(plan, {})
    record._read = {case.id: 0.02 if "zarr" in case.id else 0.001 for case in plan.cases}
    slow = next(case for case in plan.cases if "zarr" in case.id)
    record._read[slow.id] = 0.04
    _, *rest = run(plan, record)
    for spec in rest:
        for place, reads in spec.reads.items():
            assert reads == (2 if plan.cases[place].group == slow.group else 3)
