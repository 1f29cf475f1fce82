"""What the kernel counts in each phase."""

import pytest

from launch import run_experiment
from pffbench.observe.process_counters import COUNTERS
from pffbench.results.summary import summarise

pytestmark = pytest.mark.parallel

RANKS = 3
MIB = 2**20


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """Each rank moves a file of 4 MiB, in one call each way."""
    return run_experiment(
        tmp_path_factory.mktemp("counted"), RANKS, repetitions=2, warmup=1, counters=True,
        cases=[{"workload": "hyperslab", "backend": "posix", "files": "per_rank",
                "shape_per_rank": [1024, 1024]}],
    )  # fmt: skip


@pytest.fixture(scope="module")
def counts(counted):
    assert counted.status == 0, counted.said
    return summarise(counted.out).counts()


def of(counts, phase, counter):
    return counts[(counts.phase == phase) & (counts.counter == counter)]


def test_every_phase_has_every_counter_in_every_repetition(counts, counted):
    phases = {row["phase"] for row in counted.rows}
    found = counts.groupby(["phase", "counter"]).size()
    moving = {("write", "writing_ranks"), ("read", "reading_ranks")}
    moving |= {(p, f"touched_{what}") for p in ("write", "read") for what in ("runs", "bytes")}
    assert set(found.index) == {(p, c) for p in phases for c in COUNTERS} | moving
    assert set(found) == {3}
    assert list(counts[counts.warmup]["round"].unique()) == [0]


def test_bytes_and_calls_are_those_of_the_operation_and_of_nothing_else(counts):
    for phase, moved, calls in (
        ("write", "written_bytes", "write_calls"),
        ("read", "read_bytes", "read_calls"),
    ):
        assert set(of(counts, phase, moved).total) == {RANKS * 4 * MIB}
        assert set(of(counts, phase, moved).largest) == {4 * MIB}
        assert set(of(counts, phase, calls).total) == {RANKS}
    assert set(of(counts, "write", "read_calls").total) == {0}


def test_cpu_time_is_no_more_than_the_time_of_the_ranks(counts, counted):
    own = [float(row["own_max"]) for row in counted.rows if row["phase"] == "write"]
    cpu = of(counts, "write", "cpu_seconds").largest
    # One thread of a rank is busy; the kernel counts in steps of its own.
    assert 0 < cpu.max() <= 1.5 * max(own) + 0.02
