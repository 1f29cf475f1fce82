"""In which order arrays are defined and moved: all defined first, or one after the other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pffbench.backends.base import ArraySpec
from pffbench.parallel.extremes import least
from pffbench.workloads.access import Access
from pffbench.workloads.pieces import batches

if TYPE_CHECKING:
    from mpi4py import MPI


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

    @property
    def nbytes(self) -> int:
        """Bytes of array data that this rank moves."""
        return sum(access.nbytes for access in self.accesses)


@dataclass(frozen=True, slots=True)
class Turn:
    """What is moved by one phase: a round, or a part of one that does not fit in memory.

    Parameters
    ----------
    round : Round
        The round.
    accesses : sequence of Access
        What of it is moved now.
    first, last : bool
        Whether it begins and ends the round.
    """

    round: Round
    accesses: Sequence[Access]
    first: bool = True
    last: bool = True


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


def turns(comm: MPI.Intracomm, rounds: Iterator[Round], memory: int) -> Iterator[Sequence[Turn]]:
    """Group what is moved by what fits in memory together; collective, equal on all ranks.

    Data of a group are made before its first turn and verified after its last one, so that of
    thousands of small rounds each has nothing but its phases.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        The ranks.
    rounds : iterator of Round
        The rounds, as many on each rank.
    memory : int
        Most bytes of a group on a rank, but for a single access that is longer.
    """
    left = list(rounds)
    while left:
        together = least(comm, _fitting(left, memory))
        if together > 1:
            yield [Turn(one, one.accesses) for one in left[:together]]
        else:
            parts = list(batches(comm, left[0].accesses, memory)) or [()]
            for number, part in enumerate(parts, start=1):
                yield [Turn(left[0], part, number == 1, number == len(parts))]
        del left[:together]


def _fitting(rounds: Sequence[Round], memory: int) -> int:
    """Count the rounds at the beginning that fit in memory together, one at least."""
    nbytes = 0
    for number, one in enumerate(rounds):
        nbytes += one.nbytes
        if number and nbytes > memory:
            return number
    return len(rounds)
