"""Workload `neighbours`: each rank reads what the next one wrote; the worked example of a workload.

It is no part of the program: `tests/parallel/test_worked_changes.py` adds it to a copy.
"""

from __future__ import annotations

from pffbench.backends.base import Backend
from pffbench.case import ArrayShape, Parameters
from pffbench.geometry.cut import Grid
from pffbench.workloads.arrays import CaseArrays, Family
from pffbench.workloads.base import CountColumn, Impossible, Workload
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.write_read import write_read_cycle


class NeighboursParameters(Parameters, frozen=True, kw_only=True, tag="neighbours"):
    """Parameters of the workload `neighbours`."""

    #: Shape of the array that each rank writes.
    shape: ArrayShape


class Neighbours(Workload):
    """Each rank writes one array and reads that of the next rank."""

    name = "neighbours"
    summary = "an array for each rank, read by the rank before it"
    parameters_type = NeighboursParameters
    reads_once = True
    columns = (CountColumn("read calls made", "read", "read", "read_calls"),)

    def arrays(self, parameters: NeighboursParameters, ranks: int) -> CaseArrays:
        family = Family(
            parameters=parameters,
            ranks=ranks,
            cut=Grid(parameters.shape, (1,) * len(parameters.shape)),
            name=lambda index, owner: f"of_rank_{index:06d}",
            count=ranks,
            dealt_to=ranks,
            author=lambda rank: (rank + 1) % ranks,
        )
        return CaseArrays((family,))

    def refuse(
        self, parameters: NeighboursParameters, ranks: int, backend: type[Backend]
    ) -> str | None:
        if (parameters.files_word, parameters.transfer) != ("one-per_rank", "independent"):
            return Impossible(
                "workload neighbours needs files: one, arrays: per_rank and transfer: independent"
            )
        return None

    def run(self, repetition: Repetition) -> None:
        write_read_cycle(repetition)
