"""What rank 0 would do, and keep, for 10 000 and 100 000 ranks: the real code, modelled times.

    python benchmarks/scale.py [--ranks 1000 10000 100000] [--json FILE] [--place DIRECTORY]

No MPI process is started. A stand-in for the communicator hands rank 0 what that many ranks would
have sent: seconds drawn from a law (a common time with 10 % noise, and one rank in a thousand three
times as slow), and what they say in words, joined as in a tree. From there on everything is the
code of a run: gathering, statistics, `ranks.h5`, `samples.csv`, `run.json`. The network is not
modelled: bytes and messages are told, not how long they travel.
"""

from __future__ import annotations

import argparse
import json
import pickle
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from jobs import load, machine

from pffbench.case import Case
from pffbench.experiment.check import make_plan
from pffbench.experiment.load import LoadedExperiment, load_experiment
from pffbench.experiment.plan import Plan
from pffbench.parallel.clock import Floor, PhaseTime
from pffbench.parallel.topology import Team, Topology
from pffbench.provenance.binding import rank_facts
from pffbench.record.gather import Conditions, gather
from pffbench.record.progress import Progress
from pffbench.run.recorder import Recorder
from pffbench.run.recording import new_record
from pffbench.storage.durability import Settled
from pffbench.workloads.registry import workload
from pffbench.workloads.repetition import Observed

_PHASES = (
    "create", "define", "write", "flush", "close", "sync",
    "open", "open_array", "read", "close_read", "remove",
)  # fmt: skip
_RANKS_PER_NODE = 128
_REPETITIONS = 5
_BLOCK = 24 * 2**20
#: Processor seconds and page faults of a phase.
_COUNTED = (0.1, 1.0)

Numbers = np.ndarray[Any, Any]


@dataclass
class ModelledRanks:
    """A communicator of which only rank 0 is there; the others' messages are made up.

    Parameters
    ----------
    size : int
        Number of ranks.
    sent : dict of str to int
        Bytes that reached rank 0, by the call that brought them.
    heard : int
        Ranks from which rank 0 heard in the last joining.
    """

    size: int
    rank: int = 0
    sent: dict[str, int] = field(default_factory=dict)
    heard: int = 0

    def Gather(self, here: Numbers, out: Numbers, root: int) -> None:  # noqa: N802, ARG002
        """Put the numbers of all ranks there."""
        draw = np.random.default_rng(1)
        out[:] = here
        noise = draw.lognormal(0, 0.1, (self.size, len(_PHASES)))
        noise[draw.random(self.size) < 1e-3] *= 3
        width = 4 + len(_COUNTED)
        first = out.shape[1] - width * len(_PHASES)
        for kind in (0, 1):  # own and synced seconds
            out[:, first + kind :: width] *= noise
        self.sent["numbers"] = out.nbytes - here.nbytes

    def Reduce(self, here: Numbers, out: Numbers, op: Any, root: int) -> None:  # noqa: N802, ARG002
        """Take the slowest of all to be that of rank 0."""
        out[:] = here

    def reduce(self, told: Any, op: Callable[[Any, Any], Any], root: int) -> Any:  # noqa: ARG002
        """Join what ranks say, as rank 0 hears it in a tree: from 1, 2, 4, … ranks at a time."""
        subtree, others, self.heard, nbytes = told, self.size - 1, 0, 0
        while others > 0:
            message = pickle.dumps(subtree)
            nbytes += len(message)
            told = op(told, pickle.loads(message))
            subtree = op(subtree, subtree)
            others -= 2**self.heard
            self.heard += 1
        self.sent["words"] = nbytes
        return told


