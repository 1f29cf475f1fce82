"""The times of the job, from those of its ranks."""

import math
from datetime import UTC, datetime
from types import SimpleNamespace

import numpy as np
import pytest

from pffbench.record.gather import GatheredRepetition
from pffbench.record.reduction import reduce_repetition
from pffbench.record.repetitions import MachineState

#: Seconds of three ranks in two phases: no rank is the slowest in both.
OWN = np.array([[1.0, 2.0, 4.0], [3.0, 1.5, 0.5]])


def gathered(own=OWN, **changes):
    per_rank = {name: np.ones_like(own, dtype=np.int64) for name in ("nbytes", "operations")}
    told = {
        "case": SimpleNamespace(id="a case"), "number": 1, "position": 0,
        "started": datetime.now(UTC),
        "phases": ("write", "close"), "own": own, "synced": own.max(axis=1, keepdims=True) + 0.25,
        "job": own.max(axis=1), "entries": np.array([1.0, 1.0]), **per_rank, "cpu": OWN,
        "faults": OWN, "peak_memory": np.array([5, 9, 7]), "machine": MachineState(),
        "mismatches": (), "verified_bytes": 0, "cache": None, "disk": None, "stored_as": None,
        "facts": {}, "counts": (),
    }  # fmt: skip
    return GatheredRepetition(**told | changes)


def reduced(clock, r):
    return reduce_repetition(
        r, clock=clock, empty_phase=0.25, warmup=False, valid=True, stage="all"
    )


def test_a_total_of_own_clocks_is_the_largest_sum_of_a_rank():
    found = reduced("own", gathered())
    assert [one.seconds for one in found.phases] == [4.0, 3.0]
    assert [one.slowest_rank for one in found.phases] == [2, 0]
    assert found.totals["write_total"] == 4.5  # not 7.0, of ranks that never did all of it
    assert found.peak_memory == 9


def test_where_ranks_share_processors_the_job_ends_with_its_last_rank():
    found = reduced("synced", gathered(synced=np.array([[6.25] * 3, [5.25] * 3])))
    assert [one.seconds for one in found.phases] == [6.0, 5.0]  # less an empty phase
    assert found.totals["write_total"] == 11.0
    # The slowest rank's own time is the least that it is.
    assert reduced("synced", gathered(synced=OWN)).totals["write_total"] == 7.0


@pytest.mark.parametrize("clock", ["own", "synced"])
def test_a_clock_that_failed_is_recorded_as_no_time(clock):
    broken = reduced(clock, gathered(own=np.full((2, 3), math.nan)))
    assert [one.seconds for one in broken.phases] == [-1.0, -1.0]
    assert broken.totals["write_total"] == -1.0
