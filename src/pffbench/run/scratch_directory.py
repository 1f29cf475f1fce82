"""The scratch directory of a run: where it is, whether a plan fits there, how it is made.

It is shared by all nodes, or each node has one of its own.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

import msgspec

from pffbench.errors import UserError
from pffbench.experiment.plan import Cost, Plan
from pffbench.mpi.collectives import on_root
from pffbench.mpi.topology import Team
from pffbench.run.spec import RunSpec, repetition_directory
from pffbench.storage.filesystem import FileSystem, check_parent, filesystem, quota_left
from pffbench.storage.ownership import PREFIX
from pffbench.storage.scratch import Scratch, scratch_parent
from pffbench.units import Size

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


def check_scratch(plan: Plan, parent: str, free_memory: int) -> None:
    """Reject a plan that exceeds the available resources.

    Parameters
    ----------
    plan : Plan
        Plan of the run.
    parent : str
        Directory on the file system under test.
    free_memory : int
        Bytes available to each rank.

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
    check_room(plan, _room(there, parent, free_memory))


def _room(there: FileSystem, parent: str, free_memory: int) -> AvailableSpace:
    """Return the available space in a directory: free space, or the rest of the user's quota."""
    quota = quota_left(there)
    if quota is None or (quota.space is None and quota.files is None):
        return AvailableSpace(parent, there.free_bytes, there.free_inodes, free_memory)
    space = there.free_bytes if quota.space is None else min(quota.space, there.free_bytes)
    limits = [limit for limit in (quota.files, there.free_inodes) if limit is not None]
    return AvailableSpace(f"{parent} by your quota", space, min(limits, default=None), free_memory)


class AvailableSpace(msgspec.Struct, frozen=True):
    """Space, files and memory available on the machine."""

    #: The directory for the files.
    scratch: str
    #: Bytes and files that fit there; None where the file system does not count files.
    free_space: int
    free_files: int | None
    #: Bytes that each rank may use, on the node with the smallest share for each.
    free_memory: int


def check_room(plan: Plan, room: AvailableSpace) -> None:
    """Refuse an experiment that does not fit on the machine.

    Parameters
    ----------
    plan : Plan
        The plan.
    room : AvailableSpace
        The available resources.

    Raises
    ------
    UserError
        A case needs more space, files or memory than are available.
    """
    if plan.is_staged:
        _check_room_for_all(plan, room)
    for case in plan.cases:
        cost = plan.costs[case.id]
        if cost.space > room.free_space:
            raise UserError(
                f"{case.id} needs about {Size(cost.space)} in {room.scratch}, where "
                f"{Size(room.free_space)} are free; choose smaller shapes or another --scratch"
            )
        if room.free_files is not None and cost.files > room.free_files:
            raise UserError(
                f"{case.id} makes about {cost.files} files in {room.scratch}, where "
                f"{room.free_files} more fit; choose larger chunks or another --scratch"
            )
        if cost.memory > room.free_memory:
            raise UserError(
                f"{case.id} needs about {Size(cost.memory)} of memory on each rank, where "
                f"{Size(room.free_memory)} are free; choose smaller shapes or fewer ranks a node"
            )


def _check_room_for_all(plan: Plan, room: AvailableSpace) -> None:
    rounds, space, files = plan.experiment.rounds, plan.peak_space, plan.peak_files
    kept = f"all {rounds} repetitions of {len(plan.cases)} cases, which another job is to read,"
    if space > room.free_space:
        raise UserError(
            f"{kept} need about {Size(space)} in {room.scratch}, where {Size(room.free_space)} "
            "are free; take fewer repetitions, smaller shapes or another --scratch"
        )
    if room.free_files is not None and files > room.free_files:
        raise UserError(
            f"{kept} are about {files} files in {room.scratch}, where {room.free_files} more fit; "
            "take fewer repetitions, larger chunks or another --scratch"
        )


