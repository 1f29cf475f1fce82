"""What the sample of a phase costs: barriers, clock and record, against two bare barriers.

A pair is hundreds of empty phases of the `null` backend's call and as many pairs of barriers, in
one MPI job; each gives its median on the slowest rank. The time *on the timed path* is what such a
phase reports for itself: between the stamps there is a loop over one call that does nothing.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from jobs import python, run_ranks
from rows import Given, Mark, Ratio, Row

_ROUNDS = 300
_TWICE = Mark("at most", 2)
_TIMED = Mark("at most", 5, " µs")


def measure(given: Given) -> Sequence[Row]:
    """Return the rows."""
    return [row for ranks in given.ranks_or(1, 4) for row in _rows(ranks, given.pairs)]


def _rows(ranks: int, pairs: int) -> Iterator[Row]:
    told = run_ranks(ranks, python(__file__, str(pairs)))
    found = json.loads(told.splitlines()[-1])
    samples, barriers, own = ([one[i] for one in found] for i in range(3))
    what = f"{ranks} rank{'s' if ranks > 1 else ''}"
    yield Row(
        f"one phase sample, {what}",
        "two bare barriers",
        _TWICE,
        Ratio.of(zip(samples, barriers, strict=True)),
        f"{statistics.median(samples):.2f} µs",
        f"{statistics.median(barriers):.2f} µs",
        f"{statistics.median(samples) - statistics.median(barriers):.2f} µs more",
    )
    yield Row(
        f"Python on the timed path, {what}",
        "nothing",
        _TIMED,
        Ratio.of_figures(own),
        f"{statistics.median(own):.2f} µs",
    )


def _on_a_rank(pairs: int) -> None:
    """Measure, and print the microseconds of each pair on rank 0."""
    from mpi4py import MPI

    from pffbench.backends.null import Faults, NullArray, NullOptions
    from pffbench.geometry.box import Box
    from pffbench.observe.clock import PhaseClock, collector_off

    comm = MPI.COMM_WORLD.Dup()
    array = NullArray(Faults(NullOptions(), comm.rank))
    calls = [array.writer(Box((0,), (1,)), np.zeros(1), collective=False)]

    def phase() -> None:
        with clock.phase("write"):
            for call in calls:
                call()

    def barriers() -> None:
        comm.Barrier()
        comm.Barrier()

    found = []
    with collector_off():
        for _ in range(pairs):
            clock = PhaseClock(comm)
            cost, bare = _median(phase), _median(barriers)
            own = statistics.median(clock.times[0].parts) * 1e6
            found.append([max(comm.allgather(n)) for n in (cost, bare, own)])
    if comm.rank == 0:
        print(json.dumps(found))


def _median(call: Callable[[], None]) -> float:
    """Return the median microseconds of a call."""
    now, found = time.perf_counter, []
    for _ in range(_ROUNDS):
        begin = now()
        call()
        found.append(now() - begin)
    return statistics.median(found) * 1e6


if __name__ == "__main__":
    _on_a_rank(int(sys.argv[1]))