def main() -> None:
    """Read the command line and print what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ranks", type=int, nargs="+", default=(1000, 10_000, 100_000))
    parser.add_argument("--place", type=Path, help="directory for the results (default: /tmp)")
    parser.add_argument("--json", type=Path, help="write what was found there as JSON")
    given = parser.parse_args()
    before = load()
    found = []
    for ranks in given.ranks:
        with tempfile.TemporaryDirectory(dir=given.place) as place:
            found.append(modelled(ranks, place))
        print(json.dumps(found[-1], indent=1), flush=True)
    if given.json:
        told = {"facts": machine() | {"load average before": before}, "ranks": found}
        given.json.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def modelled(ranks: int, place: str) -> dict[str, Any]:
    """Return what one number of ranks takes, in seconds and bytes."""
    loaded = load_experiment(None)
    seconds, plan = _timed(lambda: make_plan(loaded, ranks))
    case = next(c for c in plan.cases if c.parameters.layout == "own")
    listing, specs = _timed(lambda: workload("hyperslab").arrays(case.parameters, ranks, 0))
    comm = ModelledRanks(ranks)
    team = Team(comm, SimpleNamespace(size=_RANKS_PER_NODE, rank=0), _topology(ranks))  # type: ignore[arg-type]
    recorder = _recorder(loaded, plan, team, place)
    gathered, recorded = [], []
    for number in range(_REPETITIONS):
        took, repetition = _timed(lambda n=number: _gather(team, case, n))  # type: ignore[misc]
        gathered.append(took)
        assert repetition is not None
        before = _bytes(place)
        recorded.append(_timed(lambda r=repetition: recorder.record(r))[0])  # type: ignore[misc]
        grown = {name: size - before.get(name, 0) for name, size in _bytes(place).items()}
    saving, _ = _timed(lambda: recorder.run_record.save(place))
    return {
        "ranks": ranks,
        "plan of the default experiment, s": seconds,
        "arrays of layout own": len(specs),
        "listing them on each rank, s": listing,
        "numbers to rank 0, bytes": comm.sent["numbers"],
        "words to rank 0, bytes": comm.sent["words"],
        "ranks that it hears words from": comm.heard,
        "gather on rank 0, s": statistics.median(gathered),
        "record on rank 0, s": statistics.median(recorded),
        "ranks.h5 grows by, bytes": grown["ranks.h5"],
        "samples.csv grows by, bytes": grown["samples.csv"],
        "run.json, bytes": _bytes(place)["run.json"],
        "saving run.json, s": saving,
        "peak memory so far, bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    found = call()
    return time.perf_counter() - begin, found


def _topology(ranks: int) -> Topology:
    nodes = tuple(rank // _RANKS_PER_NODE for rank in range(ranks))
    return Topology(tuple(f"node{node:05d}" for node in nodes), nodes)


def _recorder(loaded: LoadedExperiment, plan: Plan, team: Team, place: str) -> Recorder:
    facts = rank_facts()
    provenance = {"ranks": [facts | {"host": host} for host in team.topology.hosts]}
    floor = Floor(1e-5, 1e-5, 5e-8)
    spec: Any = SimpleNamespace(plan=plan, experiment_file=loaded.path, run_id="modelled")
    record = new_record(spec, place, team.topology, floor, {}, provenance)
    return Recorder(place, record, team.topology, floor, 0, Progress())


def _gather(team: Team, case: Case, number: int) -> Any:
    """Gather a repetition in which rank 0 has seen what ranks mostly see."""
    times = [
        PhaseTime(phase, seconds, 1.01 * seconds, _moved(phase), 1, (seconds,), _COUNTED)
        for phase, seconds in zip(_PHASES, _seconds(), strict=True)
    ]
    observed = Observed(verified_bytes=_BLOCK, facts={"hdf5_mode": "contiguous collective"})
    cycle: Any = SimpleNamespace(case=case, clock=SimpleNamespace(times=times), observed=observed)
    conditions = Conditions(Settled(), None, 1.0)
    return gather(team, cycle, number, 0, datetime.now(UTC), 2**28, conditions)


def _seconds() -> Sequence[float]:
    return [1e-3 * (1 + place) for place in range(len(_PHASES))]


def _moved(phase: str) -> int:
    return _BLOCK if phase in ("write", "read") else 0


def _bytes(place: str) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in Path(place).iterdir()}


if __name__ == "__main__":
    main()
