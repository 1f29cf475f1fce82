"""What rank 0 does alone, and all ranks learn of."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pffbench.errors import UserError
from pffbench.parallel.quiet import quiet_barrier
from pffbench.parallel.topology import Team

T = TypeVar("T")


def on_root(team: Team, decide: Callable[[], T]) -> T:
    """Let rank 0 decide and tell all ranks, what it decided or why it refuses; collective."""
    told: tuple[T | None, UserError | None] = (None, None)
    if team.is_root:
        try:
            told = (decide(), None)
        except UserError as error:
            told = (None, error)
        except OSError as error:  # of the machine, not of the program: a path, a limit, a disk
            where = "" if error.filename is None else f"{error.filename}: "
            told = (None, UserError(f"{where}{error.strerror or error}"))
    # Others wait asleep: rank 0 may read a large experiment, and spinning would slow it down.
    quiet_barrier(team.comm)
    decision, refusal = team.comm.bcast(told)
    if refusal is not None:
        raise refusal
    assert decision is not None
    result: T = decision
    return result


def made_by_root(team: Team, make: Callable[[], T]) -> T | None:
    """Let rank 0 make something that only it keeps; collective."""
    kept: list[T] = []

    def make_and_keep() -> bool:
        kept.append(make())
        return True

    on_root(team, make_and_keep)
    return kept[0] if kept else None
