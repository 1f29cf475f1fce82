"""The spread of values, against values known by hand and against SciPy."""

import math

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from pffbench.results.spread import (
    FEWEST_FOR_INTERVAL,
    interval_of_median,
    modified_z_scores,
    spread,
    warnings_for,
)

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
    assert found.mad == pytest.approx(scipy.stats.median_abs_deviation(values))
    assert found.cv == pytest.approx(scipy.stats.variation(values, ddof=1))


@given(st.lists(st.floats(1e-6, 1e3), min_size=FEWEST_FOR_INTERVAL, max_size=40))
def test_the_interval_lies_within_the_values_and_holds_their_median(values):
    low, high = interval_of_median(np.array(values))
    assert min(values) <= low <= np.median(values) <= high <= max(values)
    assert (low, high) == interval_of_median(np.array(values[::-1]))


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
    outer = max(d for d in range(1, n // 2 + 1) if scipy.stats.binom.cdf(d - 1, n, 0.5) <= 0.025)
    low, high = interval_of_median(values)
    assert values[outer - 1] <= low <= values[outer]
    assert values[n - outer - 1] <= high <= values[n - outer]


@pytest.mark.parametrize("n", [501, 1500, 100_000])
def test_the_interval_of_many_values_is_that_of_the_sign_test_within_one_place(n):
    values = np.arange(float(n))
    outer = int(scipy.stats.binom.ppf(0.025, n, 0.5))  # the place after the outer one
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
