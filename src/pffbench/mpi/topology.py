"""Topology: ranks that share a node, and the rank that reads another node's data."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Hashable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar, cast

import msgspec

from pffbench.geometry.groups import FileGroups
from pffbench.mpi.single import mpi_of

if TYPE_CHECKING:
    from mpi4py import MPI

T = TypeVar("T", bound=Hashable)


class Topology(msgspec.Struct, frozen=True, dict=True):
    """The ranks of a job and the nodes that they run on; equal on all ranks."""

    #: Host name of every rank.
    hosts: tuple[str, ...]
    #: Node number of every rank: ranks with the same number share memory and page cache.
    nodes: tuple[int, ...]

    @classmethod
    def even(cls, ranks: int, nodes: int) -> Topology:
        """Return blocks of ranks on so many nodes, as even as they can be."""
        numbers = tuple(rank * nodes // ranks for rank in range(ranks))
        return cls(tuple(f"node{number}" for number in numbers), numbers)

    def part(self, ranks: range) -> Topology:
        """Return the topology of some of the ranks, which are numbered from 0."""
        return Topology(self.hosts[ranks.start : ranks.stop], self.nodes[ranks.start : ranks.stop])

    @property
    def size(self) -> int:
        """Number of ranks."""
        return len(self.nodes)

    @property
    def node_count(self) -> int:
        """Number of nodes."""
        return len(set(self.nodes))

    @property
    def ranks_per_node(self) -> tuple[int, ...]:
        """Number of ranks on each node, in the order of the nodes' numbers."""
        counted = Counter(self.nodes)
        return tuple(counted[node] for node in sorted(counted))

    @cached_property
    def partners(self) -> tuple[int, ...]:
        """For every rank the rank whose data it reads in the cache state ``shifted``.

        Ranks are ordered by node and shifted by the largest number of ranks on one node, so
        with equally filled nodes the partner always sits on the next node. On one node the
        shift is by one rank: another writer, but the same page cache.
        """
        order = sorted(range(self.size), key=lambda r: (self.nodes[r], r))
        shift = max(self.ranks_per_node) if self.node_count > 1 else 1
        found = [0] * self.size
        for place, rank in enumerate(order):
            found[rank] = order[(place + shift) % self.size]
        return tuple(found)


class Team(msgspec.Struct, frozen=True):
    """A job's communicator with that of this rank's node."""

    #: All ranks of the job.
    comm: MPI.Intracomm
    #: The ranks on this rank's node.
    node: MPI.Comm
    #: The node of each rank.
    topology: Topology
    #: Communicators that have been made, by what they are for; None where this rank has no part.
    split: dict[Hashable, MPI.Intracomm | None] = msgspec.field(default_factory=dict)

    @classmethod
    def of(cls, comm: MPI.Intracomm) -> Team:
        """Find which ranks share a node; collective."""
        node = comm.Split_type(mpi_of(comm).COMM_TYPE_SHARED, key=comm.rank)
        leader = node.bcast(comm.rank, root=0)
        placed = comm.allgather((os.uname().nodename, leader))
        numbers = {lead: i for i, lead in enumerate(sorted({lead for _, lead in placed}))}
        topology = Topology(
            hosts=tuple(host for host, _ in placed),
            nodes=tuple(numbers[lead] for _, lead in placed),
        )
        return cls(comm, node, topology)

    @property
    def rank(self) -> int:
        """The number of this rank."""
        return int(self.comm.rank)

    @property
    def size(self) -> int:
        """Number of ranks."""
        return int(self.comm.size)

    @property
    def is_root(self) -> bool:
        """Whether this is rank 0, which gathers and records."""
        return self.rank == 0

    @property
    def is_leader(self) -> bool:
        """Whether this is the lowest rank of its node."""
        return bool(self.node.rank == 0)

    def of_file(self, groups: FileGroups, *, shifted: bool = False) -> MPI.Intracomm:
        """Return the communicator of the ranks that have a file open together.

        Collective over all ranks when it is called with these arguments for the first time.

        Parameters
        ----------
        groups : FileGroups
            Which ranks share a file.
        shifted : bool
            Whether each rank opens the file of its partner, see `Topology.partners`.
        """
        if groups.files == 1:
            return self.comm
        if (groups, shifted) not in self.split:
            author = self.topology.partners[self.rank] if shifted else self.rank
            made = cast("MPI.Intracomm", self.comm.Split(groups.index(author), author))
            self.split[groups, shifted] = made
        return cast("MPI.Intracomm", self.split[groups, shifted])

    def of_writers(self, groups: FileGroups, writers: tuple[int, ...]) -> MPI.Intracomm | None:
        """Return the communicator of the writers of a file, in their order; None on other ranks.

        Collective over the ranks of a file when it is called with these for the first time.

        Parameters
        ----------
        groups : FileGroups
            Which ranks share a file.
        writers : tuple of int
            Numbers of the writers in the communicator of the file.
        """
        if (groups, writers) not in self.split:
            comm = self.of_file(groups)
            inside = comm.rank in writers
            color = 0 if inside else mpi_of(comm).UNDEFINED
            made = comm.Split(color, writers.index(comm.rank) if inside else 0)
            self.split[groups, writers] = cast("MPI.Intracomm", made) if inside else None
        return self.split[groups, writers]

    def keeps(self, *, node_local: bool) -> bool:
        """Whether this rank makes and removes directories: rank 0, or one rank of each node."""
        return self.is_leader if node_local else self.is_root

    def share_on_node(self, items: Iterable[T]) -> list[T]:
        """Distribute the items that any rank of this node named over the node's ranks.

        Each item goes to exactly one rank of the node, so that work on a file that several
        ranks wrote to is done once per node. Collective over the node.
        """
        named = self.node.allgather(list(items))
        return self._mine(named)

    def share_both_on_node(self, these: Iterable[T], those: Iterable[T]) -> tuple[list[T], list[T]]:
        """Distribute items of two kinds at once, each as `share_on_node` does."""
        named = self.node.allgather((list(these), list(those)))
        return self._mine(one for one, _ in named), self._mine(other for _, other in named)

    def _mine(self, named: Iterable[Iterable[T]]) -> list[T]:
        unique = sorted({item for part in named for item in part}, key=str)
        return unique[self.node.rank :: self.node.size]
