"""Workload `study_datasets`: `datasets` in the order of study 1, with reads that are printed."""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal, TextIO

from msgspec.structs import replace

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Backend, Buffer, Call, what_was_read
from pffbench.storage.durability import files_below
from pffbench.storage.page_cache import resident_bytes
from pffbench.workloads.arrays import CaseArrays
from pffbench.workloads.base import CountColumn
from pffbench.workloads.datasets import Datasets, DatasetsParameters
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.transfer_phase import Sink, into_memory
from pffbench.workloads.transfers import Access, Round, Rounds, all_at_once
from pffbench.workloads.write_read import (
    read_repeatedly,
    read_store,
    run_stages,
    settle_cache,
    write_store,
)

ReadSink = Literal["buffer", "print"]
#: Destination of printed text, which is discarded.
DEVICE = os.devnull


class StudyDatasetsParameters(DatasetsParameters, frozen=True, kw_only=True, tag="study_datasets"):
    """Parameters of the workload `study_datasets`: those of `datasets`, and more."""

    #: Order of the steps. ``create_first``: all datasets are created, then all written, and all
    #: opened, then all read. ``interleaved``: each rank creates one dataset and writes it, then the
    #: next, and opens and reads them in the same way. Each step is timed separately and added to
    #: its phase.
    order: Literal["create_first", "interleaved"] = "create_first"
    #: Use of the data read. ``buffer``: they are read into memory. ``print``: the time of a read
    #: also includes the conversion of the array into text and its printing, as in a program that
    #: times ``print(dataset[...])``.
    read_sink: ReadSink = "buffer"
    #: Whether the store is copied and removed, and the copy is read. Studies do this to read
    #: "without caching effects". It has no such effect, because the copy is in the page cache too.
    #: Its resident part is counted before the state of `cache` is established.
    read_copy: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        printed = "read: each array is turned into text and printed within the time"
        return (printed,) if self.read_sink == "print" else ()


class StudyDatasets(Datasets):
    """As `datasets`, with another order of the steps, and copies that are read and printed."""

    name = "study_datasets"
    summary = "datasets created and written one after the other, with printed reads (study 1)"
    parameters_type = StudyDatasetsParameters
    columns = (
        *Datasets.columns,
        CountColumn("copy resident MiB", "read", "read", "copy_resident_bytes", 2**20),
    )

    def arrays(self, parameters: Any, ranks: int) -> CaseArrays:
        in_turns = parameters.order == "interleaved"
        of_case = super().arrays(parameters, ranks)
        return replace(of_case, in_turns=in_turns, second_store=parameters.read_copy)

    def run(self, repetition: Repetition) -> None:
        p = repetition.subject.parameters
        assert isinstance(p, StudyDatasetsParameters)
        rounds = rounds_of(p, repetition.subject.arrays, repetition.place.team.size)
        attributes = self.attributes(repetition)
        reading = repetition.of(store_suffix="_copy") if p.read_copy else repetition
        with open_sink(p.read_sink) as sink:
            read = partial(read_store, reading, rounds, sink, attributes=attributes)
            run_stages(
                repetition,
                partial(write_store, repetition, rounds, attributes),
                partial(read_repeatedly, reading, read),
                settle=partial(_copy_store, repetition) if p.read_copy else settle_cache,
                reading=reading,
            )

    def refuse(self, parameters: Any, ranks: int, backend: type[Backend]) -> str | None:
        if parameters.read_copy and parameters.cache == "separate":
            return "read_copy copies what the same job wrote; cache: separate is not possible"
        return super().refuse(parameters, ranks, backend)


def rounds_of(p: StudyDatasetsParameters, arrays: CaseArrays, ranks: int) -> Rounds:
    """Return the function that cuts arrays and accesses into rounds, in the order asked for."""
    if p.order == "create_first":
        return all_at_once
    count, shared = sum(f.count for f in arrays.families), arrays.families[0].shared
    return one_by_one(count if shared else -(-count // ranks))


def _copy_store(repetition: Repetition, copy: Repetition, written: set[str]) -> set[str]:
    """Copy the store on the first rank that shares it, and remove it; settle the cache.

    Returns
    -------
    set of str
        The files of the copy that this rank will read.
    """
    found: set[str] = set()
    with repetition.step("copying"):
        if repetition.subject.keeps_data and repetition.keeps_file:
            duplicate = shutil.copytree if Path(repetition.path).is_dir() else shutil.copy
            duplicate(repetition.path, copy.path)
            repetition.place.scratch.remove(repetition.path)
    with repetition.step("files"):
        if repetition.subject.keeps_data:
            found.update(files_below([copy.path]))
    resident = resident_bytes(copy.place.team, found)
    if copy.place.team.is_root:
        copy.observed.count("read", "copy_resident_bytes", resident)
    return settle_cache(copy, found)


def one_by_one(count: int) -> Rounds:
    """Return a function that cuts into rounds of one array for each owner.

    The n-th round holds the n-th array of each rank, so that ranks with their own arrays in a
    shared file work concurrently. A round holds one array that all ranks write together.

    Parameters
    ----------
    count : int
        Number of rounds, the same on all ranks: the largest number of arrays of a rank.
    """

    def cut(specs: Sequence[ArraySpec], accesses: Sequence[Access]) -> Iterator[Round]:
        defined: list[list[ArraySpec]] = [[] for _ in range(count)]
        moved: list[list[Access]] = [[] for _ in range(count)]
        place: dict[str, int] = {}
        seen: dict[int | None, int] = defaultdict(int)
        for spec in specs:
            place[spec.name] = seen[spec.owner]
            defined[seen[spec.owner]].append(spec)
            seen[spec.owner] += 1
        for access in accesses:
            moved[place[access.spec.name]].append(access)
        return (Round(*both) for both in zip(defined, moved, strict=True))

    return cut


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
