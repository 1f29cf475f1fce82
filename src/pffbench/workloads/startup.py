"""Workload `startup`: all ranks need the same small arrays and their metadata when a job starts.

    create → define → set_attributes → write → flush → close → sync      by rank 0 alone
    open → inquire → get_attributes → read → distribute → close_read     by the strategy

The files are removed at the end.
"""

from __future__ import annotations

from math import prod
from typing import Annotated, ClassVar, Literal, cast

import msgspec
from msgspec.structs import replace

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Backend, Cuts
from pffbench.backends.null import Null, NullOptions
from pffbench.case import ArrayShape, Count, Parameters
from pffbench.workloads.attributes import Attributes
from pffbench.workloads.base import (
    CaseTotals,
    PhaseColumn,
    Workload,
    illegal_chunks,
    make_spec,
)
from pffbench.workloads.read_proof import forget_data
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.startup_read import read_everything
from pffbench.workloads.transfers import Access
from pffbench.workloads.write_read import run_stages, write_store

Strategy = Literal[
    "every_rank", "collective", "root_bcast", "node_leader_bcast", "node_leader_shared"
]


class StartupParameters(Parameters, frozen=True, kw_only=True, tag="startup"):
    """Parameters of the workload `startup`.

    Parameters
    ----------
    shape : list of int, optional
        Shape of each array. Default with ``source: file``: the shape of the variable.
    datasets : int
        Number of arrays in the store. All ranks need all of them.
    attributes : int
        Number of attributes of each array. They are whole numbers, each read by a separate call.
    strategy : {"every_rank", "collective", "root_bcast", "node_leader_bcast", \
"node_leader_shared"}
        Way of the arrays into the memory of all ranks. ``every_rank``: each opens the store and
        reads. ``collective``: all open the file together, and read with ``transfer``.
        ``root_bcast``: rank 0 reads and broadcasts. ``node_leader_bcast``: the first rank of each
        node reads and broadcasts on its node. ``node_leader_shared``: it reads into memory that the
        ranks of its node share.
    """

    shape: ArrayShape | None = None
    datasets: Count = 1
    attributes: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0
    strategy: Strategy = "every_rank"

    ways: ClassVar[frozenset[str]] = Parameters.ways | {"strategy"}

    @property
    def shares_files(self) -> bool:
        return self.strategy == "collective"


class StartOfJob(Workload):
    """One rank writes a store of small arrays; then all ranks get all of them.

    What is written is the same for all strategies: a store that one rank made alone.
    """

    name = "startup"
    cuts_arrays = False
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

    def arrays(self, parameters: StartupParameters, ranks: int, rank: int) -> list[ArraySpec]:
        """Return the arrays, all of rank 0; where it is alone with the store the others have none.

        The store is made as a file of one rank, see `_alone`.
        """
        p, shape = parameters, parameters.shape
        assert shape is not None
        if p.alone and rank:
            return []
        nbytes = prod(shape) * p.itemsize
        return [
            make_spec(
                p,
                f"dataset_{number:06d}",
                shape,
                number=number,
                offset=number * nbytes,
                owner=0,
                block=shape,
            )
            for number in range(p.datasets)
        ]

    def writes(self, parameters: StartupParameters, ranks: int, rank: int) -> list[Access]:
        return [] if rank else self.reads(parameters, ranks, rank)

    def reads(self, parameters: StartupParameters, ranks: int, rank: int) -> list[Access]:
        """Return what each rank needs: everything, whether it reads itself or not."""
        return [Access(spec, spec.whole) for spec in self.arrays(parameters, ranks, rank)]

    def reads_elsewhere(self, parameters: StartupParameters) -> bool:
        return True

    def cuts(self, parameters: StartupParameters, ranks: int) -> Cuts:
        return ()

    def volume(self, parameters: StartupParameters, ranks: int) -> CaseTotals:
        (spec,) = self.kinds(parameters, ranks)
        return CaseTotals(parameters.datasets, parameters.datasets * spec.nbytes)

    def kinds(self, parameters: StartupParameters, ranks: int) -> list[ArraySpec]:
        return self.arrays(replace(parameters, datasets=1), ranks, 0)

    def largest_write(self, parameters: StartupParameters, ranks: int) -> int:
        (spec,) = self.kinds(parameters, ranks)
        return spec.nbytes

    def held(self, parameters: StartupParameters, ranks: int) -> int:
        return self.volume(parameters, ranks).nbytes

    def run(self, repetition: Repetition) -> None:
        """Let rank 0 write the store, then bring it into the memory of all ranks."""
        p = cast(StartupParameters, repetition.case.parameters)
        kept = repetition.backend.capabilities.attributes
        attributes = Attributes(p.attributes if kept else 0)
        alone = _alone(repetition)
        # The other ranks make the same steps with a backend that keeps nothing.
        idle = Null(NullOptions(), p.settings)
        keeper = alone if repetition.team.is_root else replace(alone, backend=idle)

        def read() -> None:
            for number in range(repetition.reads):
                forget_data(repetition)
                counted = repetition.clock.counts and number == 0
                path = alone.path_of(0)
                read_everything(repetition, path, p.strategy, attributes, counted=counted)
            repetition.observed.reads = repetition.reads

        run_stages(keeper, lambda: write_store(keeper, attributes=attributes), read, reading=keeper)

    def check(self, parameters: StartupParameters, ranks: int) -> str | None:
        p = parameters
        if p.shape is None:
            return "shape is missing (the shape of each array, such as [1024])"
        if p.layout != "shared":
            return f"layout {p.layout}: all ranks need the arrays of one store (layout: shared)"
        if p.cache == "shifted":
            return "cache: shifted reads the partner's part, and here all ranks need everything"
        if p.transfer == "collective" and p.strategy != "collective":
            return f"transfer: collective needs strategy: collective, not {p.strategy}"
        return illegal_chunks(p, p.shape)

    def refuse(self, parameters: StartupParameters, backend: type[Backend]) -> str | None:
        p, can = parameters, backend.capabilities
        if p.strategy == "collective" and "collective" not in can.transfers:
            return f"backend {backend.name} opens no store collectively (strategy: collective)"
        if p.attributes and not can.raw and not can.attributes:
            return f"{backend.name} stores no attributes; leave attributes out"
        return None


def _alone(repetition: Repetition) -> Repetition:
    """Return the repetition as rank 0 writes the store: a file that it has to itself."""
    p = replace(repetition.case.parameters, layout="file_per_process", transfer="independent")
    return repetition.with_parameters(p)
