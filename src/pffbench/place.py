"""Where a run makes its files: one directory, the same on all nodes."""

from __future__ import annotations

from pathlib import Path

from pffbench.decided import Decided
from pffbench.errors import UserError
from pffbench.parallel.root import on_root
from pffbench.parallel.topology import Team
from pffbench.runner import repetition_directory
from pffbench.storage.scratch import Scratch


def make_scratch(team: Team, decided: Decided) -> Scratch:
    """Make the scratch directory on rank 0 and see that every node sees it; collective."""
    made = on_root(team, lambda: _made_on_root(decided))
    blind = None
    try:
        Scratch.attach(made.directory, made.run_id)
    except (UserError, OSError):
        blind = team.topology.hosts[team.rank]
    hosts = sorted({host for host in team.comm.allgather(blind) if host is not None})
    if hosts:
        if team.is_root and not decided.kept:
            made.destroy()
        raise UserError(
            f"--scratch {decided.scratch_parent}: not the same directory on {', '.join(hosts)} as "
            f"on {team.topology.hosts[0]}; choose one that all nodes share"
        )
    return made


def _made_on_root(decided: Decided) -> Scratch:
    parent, own = decided.scratch_parent, decided.own_scratch_parent
    if not decided.goes_on:
        kept_for = decided.out if decided.stage == "write" else ""
        return Scratch.create(parent, decided.run_id, create_parent=own, kept_for=kept_for)
    kept_for = "" if decided.stage == "all" else decided.out
    keep = {repetition_directory(*key) for key in decided.kept}
    return Scratch.take_over(
        parent, decided.run_id, create_parent=own, keep=keep, kept_for=kept_for
    )


def destroy_scratch(scratch: Scratch, decided: Decided) -> str | None:
    """Remove the scratch directory; say what could not be removed, since results are safe."""
    try:
        scratch.destroy()
        if decided.own_scratch_parent:
            Path(decided.scratch_parent).rmdir()
    except (OSError, UserError) as error:
        if Path(scratch.directory).exists():
            return f"could not remove {scratch.directory}: {error}"
    return None
