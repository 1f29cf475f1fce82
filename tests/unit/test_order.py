"""The order of cases in a round: balanced, so that what a case leaves behind hits all alike."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from launch import environment
from pffbench.experiment.load import from_data
from pffbench.run.order import ordered_round, williams_square


def some_cases(ways, works=1):
    """Return so many ways to do each of some works."""
    entry = {
        "workload": "hyperslab",
        "backend": "zarr",
        "zarr": {"concurrency": [*range(1, ways + 1)]},
    }
    cases = [entry | {"shape": [8, work + 1]} for work in range(works)]
    return [
        case for _, case in from_data({"name": "x", "cases": cases, "roofline": False}, "x").cases
    ]


@pytest.mark.parametrize("count", range(1, 13))
def test_a_square_has_each_item_in_each_place_and_after_each_other_one_equally_often(count):
    square = williams_square(count)
    assert len(square) == count * (1 + count % 2)
    assert all(sorted(row) == list(range(count)) for row in square)
    for column in zip(*square, strict=True):
        assert set(Counter(column).values()) == {len(square) // count}
    followers = Counter(pair for row in square for pair in itertools.pairwise(row))
    assert set(followers) == set(itertools.permutations(range(count), 2))
    assert len(set(followers.values())) <= 1


@given(st.integers(1, 6), st.integers(1, 4), st.integers(0, 50), st.integers(0, 2**63 - 1))
def test_a_round_runs_every_case_once_and_those_of_a_comparison_next_to_each_other(
    ways, works, number, seed
):
    cases = some_cases(ways, works)
    order = list(ordered_round(cases, number, seed))
    assert sorted(case.id for case in order) == sorted(case.id for case in cases)
    groups = [group for group, _ in itertools.groupby(order, key=lambda case: case.group)]
    assert len(groups) == len(set(groups)) == works
    assert order == list(ordered_round(cases, number, seed))


@pytest.mark.parametrize("ways", [2, 3, 4, 5, 6])
def test_rounds_of_a_turn_are_balanced_for_place_and_predecessor(ways):
    cases = some_cases(ways)
    turn = ways * (1 + ways % 2)
    for first in (0, turn, 7 * turn):
        orders = [list(ordered_round(cases, first + i, 1)) for i in range(turn)]
        followers = Counter((a.id, b.id) for order in orders for a, b in itertools.pairwise(order))
        assert len(followers) == ways * (ways - 1)
        assert len(set(followers.values())) == 1
        for place in range(ways):
            there = Counter(order[place].id for order in orders)
            assert set(there.values()) == {turn // ways}


def test_turns_and_seeds_have_orders_of_their_own():
    cases = some_cases(6, works=3)

    def orders(seed, rounds):
        return [[case.id for case in ordered_round(cases, b, seed)] for b in rounds]

    assert orders(1, range(6)) != orders(1, range(6, 12))
    assert orders(1, range(6)) != orders(2, range(6))


def test_all_ranks_find_the_same_order():
    """Whatever a process does with hashes and however its random numbers stand."""
    code = """if True:
        import random
        random.random()
        from pffbench.experiment.load import from_data
        from pffbench.run.order import ordered_round
        entry = {"workload": "hyperslab", "backend": ["hdf5", "netcdf4", "zarr"], "shape": [8, 8]}
        cases = [case for _, case in from_data({"name": "x", "cases": [entry]}, "x").cases]
        print([[case.id for case in ordered_round(cases, number, 3)] for number in range(20)])
    """
    told = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                       timeout=300, env=environment(PYTHONHASHSEED=seed)).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(told) == 1


def rotated(cases, number):
    """The order that was: each case has the same predecessor in every round."""
    return [cases[(number + place) % len(cases)] for place in range(len(cases))]


def ratios(order_of, cases, legacy, rounds=40):
    """Return the ratio of each case's median to the smallest, of equal cases with a legacy.

    The time of a case is multiplied by what the case before it leaves behind.
    """
    generator = np.random.default_rng(5)
    times = {case.id: [] for case in cases}
    before = None
    for number in range(rounds):
        for case in order_of(number):
            left = legacy.get(before, 1.0)
            times[case.id].append(left * float(np.exp(0.05 * generator.normal())))
            before = case.id
    medians = {name: float(np.median(values)) for name, values in times.items()}
    return {name: value / min(medians.values()) for name, value in medians.items()}


@pytest.mark.parametrize("ways", [4, 5, 6])
def test_what_a_case_leaves_behind_is_not_taken_for_the_time_of_the_next(ways):
    """A rotated order makes the successor three times as slow; the square does not."""
    cases = some_cases(ways)
    legacy = {cases[0].id: 3.0}
    wrong = ratios(lambda number: rotated(cases, number), cases, legacy)
    assert wrong[cases[1].id] > 2.8
    right = ratios(lambda number: ordered_round(cases, number, 1), cases, legacy)
    assert max(right.values()) < 1.1


def test_it_stays_balanced_when_some_cases_have_stopped():
    cases = some_cases(6)
    left = cases[:4]
    found = ratios(
        lambda number: ordered_round(cases if number < 12 else left, number, 1),
        cases,
        {left[0].id: 3.0},
    )
    assert max(found[case.id] for case in left) < 1.1
