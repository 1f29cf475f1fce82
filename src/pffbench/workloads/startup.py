"""Workload `startup`: all ranks need the same small arrays and their metadata when a job starts.

    create → define → set_attributes → write → flush → close → sync      by rank 0 alone
    open → inquire → get_attributes → read → distribute → close_read     by the strategy

The files are removed at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Literal, cast

import msgspec
from msgspec.structs import replace

from pffbench.backends.base import Backend
from pffbench.case import ArrayShape, Count, DataSize, GivenShape, Parameters, Way
from pffbench.geometry.cut import Everything, Grid
from pffbench.geometry.groups import FileGroups
from pffbench.mpi.delivery import Broadcast, Delivery, SharedMemory
from pffbench.mpi.topology import Team
from pffbench.workloads.arrays import CaseArrays, Family
from pffbench.workloads.attributes import Attributes
from pffbench.workloads.base import Impossible, PhaseColumn, Workload
from pffbench.workloads.datasets import dataset_name
from pffbench.workloads.delivered import Delivered
from pffbench.workloads.refusals import without_attributes
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.specs import illegal_chunks
from pffbench.workloads.write_read import (
    read_repeatedly,
    read_store,
    run_stages,
    write_store,
)

Strategy = Literal[
    "every_rank", "collective", "root_bcast", "node_leader_bcast", "node_leader_shared"
]

#: The delivery of each strategy.
DELIVERIES: Mapping[str, Callable[[Team], Delivery]] = {
    "every_rank": lambda team: Delivery(),
    "collective": lambda team: Delivery(),
    "root_bcast": lambda team: Broadcast(team.comm),
    "node_leader_bcast": lambda team: Broadcast(team.node),
    "node_leader_shared": lambda team: SharedMemory(team.node),
}


class StartupParameters(Parameters, frozen=True, kw_only=True, tag="startup"):
    """Parameters of the workload `startup`."""

    #: Shape of each array. Default with ``source: file``: the shape of the variable.
    shape: GivenShape[ArrayShape | None] = None
    #: Number of arrays in the store. All ranks need all of them.
    datasets: DataSize[Count] = 1
    #: Number of attributes of each array. They are whole numbers, each read by a separate call.
    attributes: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0
    #: Way of the arrays into the memory of all ranks. ``every_rank``: each opens the store and
    #: reads. ``collective``: all open the file together, and read with ``transfer``.
    #: ``root_bcast``: rank 0 reads and broadcasts. ``node_leader_bcast``: the first rank of each
    #: node reads and broadcasts on its node. ``node_leader_shared``: it reads into memory that the
    #: ranks of its node share.
    strategy: Way[Strategy] = "every_rank"

    @property
    def shares_files(self) -> bool:
        return self.strategy == "collective"

    def groups(self, ranks: int) -> FileGroups:
        # Rank 0 has the file to itself while it writes.
        return FileGroups(1, ranks, alone=True) if self.alone else super().groups(ranks)


class StartOfJob(Workload):
    """One rank writes a store of small arrays; then all ranks get all of them.

    What is written is the same for all strategies: a store that one rank made alone.
    """

    name = "startup"
    columns = (
        PhaseColumn("open", "read", "open"),
        PhaseColumn(
            "inquire",
            "read",
            "inquire",
            legend="MiB/s of reading: what all ranks have in memory in the end, read or received",
        ),
        PhaseColumn("distribute", "read", "distribute"),
    )
    summary = "small arrays for all ranks at job start: read by each, or read once and passed on"
    parameters_type = StartupParameters

    def arrays(self, parameters: StartupParameters, ranks: int) -> CaseArrays:
        """Return the arrays: rank 0 writes them, and every rank reads all of them."""
        p = parameters
        assert p.shape is not None
        family = Family(
            parameters=p,
            ranks=ranks,
            cut=Grid(p.shape, (1,) * len(p.shape)),
            name=dataset_name,
            count=p.datasets,
            dealt_to=1,
            reading=(Everything(),),
        )
        return CaseArrays((family,))

    def run(self, repetition: Repetition) -> None:
        """Let rank 0 write the store, then bring it into the memory of all ranks."""
        p = cast(StartupParameters, repetition.subject.parameters)
        kept = repetition.subject.backend.capabilities.attributes
        attributes = Attributes(p.attributes if kept else 0)
        reading = repetition.with_parameters(replace(p, files="per_rank"))
        way = DELIVERIES[p.strategy]
        reading = replace(reading, route=partial(Delivered, way=way, attributes=attributes))
        serial = replace(reading.subject.parameters, transfer="independent")

        def write() -> set[str]:
            return write_store(reading.with_parameters(serial), attributes=attributes)

        def read() -> None:
            read_store(reading, attributes=attributes)

        run_stages(reading, write, partial(read_repeatedly, reading, read))

    def refuse(
        self, parameters: StartupParameters, ranks: int, backend: type[Backend]
    ) -> str | None:
        p = parameters
        if p.shape is None:
            return "shape is missing (the shape of each array, such as [1024])"
        if p.files_word != "one-shared":
            return "all ranks need the arrays of one store; use files: one and arrays: shared"
        if p.cache == "shifted":
            return "cache: shifted reads the partner's part, and here all ranks need everything"
        if p.transfer == "collective" and p.strategy != "collective":
            return f"transfer: collective needs strategy: collective, not {p.strategy}"
        if reason := illegal_chunks(p, p.shape):
            return reason
        if p.strategy == "collective" and "collective" not in backend.capabilities.transfers:
            return Impossible(
                f"backend {backend.name} opens no store collectively (strategy: collective)"
            )
        return without_attributes(p.attributes, backend)
