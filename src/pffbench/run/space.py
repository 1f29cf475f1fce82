"""Space of a plan in the scratch directory, of all nodes or of each one."""

from __future__ import annotations

import math
import os
import re

import msgspec

from pffbench.errors import UserError
from pffbench.experiment.plan import AvailableSpace, Cost, Plan, check_room
from pffbench.parallel.topology import Team
from pffbench.storage.filesystem import FileSystem, filesystem, quota_left
from pffbench.storage.scratch import scratch_parent

_VARIABLE = re.compile(r"\$\{?(\w+)")


def parent_of_node(given: str | None, before: str | None = None) -> tuple[str, bool]:
    """Return this node's directory for its scratch directory, and whether it may be created.

    Environment variables in the path have their value on this node.

    Parameters
    ----------
    given, before
        As for `pffbench.storage.scratch.scratch_parent`.

    Raises
    ------
    UserError
        A variable in the path is not set on this node.
    """
    named, own = scratch_parent(given, before)
    path = os.path.expandvars(named)
    if missing := _VARIABLE.search(path):
        raise UserError(f"--scratch {named}: the variable {missing[1]} is not set")
    return path, own


def part_of_node(plan: Plan, team: Team) -> Plan:
    """Return a plan with the space and files of the ranks of this node alone."""
    part = team.node.size / team.size

    def here(cost: Cost) -> Cost:
        space, files = math.ceil(cost.space * part), math.ceil(cost.files * part)
        return msgspec.structs.replace(cost, space=space, files=files)

    costs = {case: here(cost) for case, cost in plan.costs.items()}
    return msgspec.structs.replace(plan, costs=costs)


def check_scratch(plan: Plan, parent: str, free_memory: int, *, keeps: bool) -> None:
    """Reject a plan that exceeds the available resources.

    Parameters
    ----------
    plan : Plan
        Plan of the run.
    parent : str
        Directory on the file system under test.
    free_memory : int
        Bytes available to each rank.
    keeps : bool
        Whether the files of all repetitions are kept, instead of one at a time.

    Raises
    ------
    UserError
        Space, files or memory do not suffice, or the cache cannot be dropped there.
    """
    try:
        there = filesystem(parent)
    except OSError as error:
        raise UserError(f"--scratch {parent}: cannot be reached: {error.strerror}") from None
    if there.in_memory and any(c.parameters.cache == "dropped" for c in plan.cases):
        raise UserError(
            f"--scratch {parent}: cache: dropped is impossible on {there.type}, which lives in "
            "memory; choose a directory on a disk"
        )
    check_room(plan, _room(there, parent, free_memory), keeps=keeps)


def _room(there: FileSystem, parent: str, free_memory: int) -> AvailableSpace:
    """Return the available space in a directory: free space, or the rest of the user's quota."""
    quota = quota_left(there)
    if quota is None or (quota.space is None and quota.files is None):
        return AvailableSpace(parent, there.free_bytes, there.free_inodes, free_memory)
    space = there.free_bytes if quota.space is None else min(quota.space, there.free_bytes)
    limits = [limit for limit in (quota.files, there.free_inodes) if limit is not None]
    return AvailableSpace(f"{parent} by your quota", space, min(limits, default=None), free_memory)
