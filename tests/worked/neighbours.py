"""Workload `neighbours`: each rank reads what the next one wrote; the worked example of a workload.

It is no part of the program: `tests/parallel/test_worked_changes.py` adds it to a copy.
"""

from __future__ import annotations

from math import prod

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Backend, Cuts
from pffbench.case import ArrayShape, Parameters, itemsize
from pffbench.workloads.base import CaseTotals, CountColumn, Workload, make_spec
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.transfers import Access
from pffbench.workloads.write_read import write_read_cycle


class NeighboursParameters(Parameters, frozen=True, kw_only=True, tag="neighbours"):
    """Parameters of the workload `neighbours`.

    Parameters
    ----------
    shape : list of int
        Shape of the array that each rank writes.
    """

    shape: ArrayShape


class Neighbours(Workload):
    """Each rank writes one array and reads that of the next rank."""

    name = "neighbours"
    summary = "an array for each rank, read by the rank before it"
    parameters_type = NeighboursParameters
    reads_once = True
    columns = (CountColumn("read calls made", "read", "read", "read_calls"),)

    def arrays(self, parameters: NeighboursParameters, ranks: int, rank: int) -> list[ArraySpec]:
        size = prod(parameters.shape) * itemsize(parameters.dtype or "float32")
        return [
            make_spec(
                parameters,
                f"of_rank_{number:06d}",
                parameters.shape,
                number=number,
                offset=number * size,
                owner=number,
                block=parameters.shape,
            )
            for number in range(ranks)
        ]

    def writes(self, parameters: NeighboursParameters, ranks: int, rank: int) -> list[Access]:
        spec = self.arrays(parameters, ranks, rank)[rank]
        return [Access(spec, spec.whole)]

    def reads(self, parameters: NeighboursParameters, ranks: int, rank: int) -> list[Access]:
        return self.writes(parameters, ranks, (rank + 1) % ranks)

    def reads_elsewhere(self, parameters: NeighboursParameters) -> bool:
        return True

    def cuts(self, parameters: NeighboursParameters, ranks: int) -> Cuts:
        return ((),) * len(parameters.shape)

    def volume(self, parameters: NeighboursParameters, ranks: int) -> CaseTotals:
        size = prod(parameters.shape) * itemsize(parameters.dtype or "float32")
        return CaseTotals(ranks, ranks * size)

    def refuse(self, parameters: NeighboursParameters, backend: type[Backend]) -> str | None:
        if (parameters.layout, parameters.transfer) != ("own", "independent"):
            return "workload neighbours needs layout own and transfer independent"
        return None

    def run(self, repetition: Repetition) -> None:
        write_read_cycle(repetition)
