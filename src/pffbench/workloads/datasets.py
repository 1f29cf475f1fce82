"""Workload `datasets`: many datasets of one shape, as in the paper that study 1 repeats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Annotated, ClassVar

import msgspec

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Backend, Cuts
from pffbench.case import ArrayShape, Count, Parameters, itemsize
from pffbench.parallel.decomposition import Box, GlobalArray
from pffbench.workloads.attributes import Attributes
from pffbench.workloads.base import (
    CaseTotals,
    CountColumn,
    PhaseColumn,
    Workload,
    illegal_chunks,
    make_spec,
    taking_part,
)
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.transfers import Access
from pffbench.workloads.write_read import write_read_cycle


class DatasetsParameters(Parameters, frozen=True, kw_only=True, tag="datasets"):
    """Parameters of the workload `datasets`.

    Parameters
    ----------
    shape : list of int, optional
        Shape of each dataset. Default with ``source: file``: the shape of the variable.
    datasets : int, optional
        Number of datasets in total (strong scaling).
    datasets_per_rank : int, optional
        Number of datasets for each rank (weak scaling). One of the two is needed.
    attributes : int
        Number of attributes of each dataset. They are whole numbers, each set and read by a
        separate call.
    """

    shape: ArrayShape | None = None
    datasets: Count | None = None
    datasets_per_rank: Count | None = None
    attributes: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0


class Datasets(Workload):
    """Every rank creates, writes and reads its share of N datasets.

    In the layouts ``file_per_process`` and ``own`` a dataset belongs to one rank; with
    ``shared`` each dataset is cut over all ranks along its first axis.
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

    def arrays(self, parameters: DatasetsParameters, ranks: int, rank: int) -> list[ArraySpec]:
        everything = range(self._total(parameters, ranks))
        numbers = self._numbers(parameters, ranks, rank) if parameters.alone else everything
        owner_of = None if parameters.layout == "shared" else self._owners(parameters, ranks)
        return list(self._specs(parameters, ranks, numbers, owner_of))

    def kinds(self, parameters: DatasetsParameters, ranks: int) -> list[ArraySpec]:
        owner_of = None if parameters.layout == "shared" else [0]
        return list(self._specs(parameters, ranks, range(1), owner_of))

    def largest_write(self, parameters: DatasetsParameters, ranks: int) -> int:
        (spec,) = self.kinds(parameters, ranks)
        return self._box(spec, ranks, 0).size * itemsize(spec.dtype)

    def _specs(
        self,
        parameters: DatasetsParameters,
        ranks: int,
        numbers: range,
        owner_of: Sequence[int] | None,
    ) -> Iterator[ArraySpec]:
        shape = parameters.shape
        assert shape is not None
        shared = owner_of is None
        block = GlobalArray.in_slabs(shape, ranks).part(0).shape if shared else shape
        nbytes = prod(shape) * parameters.itemsize
        for place, number in enumerate(numbers):
            yield make_spec(
                parameters,
                f"dataset_{number:06d}",
                shape,
                number=number,
                offset=place * nbytes,
                owner=None if owner_of is None else owner_of[number],
                block=block,
            )

    def writes(self, parameters: DatasetsParameters, ranks: int, rank: int) -> list[Access]:
        specs = self.arrays(parameters, ranks, rank)
        return [
            Access(spec, self._box(spec, ranks, rank))
            for spec in taking_part(specs, parameters, rank)
        ]

    def _box(self, spec: ArraySpec, ranks: int, rank: int) -> Box:
        if spec.owner is None:
            return GlobalArray.in_slabs(spec.shape, ranks).part(rank)
        mine = spec.owner == rank
        return spec.whole if mine else Box(spec.whole.start, (0,) * len(spec.shape))

    def cuts(self, parameters: DatasetsParameters, ranks: int) -> Cuts:
        shape = parameters.shape
        assert shape is not None
        return GlobalArray.in_slabs(shape, ranks).boundaries

    def volume(self, parameters: DatasetsParameters, ranks: int) -> CaseTotals:
        total = self._total(parameters, ranks)
        assert parameters.shape is not None
        size = parameters.itemsize
        return CaseTotals(total, total * prod(parameters.shape) * size)

    def run(self, repetition: Repetition) -> None:
        write_read_cycle(repetition, attributes=self.attributes(repetition))

    def attributes(self, repetition: Repetition) -> Attributes:
        """Return the attributes of each dataset; none of raw bytes."""
        p = repetition.case.parameters
        assert isinstance(p, DatasetsParameters)
        kept = repetition.backend.capabilities.attributes
        return Attributes(p.attributes if kept else 0)

    def refuse(self, parameters: DatasetsParameters, backend: type[Backend]) -> str | None:
        has = backend.capabilities
        if parameters.attributes and not has.raw and not has.attributes:
            return f"{backend.name} stores no attributes; leave attributes out"
        return None  # raw bytes bound the formats without them

    def check(self, parameters: DatasetsParameters, ranks: int) -> str | None:
        if parameters.shape is None:
            return "shape is missing (the shape of each dataset, such as [128, 128])"
        if (parameters.datasets is None) == (parameters.datasets_per_rank is None):
            return "give either datasets (in total) or datasets_per_rank"
        return illegal_chunks(parameters, parameters.shape)

    @staticmethod
    def _total(parameters: DatasetsParameters, ranks: int) -> int:
        if parameters.datasets is not None:
            return parameters.datasets
        assert parameters.datasets_per_rank is not None
        return parameters.datasets_per_rank * ranks

    def _numbers(self, parameters: DatasetsParameters, ranks: int, rank: int) -> range:
        total = self._total(parameters, ranks)
        return range(rank * total // ranks, (rank + 1) * total // ranks)

    def _owners(self, parameters: DatasetsParameters, ranks: int) -> list[int]:
        return [r for r in range(ranks) for _ in self._numbers(parameters, ranks, r)]
