"""What a run is to do, decided on rank 0 from the command line before anything is made."""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pffbench.errors import UserError
from pffbench.experiment.check import Plan, make_plan
from pffbench.experiment.cost import Room, check_room
from pffbench.experiment.load import LoadedExperiment, from_data, load_experiment
from pffbench.parallel.topology import Team
from pffbench.results.resume import resumed
from pffbench.storage.filesystem import filesystem, nearest_existing
from pffbench.storage.scratch import scratch_parent


@dataclass(frozen=True)
class Decided:
    """What rank 0 has found out and decided; equal on all ranks."""

    loaded: LoadedExperiment
    plan: Plan
    run_id: str
    scratch_parent: str
    own_scratch_parent: bool
    out: str
    goes_on: bool
    done: frozenset[tuple[str, int]]


def decide(arguments: argparse.Namespace, team: Team, free_memory: int) -> Decided:
    """Look for everything that can be wrong with what is asked for.

    Parameters
    ----------
    arguments : argparse.Namespace
        The command line of `pffbench run`.
    team : Team
        The ranks; nothing here is collective.
    free_memory : int
        Bytes that each rank may take.

    Raises
    ------
    UserError
        Something is wrong; nothing has been made.
    """
    done: frozenset[tuple[str, int]] = frozenset()
    before = None
    if arguments.resume:
        record, done = resumed(arguments.resume, team)
        if arguments.experiment or arguments.overrides:
            raise UserError("--resume goes on with the experiment of the run; it takes no other")
        loaded = from_data(record.experiment, f"{arguments.resume}/run.json")
        run_id, out = record.run_id, str(Path(arguments.resume).absolute())
        before = record.scratch
    else:
        loaded = load_experiment(arguments.experiment, arguments.overrides)
        now = datetime.now(UTC)
        run_id = f"{loaded.experiment.name}-{now:%Y%m%d-%H%M%S}-{os.getpid()}"
        out = _out(arguments.out, run_id)
    plan = make_plan(loaded, team.size)
    parent, own = scratch_parent(arguments.scratch, before)
    check_scratch(plan, parent, free_memory)
    return Decided(loaded, plan, run_id, parent, own, out, before is not None, done)


def _out(given: str | None, name: str) -> str:
    path = Path(given) if given else Path("pffbench-results", name)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UserError(f"--out {path}: already there and not an empty directory; name a new one")
    existing = nearest_existing(str(path.absolute()))
    if not os.access(existing, os.W_OK | os.X_OK):
        raise UserError(f"--out {path}: {existing} is not writable")
    return str(path.absolute())


def check_scratch(plan: Plan, parent: str, free_memory: int) -> None:
    """Refuse a plan for which there is no room.

    Raises
    ------
    UserError
        Space, files or memory are too few, or the cache cannot be dropped there.
    """
    there = filesystem(parent)
    if there.in_memory and any(c.parameters.cache == "dropped" for c in plan.cases):
        raise UserError(
            f"--scratch {parent}: cache: dropped is impossible on {there.type}, which lives in "
            "memory; choose a directory on a disk"
        )
    check_room(plan, Room(parent, there.free_bytes, there.free_inodes, free_memory))
