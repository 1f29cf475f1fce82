"""Workload `datasets`: many datasets of one shape, as in the paper that study 1 repeats."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec
from msgspec.structs import replace

from pffbench.backends.base import Backend
from pffbench.case import ArrayShape, Count, DataSize, GivenShape
from pffbench.geometry.cut import Grid
from pffbench.workloads.arrays import CaseArrays, Family, of_owner
from pffbench.workloads.attributes import Attributes
from pffbench.workloads.base import CountColumn, PhaseColumn
from pffbench.workloads.irregular import MapFile
from pffbench.workloads.listed import ArrayParameters, ArrayWorkload, MappedArray, OneOrMore
from pffbench.workloads.refusals import without_attributes
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.write_read import write_read_cycle


class DatasetsParameters(ArrayParameters, frozen=True, kw_only=True, tag="datasets"):
    """Parameters of the workload `datasets`."""

    #: Shape of each dataset. Default with ``source: file``: the shape of the variable. A
    #: decomposition map has its own shape.
    shape: GivenShape[ArrayShape | None] = None
    #: Number of datasets in total (strong scaling). Or a list of datasets that differ, which are
    #: written in this order.
    datasets: DataSize[Count | Annotated[tuple[MappedArray, ...], OneOrMore] | None] = None
    #: Number of datasets for each rank (weak scaling). One of the two is needed.
    datasets_per_rank: DataSize[Count | None] = None
    #: A map of the stretches of the flattened array that each process has, as of the workload
    #: `hyperslab`.
    decomposition: MapFile | None = None
    #: Number of attributes of each dataset. They are whole numbers, each set and read by a separate
    #: call.
    attributes: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0


class Datasets(ArrayWorkload):
    """Every rank creates, writes and reads its share of N datasets.

    With ``arrays: per_rank`` a dataset belongs to one rank. With ``arrays: shared`` each dataset
    is cut over all ranks along its first axis. A map cuts each dataset in both cases.
    """

    name = "datasets"
    # Closing and flushing are one call of the file for all arrays.
    columns: ClassVar[tuple[PhaseColumn | CountColumn, ...]] = (
        PhaseColumn("define", "write", "define", "array"),
        PhaseColumn("set", "write", "set_attributes", "call"),
        PhaseColumn("write", "write", "write", "array"),
        PhaseColumn("flush", "write", "flush", "array"),
        PhaseColumn("close", "write", "close", "array"),
        PhaseColumn("open", "read", "open_array", "array"),
        PhaseColumn("get", "read", "get_attributes", "call"),
        PhaseColumn("read", "read", "read", "array"),
        PhaseColumn("close", "read", "close_read", "array"),
    )
    summary = "N datasets of one shape, whole or cut over the ranks"
    parameters_type = DatasetsParameters
    reads_once = True

    def arrays(self, parameters: DatasetsParameters, ranks: int) -> CaseArrays:
        """Return the arrays; those of a list are dealt to ranks together."""
        found = super().arrays(parameters, ranks)
        dealt = sum(family.count for family in found.families)
        return CaseArrays(tuple(replace(family, dealt=dealt) for family in found.families))

    def family(self, p: DatasetsParameters, ranks: int) -> Family:
        shape, dealt = p.map_shape or p.shape, not p.shares_arrays and p.map_file is None
        assert shape is not None
        return Family(
            parameters=p,
            ranks=ranks,
            cut=Grid.over(shape, ranks),
            name=dataset_name if dealt else _name_of_part,
            count=p.number if p.datasets_per_rank is None else p.datasets_per_rank * ranks,
            dealt_to=ranks if dealt else None,
        )

    def run(self, repetition: Repetition) -> None:
        write_read_cycle(repetition, attributes=self.attributes(repetition))

    def attributes(self, repetition: Repetition) -> Attributes:
        """Return the attributes of each dataset; none of raw bytes."""
        p = repetition.subject.parameters
        assert isinstance(p, DatasetsParameters)
        kept = repetition.subject.backend.capabilities.attributes
        return Attributes(p.attributes if kept else 0)

    def refuse(
        self, parameters: DatasetsParameters, ranks: int, backend: type[Backend]
    ) -> str | None:
        p = parameters
        if (p.datasets is None) == (p.datasets_per_rank is None):
            return "give either datasets (in total) or datasets_per_rank"
        refused = super().refuse(p, ranks, backend)
        return refused or without_attributes(p.attributes, backend)

    def check(self, p: DatasetsParameters, ranks: int) -> str | None:
        if (p.map_shape or p.shape) is None:
            return "shape is missing (the shape of each dataset, such as [128, 128])"
        return None


def dataset_name(index: int, owner: int | None) -> str:
    """Return the name of a dataset."""
    return f"dataset_{index:06d}"


def _name_of_part(index: int, owner: int | None) -> str:
    return dataset_name(index, owner) + of_owner(owner)
