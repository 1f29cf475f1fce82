"""What gathering and recording a repetition takes as ranks grow in number, and of a run's time.

    python benchmarks/gather.py [--ranks 4 64 256] [--place DIRECTORY]

Runs an experiment of the `null` backend as `python -m pffbench run` does and times, on rank 0, what
it does between the end of a repetition and the next one: `Runner._record`, with what it waits for
the other ranks. Growth is compared with the smallest number of ranks, rank by rank: 1 is linear.
The last row is the part of the wall time of the default experiment.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs import python, run_ranks
from rows import Mark, Ratio, Row
from script import Given, main

_LINEAR = Mark("at most", 1.0)
_PART = Mark("at most", 0.01)
_EXPERIMENT = """\
name: gather
repetitions: 20
roofline: false
common: {workload: hyperslab, backend: "null", durability: sync, shape_per_rank: [16]}
cases: [{layout: own}]
"""


@dataclass(frozen=True)
class Recorded:
    """What a run spent on recording.

    Parameters
    ----------
    seconds : list of float
        Of each repetition, by the clock of rank 0.
    wall : float
        Of the whole job, from its launcher on.
    """

    seconds: list[float]
    wall: float

    @property
    def part(self) -> float:
        """The part of the job's time."""
        return sum(self.seconds) / self.wall


def measure(given: Given) -> Sequence[Row]:
    """Return the rows."""
    with given.directory() as place:
        return list(_rows(given, place))


def _rows(given: Given, place: Path) -> Iterator[Row]:
    experiment = place / "gather.yaml"
    experiment.write_text(_EXPERIMENT, encoding="utf-8")
    few, *more = given.ranks_or(4, 64, 256)
    least = recorded(few, [str(experiment)], place)
    for ranks in more:
        found = recorded(ranks, [str(experiment)], place)
        times = ranks / few
        pairs = [(a, b * times) for a, b in zip(found.seconds, least.seconds, strict=True)]
        yield Row(
            f"gather and record a repetition, {ranks} ranks",
            f"{few} ranks, times {times:g}",
            _LINEAR,
            Ratio.of(pairs),
            _shown(found),
            _shown(least),
        )
    whole = recorded(few, [], place)
    yield Row(
        f"gather and record in a default run, {few} ranks",
        "its wall time",
        _PART,
        Ratio(whole.part, whole.part, whole.part, 1),
        f"{sum(whole.seconds):.3g} s in {len(whole.seconds)} repetitions",
        f"{whole.wall:.1f} s",
    )


def _shown(found: Recorded) -> str:
    return f"{1e3 * statistics.median(found.seconds):.3g} ms"


def recorded(ranks: int, experiment: Sequence[str], place: Path) -> Recorded:
    """Run an experiment, the default one when none is given, and tell what recording took."""
    name = f"{ranks}-{len(experiment)}"
    told, out = place / f"{name}.json", place / f"{name}-results"
    arguments = ["run", *experiment, "--out", str(out), "--scratch", str(place)]
    begin = time.perf_counter()
    run_ranks(ranks, python(__file__, "--on-a-rank", str(told), *arguments, "--progress", "none"))
    wall = time.perf_counter() - begin
    return Recorded(json.loads(told.read_text(encoding="utf-8")), wall)


def _on_a_rank(told: Path, arguments: Sequence[str]) -> None:
    """Run the command line of pffbench; rank 0 writes down how long recording took."""
    from mpi4py import MPI

    from pffbench.cli import main as pffbench
    from pffbench.run import runner

    seconds: list[float] = []
    record = runner.Runner._record

    def timed(*given: Any) -> None:
        begin = time.perf_counter()
        record(*given)
        seconds.append(time.perf_counter() - begin)
        if MPI.COMM_WORLD.rank == 0:
            told.write_text(json.dumps(seconds), encoding="utf-8")

    runner.Runner._record = timed  # type: ignore[assignment, method-assign]
    pffbench(arguments)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--on-a-rank"]:
        _on_a_rank(Path(sys.argv[2]), sys.argv[3:])
        sys.exit()
    main(measure, __doc__)
