"""Workload `datasets`: many datasets of one shape, as in the paper that study 1 repeats."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from math import prod
from pathlib import Path
from typing import Annotated, Any, Literal, TextIO

import msgspec

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Backend, Buffer, Call, Cuts, what_was_read
from pffbench.case import ArrayShape, Count, Parameters, itemsize
from pffbench.parallel.decomposition import Box, GlobalArray
from pffbench.workloads.attributes import Attributes
from pffbench.workloads.base import (
    CaseTotals,
    PhaseColumn,
    Workload,
    illegal_chunks,
    make_spec,
    taking_part,
)
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.transfer_phase import Sink, into_memory
from pffbench.workloads.transfers import Access, Rounds, all_at_once, one_by_one
from pffbench.workloads.write_read import write_read_cycle

ReadSink = Literal["buffer", "print"]
#: Destination of printed text, which is discarded.
DEVICE = os.devnull


class DatasetsParameters(Parameters, frozen=True, kw_only=True, tag="datasets"):
    """Parameters of the workload `datasets`.

    Parameters
    ----------
    shape : list of int, optional
        Shape of each dataset; with ``source: file`` that of the variable when not given.
    datasets : int, optional
        Number of datasets in total (strong scaling).
    datasets_per_rank : int, optional
        Number of datasets for each rank (weak scaling). One of the two is needed.
    order : {"create_first", "interleaved"}
        Order of the steps. ``create_first``: all datasets are created, then all written; and all
        opened, then all read. ``interleaved``: each rank creates one dataset and writes it, then
        the next, and opens and reads them likewise; each step is timed separately and added to its
        phase.
    attributes : int
        Number of attributes of each dataset, whole numbers, each set and read by a call of its own.
    read_sink : {"buffer", "print"}
        What is done with data read. ``buffer``: they are read into memory. ``print``: the time of a
        read also holds turning the array into text and printing it, as in a program that times
        ``print(dataset[...])``.
    """

    shape: ArrayShape | None = None
    datasets: Count | None = None
    datasets_per_rank: Count | None = None
    order: Literal["create_first", "interleaved"] = "create_first"
    attributes: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0
    read_sink: ReadSink = "buffer"


class Datasets(Workload):
    """Every rank creates, writes and reads its share of N datasets.

    In the layouts ``file_per_process`` and ``own`` a dataset belongs to one rank; with
    ``shared`` each dataset is cut over all ranks along its first axis.
    """

    name = "datasets"
    # Closing and flushing are one call of the file for all arrays.
    columns = (
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
    summary = "N datasets of one shape, each rank its own or its part of each"
    parameters_type = DatasetsParameters
    places = ("order",)
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
        p = repetition.case.parameters
        assert isinstance(p, DatasetsParameters)
        with open_sink(p.read_sink) as sink:
            rounds = self._rounds(p, repetition.team.size)
            kept = repetition.backend.capabilities.attributes
            write_read_cycle(repetition, rounds, sink, Attributes(p.attributes if kept else 0))

    def _rounds(self, parameters: DatasetsParameters, ranks: int) -> Rounds:
        if parameters.order == "create_first":
            return all_at_once
        total = self._total(parameters, ranks)
        return one_by_one(total if parameters.layout == "shared" else -(-total // ranks))

    def notes(self, parameters: DatasetsParameters) -> tuple[str, ...]:
        printed = "read: each array is turned into text and printed within the time"
        return (printed,) if parameters.read_sink == "print" else ()

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


@contextmanager
def open_sink(kind: ReadSink) -> Iterator[Sink]:
    """Open the destination of reads; entered before the first phase begins.

    Parameters
    ----------
    kind : {"buffer", "print"}
        ``buffer``: memory. ``print``: each array is turned into text and printed as soon as it is
        read, as ``print(dataset[...])`` does, into the null device, at negligible cost.
    """
    if kind == "buffer":
        yield into_memory
        return
    with Path(DEVICE).open("w", encoding="utf-8") as stream:
        yield partial(_printing, stream)


def _printing(stream: TextIO, call: Call, out: Buffer) -> Call:
    def read_and_print() -> Any:
        returned = call()
        print(what_was_read(returned, out), file=stream)
        return returned

    return read_and_print
