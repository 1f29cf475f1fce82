"""Wall time of the default experiment on many ranks: the real schedule, modelled repetitions.

    python benchmarks/wall_time.py [--ranks 1000 10000] [--json FILE]

Nothing is started. What rank 0 does in a repetition (gathering, recording, planning) is measured by
`scale.py` with the real code. The schedule of the run then decides on the modelled seconds of each
repetition which cases run, how often, and when the time budget ends the run. Formats take the same
time with 10 % noise, so that little is decided before the budget is over: the longest run.

Assumptions about the machine, `MACHINES`:

* the file system writes and reads so many bytes a second for all ranks together, and one rank moves
  at most 1 GB/s; a read from the page cache takes a copy in memory, at 2 GB/s a rank;
* so many files a second are created, and as many removed, by all ranks; one rank alone removes and
  counts `ONE_CLIENT` files a second;
* a rank generates and verifies 1 GB/s of data, each on a core of its own;
* a barrier takes 5 µs for each of its log2(ranks) rounds; an untimed step ends 10 ms late, the
  longest sleep;
* a dataset of `layout: own` takes 0.1 ms of all ranks (`define.py`), as measured with 64 ranks;
* earlier writes are on the device after 1 s (`settle`; the run waits for 2 s at most);
* the program is started from local copies in 10 s, and summing up takes 5 s.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scale import modelled

from pffbench.backends.registry import backend_class
from pffbench.case import Case
from pffbench.experiment.check import make_plan
from pffbench.experiment.load import load_experiment
from pffbench.experiment.plan import Plan
from pffbench.run.order import by_importance
from pffbench.run.schedule import Schedule

ONE_CLIENT = 3000.0
#: Phases with two barriers and an agreement each, and untimed steps, of a repetition.
_PHASES, _STEPS = 11, 15
_BARRIER_ROUND, _LATE = 5e-6, 1e-2
_GENERATED, _COPIED, _OF_A_RANK = 1e9, 2e9, 1e9
_DEFINED, _SETTLED, _STARTED, _SUMMED_UP = 1e-4, 1.0, 10.0, 5.0


@dataclass(frozen=True)
class Machine:
    """Bytes a second of the file system, and files a second that it creates, for all ranks."""

    name: str
    rate: float
    files: float


MACHINES = (
    Machine("fast: 500 GB/s, 100 000 files/s", 5e11, 1e5),
    Machine("middle: 50 GB/s, 30 000 files/s", 5e10, 3e4),
    Machine("slow or busy: 5 GB/s, 5 000 files/s", 5e9, 5e3),
)


@dataclass
class Modelled:
    """The records on rank 0 that the schedule needs, with modelled times."""

    plan: Plan
    resolution: float = 1e-4
    cases: dict[str, dict[str, Any]] = field(default_factory=dict)
    seconds: dict[str, dict[int, float]] = field(default_factory=dict)
    out: int = 0

    def __post_init__(self) -> None:
        for case in self.plan.cases:
            raw = backend_class(case.parameters.backend).capabilities.raw
            self.cases[case.id] = {"parameters": _plain(case), "group": case.group, "raw": raw}

    def totals(self, last: int) -> Mapping[str, Any]:
        """Return seconds of the repetitions that count, up to a block."""
        warmup = self.plan.experiment.warmup
        counted = {
            case: {b: s for b, s in blocks.items() if warmup <= b <= last}
            for case, blocks in self.seconds.items()
        }
        return {"write_total": counted, "read_total": counted}

    def read_seconds(self, case: str) -> float | None:
        """Return the read time of the first repetition; long enough to be read once."""
        return 1.0 if case in self.seconds else None

    def stop(self, cases: Sequence[str], repetitions: int, why: str) -> None:
        """Record that cases have enough repetitions."""

    def leave_out(self, cases: Sequence[str], why: str, limit: str) -> None:  # noqa: ARG002
        """Count the cases that do not run."""
        self.out = len(cases)
        for case in cases:
            del self.cases[case]

    def limit(self, text: str) -> None:
        """Ignore it: the table says how many repetitions there are."""


def _plain(case: Case) -> dict[str, Any]:
    import msgspec

    return dict(msgspec.to_builtins(case.parameters))


def repetition_seconds(case: Case, plan: Plan, machine: Machine, on_root: float) -> float:
    """Return the modelled seconds of a repetition of a case, untimed work included."""
    ranks, cost, p = plan.ranks, plan.costs[case.id], case.parameters
    rate = min(machine.rate, ranks * _OF_A_RANK)
    moving = cost.nbytes / rate
    moving += cost.nbytes / rate if p.cache == "dropped" else cost.nbytes / ranks / _COPIED
    data = 2 * cost.nbytes / ranks / _GENERATED
    files = 2 * cost.files / machine.files
    if p.layout != "file_per_process":
        files += 2 * cost.files / ONE_CLIENT
    define = ranks * _DEFINED if p.layout == "own" else 0.0
    waiting = 3 * _PHASES * math.log2(ranks) * _BARRIER_ROUND + _STEPS * _LATE
    return moving + data + files + define + waiting + on_root + _SETTLED


def simulate(ranks: int, machine: Machine, on_root: float, budget: float) -> dict[str, Any]:
    """Run the schedule of the default experiment over modelled repetitions."""
    plan = make_plan(load_experiment(None, [f"time_budget={budget}"]), ranks)
    experiment = plan.experiment
    record, draw = Modelled(plan), np.random.default_rng(1)
    schedule = Schedule(plan, record)
    following, passed, blocks = schedule.first(), 0.0, 0
    for block in range(experiment.blocks):
        if not following.cases:
            break
        last: dict[str, float] = {}
        cases = [plan.cases[i] for i in following.cases]
        if block == 0:
            cases = [case for part in by_importance(cases) for case in part]
        for case in cases:
            if block == 0 and schedule.leaves_out(case, passed, last):
                continue
            seconds = repetition_seconds(case, plan, machine, on_root) * draw.lognormal(0, 0.1)
            record.seconds.setdefault(case.id, {})[block] = last[case.id] = seconds
            passed += seconds
        blocks += 1
        following = schedule.after(block, passed, last)
    return {
        "ranks": ranks,
        "machine": machine.name,
        "cases": f"{len(record.seconds)} of {len(plan.cases)}",
        "repetitions": blocks - experiment.warmup,
        "measuring, s": round(passed, 1),
        "wall time, s": round(_STARTED + passed + _SUMMED_UP, 1),
        "budget, s": experiment.time_budget,
    }


def main() -> None:
    """Read the command line and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ranks", type=int, nargs="+", default=(1000, 10_000))
    parser.add_argument(
        "--budget", type=float, default=1566, help="seconds (default: those of a 30-minute job)"
    )
    parser.add_argument("--json", type=Path, help="write the rows there as JSON")
    given = parser.parse_args()
    rows = []
    for ranks in given.ranks:
        with tempfile.TemporaryDirectory() as directory:
            root = modelled(ranks, directory)
        on_root = root["gather on rank 0, s"] + root["record on rank 0, s"]
        rows += [simulate(ranks, machine, on_root, given.budget) for machine in MACHINES]
    print("| " + " | ".join(rows[0]) + " |")
    print("| " + " | ".join("---" for _ in rows[0]) + " |")
    for row in rows:
        print("| " + " | ".join(map(str, row.values())) + " |")
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
