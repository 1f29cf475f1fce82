"""Workload `planes`: every second plane of an array is read; a pattern that only declares arrays.

It is no part of the program: `tests/parallel/test_worked_changes.py` adds it to a copy.
"""

from __future__ import annotations

from pffbench.backends.base import Backend
from pffbench.case import ArrayShape, GivenShape, Parameters
from pffbench.geometry.box import Box
from pffbench.geometry.cut import Grid
from pffbench.workloads.arrays import CaseArrays, Family
from pffbench.workloads.base import Workload
from pffbench.workloads.refusals import unfit_chunks
from pffbench.workloads.write_read import write_read_cycle


class PlanesParameters(Parameters, frozen=True, kw_only=True, tag="planes"):
    """Parameters of the workload `planes`.

    Parameters
    ----------
    shape : list of int
        Shape of the array, which is cut along its first axis.
    """

    shape: GivenShape[ArrayShape]


class Planes(Workload):
    """Each rank writes its part and reads every second plane across the last axis of it."""

    name = "planes"
    summary = "every second plane of an array"
    parameters_type = PlanesParameters

    def arrays(self, parameters: PlanesParameters, ranks: int) -> CaseArrays:
        cut = Grid.in_slabs(parameters.shape, ranks)
        family = Family(parameters=parameters, ranks=ranks, cut=cut, name=_name, read=_every_second)
        return CaseArrays((family,))

    def refuse(
        self, parameters: PlanesParameters, ranks: int, backend: type[Backend]
    ) -> str | None:
        return unfit_chunks(self.arrays(parameters, ranks).families[0])

    def run(self, repetition) -> None:
        write_read_cycle(repetition)


def _name(index: int, owner: int | None) -> str:
    return "volume" if owner is None else f"volume_{owner:06d}"


def _every_second(spec, part: Box, rank: int) -> list[Box]:
    *outer, planes = part.shape
    return [Box(part.start, (*outer, -(-planes // 2)), (*(1 for _ in outer), 2))]
