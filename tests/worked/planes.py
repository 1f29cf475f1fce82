"""Workload `planes`: every second plane of arrays is read; a pattern that only declares arrays.

It is no part of the program: `tests/parallel/test_worked_changes.py` adds it to a copy.
"""

from pffbench.case import ArrayShape, GivenShape
from pffbench.geometry.box import Box
from pffbench.geometry.cut import Grid
from pffbench.workloads.arrays import Family
from pffbench.workloads.listed import ArrayWorkload, MappedParameters


class PlanesParameters(MappedParameters, frozen=True, kw_only=True, tag="planes"):
    """Parameters of the workload `planes`."""

    #: Shape of an array, which is cut along its first axis.
    shape: GivenShape[ArrayShape | None] = None


class Planes(ArrayWorkload):
    """Each rank writes its part and reads every second plane across the last axis of it."""

    name, summary, parameters_type = "planes", "every second plane of arrays", PlanesParameters

    def family(self, p: PlanesParameters, ranks: int) -> Family:
        cut = Grid.over(p.map_shape or p.shape, ranks)
        return Family(parameters=p, ranks=ranks, cut=cut, count=p.number, read=every_second)


def every_second(spec, part: Box, rank: int) -> list[Box]:
    return [part.every_second()]
