"""In which order arrays are defined and moved: all defined first, or one after the other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pffbench.backends.base import ArraySpec
from pffbench.workloads.access import Access


@dataclass(frozen=True, slots=True)
class Round:
    """Arrays that are defined, or opened, together, and what this rank then moves of them.

    Parameters
    ----------
    specs : sequence of ArraySpec
        The arrays, those of other ranks included where the store has them; may be empty.
    accesses : sequence of Access
        What this rank moves, one entry a call; may be empty.
    """

    specs: Sequence[ArraySpec]
    accesses: Sequence[Access]


#: Cuts the arrays of a store and a rank's accesses to them into rounds. Phases are collective, so
#: it must give every rank the same number of rounds.
Rounds = Callable[[Sequence[ArraySpec], Sequence[Access]], Iterator[Round]]


def all_at_once(specs: Sequence[ArraySpec], accesses: Sequence[Access]) -> Iterator[Round]:
    """Yield one round of everything: all arrays are defined before the first is moved."""
    yield Round(specs, accesses)


def one_by_one(count: int) -> Rounds:
    """Return what cuts into rounds of one array for each owner.

    The n-th round holds the n-th array of each rank, so that ranks which have arrays of their own
    in a shared file work side by side, and not one after the other. Of arrays that all ranks
    write together a round holds one.

    Parameters
    ----------
    count : int
        Number of rounds, the same on all ranks: the arrays of the rank that has most.
    """

    def cut(specs: Sequence[ArraySpec], accesses: Sequence[Access]) -> Iterator[Round]:
        defined: list[list[ArraySpec]] = [[] for _ in range(count)]
        moved: list[list[Access]] = [[] for _ in range(count)]
        place: dict[str, int] = {}
        seen: dict[int | None, int] = defaultdict(int)
        for spec in specs:
            place[spec.name] = seen[spec.owner]
            defined[seen[spec.owner]].append(spec)
            seen[spec.owner] += 1
        for access in accesses:
            moved[place[access.spec.name]].append(access)
        return (Round(*both) for both in zip(defined, moved, strict=True))

    return cut
