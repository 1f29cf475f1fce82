"""The scratch directory of a run: shared by all nodes, or of each node's own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from pffbench.errors import UserError
from pffbench.parallel.collectives import on_root
from pffbench.parallel.topology import Team
from pffbench.run.resources import available_resources
from pffbench.run.runner import repetition_directory
from pffbench.run.space import check_scratch, parent_of_node, part_of_node
from pffbench.run.spec import RunSpec
from pffbench.storage.filesystem import check_parent
from pffbench.storage.ownership import PREFIX
from pffbench.storage.scratch import Scratch


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
            "layout file_per_process in a directory of each node: --set node_local=true"
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


def on_each_node(provenance: Mapping[str, Any]) -> str:
    """Return the remark that files were on each node, with the types of file systems."""
    types = sorted({str(host["scratch"]["type"]) for host in provenance["hosts"]})
    return f"each node had files of its own, on {', '.join(types)} (node_local)"


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
    free = available_resources(team).memory
    parent, why = spec.scratch_parent, None
    if team.is_leader and not team.is_root:  # rank 0 has been checked
        try:
            parent = _checked_parent(team, spec, free)
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


def _checked_parent(team: Team, spec: RunSpec, free: int) -> str:
    """Return this node's parent of the scratch directory, in which its ranks have space."""
    before = f"{spec.scratch_parent}/{PREFIX}" if spec.goes_on else None
    parent, own = parent_of_node(spec.options.scratch, before)
    check_scratch(part_of_node(spec.plan, team), parent, free, keeps=False)
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
