"""The speed of memory, which bounds what a page cache can take, with more ranks than cores."""

import pytest

from launch import PROGRAMS, run

pytestmark = pytest.mark.parallel


def test_ranks_that_take_turns_on_one_core_copy_no_faster_than_one():
    """Each by itself, while it has the core, copies as fast as one: four times that in sum.

    Their turns are planted. Where one rank gets no memory all of them go on, without a rate.
    """
    done = run([PROGRAMS / "copy_rate.py"], ranks=4)
    assert done.status == 0, done.said
    together, of_one, went_on = done.stdout.split()
    assert went_on == "True"
    assert 0 < float(together) <= float(of_one)
