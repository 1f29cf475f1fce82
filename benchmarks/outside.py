"""What of a default run's wall time is neither phases nor making and verifying data.

    python benchmarks/outside.py [--ranks 4] [--place DIRECTORY]

Runs the default experiment as `python -m pffbench run` does, and notes on rank 0 when each step
begins, as the watchdog is told of it: a step lasts until the next one. Phases count from the
barrier before them to the one behind, as all ranks wait for the slowest. Begins with the job's
launcher and ends when it has ended.
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from jobs import python, run_ranks
from rows import Mark, Ratio, Row
from script import Given, main

_MARK = Mark("at most", 0.10)
#: Steps that are not counted, beside the phases: making data and verifying them.
_DATA = ("data", "verification")
_PHASES = (
    "create", "define", "write", "flush", "close", "sync",
    "open", "open_array", "read", "close_read", "remove",
)  # fmt: skip


def measure(given: Given) -> Sequence[Row]:
    """Return the rows."""
    return [_row(given, ranks) for ranks in given.ranks_or(4)]


def _row(given: Given, ranks: int) -> Row:
    with given.directory() as place:
        told = place / "steps.json"
        arguments = ["run", "--out", str(place / "results"), "--scratch", str(place)]
        command = python(__file__, "--on-a-rank", str(told), *arguments, "--progress", "none")
        begin = time.time()
        run_ranks(ranks, command)
        end = time.time()
        steps = json.loads(told.read_text(encoding="utf-8"))
    spent = lasted([(begin, "start"), *steps], end)
    inside = sum(seconds for name, seconds in spent.items() if name in (*_PHASES, *_DATA))
    outside = {name: seconds for name, seconds in spent.items() if name not in (*_PHASES, *_DATA)}
    whole = end - begin
    most = sorted(outside, key=lambda name: -outside[name])[:6]
    part = (whole - inside) / whole
    return Row(
        f"default run outside of phases and data, {ranks} ranks",
        "its wall time",
        _MARK,
        Ratio(part, part, part, 1),
        f"{whole - inside:.1f} s",
        f"{whole:.1f} s",
        ", ".join(f"{name} {outside[name]:.2f} s" for name in most),
    )


def lasted(steps: Sequence[tuple[float, str]], end: float) -> dict[str, float]:
    """Add up how long the steps lasted, each until the next one, by their name."""
    found: dict[str, float] = defaultdict(float)
    ends = [begin for begin, _ in steps[1:]] + [end]
    for (begin, name), until in zip(steps, ends, strict=True):
        found[name] += until - begin
    return dict(found)


def _on_a_rank(told: Path, arguments: Sequence[str]) -> None:
    """Run the command line of pffbench; rank 0 writes down when each step began."""
    from mpi4py import MPI

    from pffbench.cli import main as pffbench
    from pffbench.parallel.watchdog import Watchdog

    steps: list[tuple[float, str]] = []
    step, begin, leave = Watchdog.step, Watchdog.begin, Watchdog.__exit__

    def noted_step(watchdog: Watchdog, name: str) -> None:
        steps.append((time.time(), name))
        step(watchdog, name)

    def noted_begin(watchdog: Watchdog, about: str, seconds: float) -> None:
        steps.append((time.time(), "beginning of a repetition"))
        begin(watchdog, about, seconds)

    def noted_leave(watchdog: Watchdog, *error: object) -> None:
        steps.append((time.time(), "summary and end"))
        leave(watchdog, *error)  # type: ignore[arg-type]

    for name, noted in (("step", noted_step), ("begin", noted_begin), ("__exit__", noted_leave)):
        setattr(Watchdog, name, noted)
    try:
        pffbench(arguments)
    finally:
        if MPI.COMM_WORLD.rank == 0:
            told.write_text(json.dumps(steps), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--on-a-rank"]:
        _on_a_rank(Path(sys.argv[2]), sys.argv[3:])
    else:
        main(measure, __doc__)
