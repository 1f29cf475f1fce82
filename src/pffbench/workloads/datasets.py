"""Workload `datasets`: many datasets of one shape, as in the paper that study 1 repeats."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from pffbench.backends.base import Backend
from pffbench.case import ArrayShape, Count, DataSize, GivenShape, Parameters
from pffbench.geometry.cut import Grid
from pffbench.workloads.arrays import CaseArrays, Family
from pffbench.workloads.attributes import Attributes
from pffbench.workloads.base import CountColumn, PhaseColumn, Workload
from pffbench.workloads.refusals import unfit_chunks, without_attributes
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.write_read import write_read_cycle


class DatasetsParameters(Parameters, frozen=True, kw_only=True, tag="datasets"):
    """Parameters of the workload `datasets`."""

    #: Shape of each dataset. Default with ``source: file``: the shape of the variable.
    shape: GivenShape[ArrayShape | None] = None
    #: Number of datasets in total (strong scaling).
    datasets: DataSize[Count | None] = None
    #: Number of datasets for each rank (weak scaling). One of the two is needed.
    datasets_per_rank: DataSize[Count | None] = None
    #: Number of attributes of each dataset. They are whole numbers, each set and read by a separate
    #: call.
    attributes: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0


class Datasets(Workload):
    """Every rank creates, writes and reads its share of N datasets.

    With ``arrays: per_rank`` a dataset belongs to one rank. With ``arrays: shared`` each dataset
    is cut over all ranks along its first axis.
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
        p = parameters
        assert p.shape is not None
        family = Family(
            parameters=p,
            ranks=ranks,
            cut=Grid.in_slabs(p.shape, ranks),
            name=dataset_name,
            count=p.datasets or (p.datasets_per_rank or 0) * ranks,
            dealt_to=None if p.shares_arrays else ranks,
        )
        return CaseArrays((family,))

    def run(self, repetition: Repetition) -> None:
        write_read_cycle(repetition, attributes=self.attributes(repetition))

    def attributes(self, repetition: Repetition) -> Attributes:
        """Return the attributes of each dataset; none of raw bytes."""
        p = repetition.case.parameters
        assert isinstance(p, DatasetsParameters)
        kept = repetition.backend.capabilities.attributes
        return Attributes(p.attributes if kept else 0)

    def refuse(
        self, parameters: DatasetsParameters, ranks: int, backend: type[Backend]
    ) -> str | None:
        p = parameters
        if p.shape is None:
            return "shape is missing (the shape of each dataset, such as [128, 128])"
        if (p.datasets is None) == (p.datasets_per_rank is None):
            return "give either datasets (in total) or datasets_per_rank"
        (family,) = self.arrays(p, ranks).families
        return unfit_chunks(family) or without_attributes(p.attributes, backend)


def dataset_name(index: int, owner: int | None) -> str:
    """Return the name of a dataset."""
    return f"dataset_{index:06d}"
