"""The numbers of `datasets: auto`: how they are found, and what has them in its name."""

from __future__ import annotations

import pytest

from pffbench.errors import UserError
from pffbench.experiment.check import make_plan
from pffbench.experiment.load import from_data
from pffbench.run.calibration import (
    LONGEST,
    calibrate,
    open_groups,
    recorded_numbers,
    with_numbers,
)

WANTED = 0.1
#: Name of a case as pffbench made it before there were numbers to be found.
NAMED = "hdf5.datasets.own.independent.matched.3737ae943fc9"


def no_limit(number):
    return ""


class Libraries:
    """Cases whose phases take so many seconds for each dataset, and `create` a fixed time."""

    def __init__(self, **seconds):
        self.seconds = seconds
        self.tried = []

    def measure(self, number):
        self.tried.append(number)
        return {
            case: {"create": 0.5, **{phase: number * each for phase, each in phases.items()}}
            for case, phases in self.seconds.items()
        }

    def find(self, ranks=1, beyond=no_limit):
        return calibrate(set(self.seconds), ranks, WANTED, self.measure, beyond)


def test_the_number_is_doubled_until_the_shortest_phase_of_any_case_is_long_enough():
    both = Libraries(a={"define": 1e-3, "write": 4e-4}, b={"define": 2e-3, "read": 2e-4})
    found = both.find(ranks=3)
    assert (found.number, found.case, found.phase) == (3 * 2**8, "b", "read")
    assert found.seconds == pytest.approx(3 * 2**8 * 2e-4)
    assert both.tried == [3, *(3 * 2**power for power in range(9))]
    assert found.limit == ""


def test_a_phase_in_which_a_library_does_nothing_for_a_dataset_does_not_count():
    found = Libraries(a={"define": 1e-3, "open_array": 1e-9}).find()
    assert (found.number, found.phase) == (128, "define")


def test_a_slow_case_ends_it_early():
    found = Libraries(a={"define": 1e-6}, b={"define": 1.0}).find()
    assert LONGEST * WANTED <= found.number < 3 * LONGEST * WANTED
    assert "takes" in found.limit
    assert "less than the wanted" in found.sentence("datasets.own")


def test_a_number_that_does_not_fit_is_not_tried():
    libraries = Libraries(a={"define": 1e-4})
    found = libraries.find(beyond=lambda number: "it is full" if number > 100 else "")
    assert (found.number, found.limit, libraries.tried[-1]) == (64, "it is full", 64)


def test_without_a_case_that_runs_there_is_no_number_to_find():
    assert calibrate({"a"}, 2, WANTED, lambda _: {}, no_limit).case == ""
    assert calibrate({"a"}, 2, WANTED, lambda _: None, no_limit) is None


def plan(**changes):
    case = {"workload": "datasets", "backend": ["hdf5", "zarr"], "shape": [[4], [8]],
            "layout": "own", "datasets": "auto", **changes}  # fmt: skip
    told = {"name": "a", "cases": [case], "impossible": "skip"}
    return make_plan(from_data(told, "a.yaml"), 2)


def test_all_cases_of_a_comparison_get_one_number_and_keep_their_names():
    before = plan()
    first, second = open_groups(before.cases)
    after = with_numbers(before, {first: 16, second: 64})
    assert [case.id for case in after.cases] == [case.id for case in before.cases]
    assert [case.group for case in after.cases] == [case.group for case in before.cases]
    numbers = {case.group: set() for case in after.cases}
    for case in after.cases:
        numbers[case.group].add((case.parameters.calibrated_datasets, after.costs[case.id].arrays))
    assert numbers == {first: {(16, 16)}, second: {(64, 64)}}
    assert open_groups(after.cases) == []


def test_the_numbers_of_a_record_are_taken_over():
    before = plan()
    first, _ = open_groups(before.cases)
    entries = {
        case.id: {"parameters": {"calibrated_datasets": 32 if case.group == first else None}}
        for case in before.cases
    }
    assert recorded_numbers(before, entries) == {first: 32}
    assert recorded_numbers(before, {}) == {}


def test_a_number_of_an_earlier_run_can_be_given():
    given = plan(calibrated_datasets=128)
    assert open_groups(given.cases) == []
    assert {cost.arrays for cost in given.costs.values()} == {128}
    assert {case.id for case in given.cases} == {case.id for case in plan().cases}


def test_cases_with_a_number_have_the_names_that_they_had():
    names = [case.id for case in plan(backend="hdf5", shape=[[4]], datasets=7).cases]
    assert NAMED in names


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"datasets": 4, "calibrated_datasets": 4}, "calibrated_datasets is the number of"),
        ({"datasets": "some"}, "datasets"),
        ({"datasets_per_rank": 2}, "give either datasets"),
    ],
)
def test_what_cannot_be_meant_is_refused(changes, sentence):
    with pytest.raises(UserError, match=sentence):
        plan(**changes)
