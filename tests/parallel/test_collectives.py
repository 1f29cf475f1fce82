"""Numbers that are reduced over real ranks keep their value and their type, on each of them."""

import json
import sys

import pytest

from launch import PROGRAMS, run, sampled

pytestmark = pytest.mark.parallel


@pytest.mark.parametrize("ranks", sampled([1, 3], 3))
def test_numbers_keep_value_and_type_on_all_ranks(ranks):
    done = run([PROGRAMS / "reduced.py"], ranks=ranks)
    assert done.status == 0, done.said
    last = ranks - 1
    expected = [
        ["int", last],
        ["int", sys.maxsize - last],
        ["float", 0.5 * last],
        ["float", 2.5],
        ["float32", last / 2],
        ["int32", last],
        ["bool", ranks > 1],
        ["bool", False],
    ]
    assert json.loads(done.stdout) == [expected] * ranks