def create_scratch(team: Team, spec: RunSpec) -> Scratch:
    """Create the scratch directory, or that of each node; collective.

    Raises
    ------
    UserError
        On every rank: it cannot be made, or nodes see it that must not, or do not that must.
    """
    if spec.plan.experiment.node_local:
        return _on_each_node(team, spec)
    made = on_root(team.comm, lambda: _made_at(spec.scratch_parent, spec))
    blind = None
    try:
        Scratch.attach(made.directory, made.run_id)
    except (UserError, OSError):
        blind = team.topology.hosts[team.rank]
    hosts = sorted({host for host in team.comm.allgather(blind) if host is not None})
    if hosts:
        if team.is_root and not spec.kept:
            made.destroy()
        raise UserError(
            f"--scratch {spec.scratch_parent}: not the same directory on {', '.join(hosts)} as "
            f"on {team.topology.hosts[0]}; choose one that all nodes share, or run only cases with "
            "files: per_rank in a directory of each node: --set node_local=true"
        )
    return made


def remove_scratch(scratch: Scratch, spec: RunSpec) -> str | None:
    """Remove the scratch directory; return a message about files that could not be removed."""
    parent = Path(scratch.directory).parent if scratch.node_local else Path(spec.scratch_parent)
    try:
        scratch.destroy()
        if spec.own_scratch_parent:
            parent.rmdir()
    except (OSError, UserError) as error:
        if Path(scratch.directory).exists():
            where = f" on {os.uname().nodename}" if scratch.node_local else ""
            return f"could not remove {scratch.directory}{where}: {error}"
    return None


def _made_at(parent: str, spec: RunSpec) -> Scratch:
    own = spec.own_scratch_parent
    if not spec.goes_on:
        kept_for = spec.out if spec.stage == "write" else ""
        return Scratch.create(parent, spec.run_id, create_parent=own, kept_for=kept_for)
    kept_for = "" if spec.stage == "all" else spec.out
    keep = {repetition_directory(*key) for key in spec.kept}
    return Scratch.take_over(parent, spec.run_id, create_parent=own, keep=keep, kept_for=kept_for)


def _on_each_node(team: Team, spec: RunSpec) -> Scratch:
    """Create a directory on each node after all nodes have been checked; collective."""
    parent, why = spec.scratch_parent, None
    if team.is_leader and not team.is_root:  # rank 0 has been checked
        try:
            parent = _checked_parent(team, spec)
        except (UserError, OSError) as error:
            why = str(error)
    _refuse(team, why)
    made = on_root(team.comm, lambda: _made_at(parent, spec))
    mine: Scratch | None = made if team.is_root else None
    if team.is_leader and not team.is_root:
        try:
            mine = _made_apart(parent, spec)
        except (UserError, OSError) as error:
            why = str(error)
    try:
        _refuse(team, why)
    except UserError:
        if mine is not None and not spec.goes_on:
            mine.destroy()
        raise
    here: Scratch = team.node.bcast(mine)
    return msgspec.structs.replace(here, node_local=True)


def _checked_parent(team: Team, spec: RunSpec) -> str:
    """Return this node's parent of the scratch directory, in which its ranks have space."""
    before = f"{spec.scratch_parent}/{PREFIX}" if spec.goes_on else None
    parent, own = parent_of_node(spec.options.scratch, before)
    if spec.stage != "read":  # the files that are read fill the space already
        check_scratch(part_of_node(spec.plan, team), parent, spec.memory)
    check_parent(Path(os.path.realpath(parent)), own)
    return parent


def _made_apart(parent: str, spec: RunSpec) -> Scratch:
    """Create a directory on a node whose name is not there, as it would be on a shared disk."""
    name = Path(os.path.realpath(parent), PREFIX + spec.run_id)
    if not spec.goes_on and name.exists():
        raise UserError(
            f"--scratch {parent}: nodes share it, and node_local asks for a directory of each "
            "node; leave node_local away, or name a local directory"
        )
    return _made_at(parent, spec)


def _refuse(team: Team, why: str | None) -> None:
    """Raise on all ranks if any has a reason against the directory of its node; collective."""
    said = [(host, text) for host, text in team.comm.allgather((os.uname().nodename, why)) if text]
    if not said:
        return
    host, text = said[0]
    more = f" and {len(said) - 1} more nodes" if len(said) > 1 else ""
    raise UserError(f"{text} (on {host}{more})")
