"""The median of a few numbers is that of NumPy."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pffbench.median import median_of


@given(st.lists(st.floats(0, 1e300), min_size=1, max_size=9))
def test_it_is_the_one_of_numpy_to_the_last_digit(values):
    assert median_of(values) == np.median(values)


@pytest.mark.parametrize("values", [[math.nan], [1.0, math.nan], [math.nan, 1.0, 2.0]])
def test_where_one_is_no_number_there_is_none(values):
    assert math.isnan(median_of(values))
