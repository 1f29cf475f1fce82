"""Many repetitions leave nothing behind: memory, descriptors, HDF5 objects, communicators."""

import pytest

from launch import PROGRAMS, run

pytestmark = pytest.mark.parallel

SOAK = PROGRAMS / "soak.py"


def soak(place, ranks, repetitions, timeout):
    done = run([SOAK, "--ranks", ranks, "--repetitions", repetitions, "--place", place / "soak"],
               timeout=timeout)  # fmt: skip
    told = [line for line in done.stdout.splitlines() if line.startswith("rank ")]
    assert len(told) == 4 * ranks, done.said
    return done, told


@pytest.mark.full
def test_some_repetitions_leave_nothing_behind(tmp_path):
    done, told = soak(tmp_path, ranks=2, repetitions=90, timeout=240)
    assert not [line for line in told if "GROWS" in line], done.said
    assert done.status == 0


@pytest.mark.slow
@pytest.mark.timeout(4000)
def test_two_thousand_repetitions_leave_nothing_behind(tmp_path):
    done, told = soak(tmp_path, ranks=4, repetitions=2000, timeout=3600)
    assert done.status == 0, told
