"""Workload `planes`: every second plane of an array is read; a pattern that only declares arrays.

It is no part of the program: `tests/parallel/test_worked_changes.py` adds it to a copy.
"""

from pffbench.case import ArrayShape, GivenShape, Parameters
from pffbench.geometry.box import Box
from pffbench.geometry.cut import Grid
from pffbench.workloads.arrays import CaseArrays, Family
from pffbench.workloads.base import Workload


class PlanesParameters(Parameters, frozen=True, kw_only=True, tag="planes"):
    """Parameters of the workload `planes`."""

    #: Shape of the array, which is cut along its first axis.
    shape: GivenShape[ArrayShape]


class Planes(Workload):
    """Each rank writes its part and reads every second plane across the last axis of it."""

    name, summary, parameters_type = "planes", "every second plane of an array", PlanesParameters

    def arrays(self, parameters: PlanesParameters, ranks: int) -> CaseArrays:
        cut = Grid.in_slabs(parameters.shape, ranks)
        return CaseArrays((Family(parameters=parameters, ranks=ranks, cut=cut, read=every_second),))


def every_second(spec, part: Box, rank: int) -> list[Box]:
    *outer, planes = part.shape
    return [Box(part.start, (*outer, -(-planes // 2)), (*(1 for _ in outer), 2))]
