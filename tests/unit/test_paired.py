"""Environments that take turns are compared in pairs, block by block: the signed-rank test."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, wilcoxon

from drawn_times import NOISES, by_block, drawn
from launch import sampled
from pffbench.summary.headline import Design, answers
from pffbench.summary.inference import ComparisonTable, decide, planned_looks
from pffbench.summary.rank_test import (
    ALPHA,
    enough_for,
    fastest_of,
    ratio,
    ratio_of_times,
    repetitions_for,
    smallest_p,
    unit_error,
)

pytestmark = pytest.mark.long


def paired(times, others, level=ALPHA, inflation=1.0):
    return ratio(np.array(times), np.array(others), level, inflation, paired=True)


@pytest.mark.parametrize("n", [3, 7, 10, 20, 50])
def test_p_values_are_those_of_the_exact_test_of_scipy(n):
    generator = np.random.default_rng(n)
    for shift in (0.0, 0.3, 1.0, 3.0):
        a, b = generator.normal(shift, 1, n), generator.normal(0, 1, n)
        assert paired(np.exp(a), np.exp(b)).p == pytest.approx(
            wilcoxon(a, b, method="exact").pvalue
        )


def test_many_pairs_are_tested_by_the_normal_approximation():
    a, b = np.random.default_rng(1).normal(0, 1, (2, 120))
    found = paired(np.exp(a + 0.2), np.exp(b))
    expected = wilcoxon(a + 0.2, b, method="approx", correction=True).pvalue
    assert found.p == pytest.approx(expected, rel=1e-6)


@given(st.lists(st.integers(-3, 3), min_size=7, max_size=7))
def test_ties_never_make_a_false_claim_likelier(values):
    """Of all signs that the differences can have, at most a part p have so small a p-value."""
    sizes = np.abs(np.array(values, dtype=float))
    signs = itertools.product((-1, 1), repeat=7)
    p = np.array([paired(np.exp(sizes * each), np.ones(7)).p for each in signs])
    for level in np.unique(p):
        assert np.mean(p <= level) <= level + 1e-12


@given(
    st.integers(0, 2**32 - 1), st.integers(3, 14), st.sampled_from([0.3, 0.1, 0.05, 0.01]),
    st.sampled_from([1.0, 1.7, 4.0]),
)  # fmt: skip
def test_the_interval_holds_the_ratios_that_the_test_does_not_reject(seed, n, level, inflation):
    generator = np.random.default_rng(seed)
    a, b = np.exp(generator.normal(0, 1, (2, n)))
    found = paired(a, b, level, inflation)
    assert found.low <= found.value <= found.high
    for factor in np.exp(generator.normal(0, 1, 20)):
        rejected = paired(a / factor, b, level, inflation).p <= level
        assert rejected == (not found.low <= factor <= found.high)


def test_what_all_ways_of_a_block_share_changes_nothing():
    generator = np.random.default_rng(3)
    a, b = drawn("normal", 2, 12, generator)
    shared = np.exp(generator.normal(0, 3, 12))
    one, other = paired(a, b), paired(shared * a, shared * b)
    assert (other.value, other.low, other.high) == pytest.approx((one.value, one.low, one.high))
    assert other.p == one.p


def test_the_fastest_is_so_in_the_blocks_that_both_have():
    state = [1, 9, 2, 8, 3, 7, 20]
    ways = {"a": by_block([1.1 * s for s in state]), "b": by_block(state)}
    ways["b"][6] = 90.0  # one outlier
    assert fastest_of(ways, paired=True) == "b"
    assert ratio_of_times(ways["a"], ways["b"], paired=True).value == pytest.approx(1.1)
    # Runs have no block in common, and no pairs.
    other = by_block(state, first=100)
    assert ratio_of_times(ways["a"], other, paired=True) == ratio_of_times(ways["a"], other)


def test_the_repetitions_that_are_named_would_decide():
    generator = np.random.default_rng(4)
    units = []
    for _ in range(200):
        units.append(unit_error(*drawn("normal", 2, 12, generator, 0.04), paired=True))
    needed = repetitions_for(math.log(1.05), float(np.median(units)), 0.01, paired=True)
    found = sum(
        paired(*(drawn("normal", 2, needed, generator, 0.04) * [[1.05], [1]])).p <= 0.01
        for _ in range(400)
    )
    assert 0.6 <= found / 400 <= 0.92  # few blocks have few levels


def test_no_error_is_spent_on_looks_that_can_show_nothing():
    assert not enough_for(7, 0.01, paired=True)
    assert enough_for(7, 0.01, paired=False)
    assert smallest_p(10) == 2 / 2**10
    # Of 30 pairs with five looks 10 blocks show nothing, and 14 do.
    tables = [table_of(drawn("normal", 2, 20, np.random.default_rng(n))) for n in range(30)]
    assert decide(tables, (10, 14, 20)) == decide(tables, (14, 20))


def table_of(times, *, pairs=None):
    ways = {f"w{i}": by_block(own) for i, own in enumerate(times)}
    return ComparisonTable(ways, pairs or tuple(itertools.combinations(ways, 2)), paired=True)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("ways", "runs"), sampled([(2, 300), (3, 150)], (3, 150)))
def test_runs_of_equal_environments_seldom_claim_a_difference(noise, ways, runs):
    """Two totals each, in blocks that share a state of the machine, at all looks."""
    generator = np.random.default_rng(50 * ways + NOISES.index(noise))
    claims = 0
    for _ in range(runs):
        state = np.exp(0.1 * np.cumsum(generator.normal(size=20)))
        tables = [table_of(state * drawn(noise, ways, 20, generator)) for _ in range(2)]
        decisions = decide(tables, planned_looks(20)).values()
        claims += any(decision.different for decision in decisions)
    allowed = 0.10 if noise == "dependent" else ALPHA
    assert claims <= binom.ppf(0.999, runs, allowed)


def test_five_percent_are_found_through_a_state_of_the_machine_that_varies_more():
    generator = np.random.default_rng(6)
    found, runs = 0, 100
    for _ in range(runs):
        state = np.exp(generator.normal(0, 0.06, 28))
        times = state * drawn("normal", 2, 28, generator, 0.02) * [[1.0], [1.05]]
        decision = decide([table_of(times)], planned_looks(28), margin=0.03)[0, "w0", "w1"]
        assert not decision.longer
        found += decision.shorter
    assert found >= 95


def test_a_run_of_environments_is_judged_in_pairs():
    state = np.exp(np.random.default_rng(7).normal(0, 0.3, 20))
    noise = drawn("normal", 2, 20, np.random.default_rng(8), 0.02)
    times = dict(zip("ab", state * noise * [[1.0], [1.1]], strict=True))
    cases = {
        name: {
            "group": "g", "same_case": "c",
            "parameters": {"backend": "hdf5", "settings": "matched", "environment": name},
        }
        for name in times
    }  # fmt: skip
    totals = {"write_total": {name: by_block(own) for name, own in times.items()}}
    experiment = {"repetitions": 20, "environments": [{"name": "a"}, {"name": "b"}]}
    (answer,) = answers(cases, totals, Design.of_experiment(experiment), 0.0)
    (other,) = answer.others
    assert (answer.name, other.name, other.standing) == ("a", "b", "slower")
    assert other.ratio.high - other.ratio.low < 0.06
    (answer,) = answers(cases, totals, Design.of_experiment({"repetitions": 20}), 0.0)
    assert answer.others[0].standing == "undecided"
