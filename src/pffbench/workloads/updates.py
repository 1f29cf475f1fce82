"""Workload `updates`: parts of a stored array are changed, or rows appended.

    create → define → write → flush → close → sync
    reopen → reopen_array → (extend → update) for each step
    flush_update → close_update → sync_update
    open → open_array → read → close_read
    remove

With a dropped cache it is also dropped before the store is opened again: partly changed units are
then read from the device first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import ClassVar, Literal, cast

import numpy as np
from msgspec.structs import replace

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Array, Backend, Cuts, LazyArrays
from pffbench.backends.traits import Changes, Grows
from pffbench.case import ArrayShape, Count, Parameters
from pffbench.data import GENERATORS
from pffbench.data.views import Changed, Generation, Merged
from pffbench.parallel.decomposition import Box, GlobalArray, Shape
from pffbench.workloads.base import (
    CaseTotals,
    CountColumn,
    Workload,
    illegal_chunks,
    make_spec,
    taking_part,
)
from pffbench.workloads.buffers import TransferMemory
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.selections import Mask, Selection, selected, selected_boxes
from pffbench.workloads.transfer_phase import write_pieces
from pffbench.workloads.transfers import Access, Round
from pffbench.workloads.write_read import (
    count_owned,
    finish_writing,
    read_store,
    run_stages,
    settle_cache,
    settle_cache_again,
    write_store,
)

#: ``chunks: block`` are rows of one rank's part that fit in this: a chunk of a whole part would be
#: rewritten for each row.
_BLOCK_BYTES = 2**20


class UpdatesParameters(Parameters, frozen=True, kw_only=True, tag="updates"):
    """Parameters of the workload `updates`.

    Parameters
    ----------
    shape : list of int, optional
        Shape of the array as first written, with 2 axes or more. The first axis is the rows. The
        second axis is cut over the ranks, so that each has a part of every row.
    shape_per_rank : list of int, optional
        The same for one rank (weak scaling). One of the two is needed.
    change : {"all", "first_half", "second_half", "every_second_row", "every_second_element", \
"random_rows", "append"}
        The elements to change. ``every_second_element`` is along the last axis. Each of the random
        rows is changed by a separate call. ``append`` adds rows at the end of the array, and its
        first axis is then unlimited.
    rows : int
        Number of random rows changed or read, or of rows that one step of ``append`` adds.
    steps : int
        Number of steps of ``append``.
    read : {"all", "first_half", "second_half", "every_second_row", "every_second_element", \
"random_rows"}
        The elements read at the end, including appended rows.
    """

    shape: ArrayShape | None = None
    shape_per_rank: ArrayShape | None = None
    change: Selection | Literal["append"] = "first_half"
    rows: Count = 1
    steps: Count = 1
    read: Selection = "all"

    changes_arrays: ClassVar[bool] = True

    @property
    def appended(self) -> int:
        """Number of rows appended."""
        return self.rows * self.steps if self.change == "append" else 0


class Updates(Workload):
    """An array is written and closed, opened again and changed, closed again and read.

    With the layouts ``own`` and ``file_per_process`` the ranks' parts are arrays of their own.
    """

    name = "updates"
    columns = (CountColumn("grew MiB", "update", "update", "grown_bytes", 2**20),)
    summary = "parts of an array overwritten, or rows appended, after it was closed"
    parameters_type = UpdatesParameters

    def __init__(self, *, grown: bool = False) -> None:
        #: Whether this is the array with the appended rows.
        self.grown = grown

    def arrays(self, parameters: UpdatesParameters, ranks: int, rank: int) -> list[ArraySpec]:
        p = parameters
        if p.layout == "shared":
            return [self._spec(p, ranks, None, _whole(p, ranks), 0)]
        found: list[ArraySpec] = []
        offset = 0
        for owner in p.groups(ranks).members(rank):
            part = _part(p, ranks, owner)
            if part.size:
                found.append(self._spec(p, ranks, owner, part, offset))
                offset += found[-1].nbytes // found[-1].shape[0] * _final_rows(p, ranks)
        return found

    def _spec(
        self, p: UpdatesParameters, ranks: int, owner: int | None, part: Box, offset: int
    ) -> ArraySpec:
        rows = _final_rows(p, ranks) if self.grown else part.shape[0]
        widest = _part(p, ranks, 0) if owner is None else part
        row = prod(widest.shape[1:]) * p.itemsize
        made = make_spec(
            p,
            "records" if owner is None else f"records_{owner:06d}",
            (rows, *part.shape[1:]),
            number=0,
            offset=offset,
            owner=owner,
            block=(max(1, _BLOCK_BYTES // row), *widest.shape[1:]),
            origin=part.start,
            logical_shape=(_final_rows(p, ranks), *_whole(p, ranks).shape[1:]),
        )
        return made if self.grown else replace(made, growth=p.appended)

    def writes(self, parameters: UpdatesParameters, ranks: int, rank: int) -> list[Access]:
        return self._accesses(parameters, ranks, rank, "all", _whole(parameters, ranks).shape[0])

    def changes(self, parameters: UpdatesParameters, ranks: int, rank: int) -> list[list[Access]]:
        """Return the accesses that a rank changes, by step; only ``append`` has more than one."""
        p, rows = parameters, _whole(parameters, ranks).shape[0]
        if p.change != "append":
            return [self._accesses(p, ranks, rank, p.change, rows)]
        return [
            [
                Access(a.spec, Box((begin, *a.box.start[1:]), (p.rows, *a.box.shape[1:])))
                for a in self._accesses(p, ranks, rank, "all", rows)
            ]
            for begin in range(rows, rows + p.appended, p.rows)
        ]

    def changed(self, parameters: UpdatesParameters, ranks: int) -> Changed:
        """Return a function of the elements of a box that hold the newer data at the end."""
        p, rows = parameters, _whole(parameters, ranks).shape[0]

        def tell(start: Shape, extent: Shape) -> Mask:
            if p.change == "append":
                index = np.arange(start[0], start[0] + extent[0])
                return (index >= rows).reshape(-1, *(1,) * (len(extent) - 1))
            return selected(p.change, start, extent, rows, p.rows)

        return tell

    def reads(self, parameters: UpdatesParameters, ranks: int, rank: int) -> list[Access]:
        p = parameters
        return self._accesses(p, ranks, rank, p.read, _final_rows(p, ranks))

    def _accesses(
        self, p: UpdatesParameters, ranks: int, rank: int, selection: Selection, rows: int
    ) -> list[Access]:
        found = []
        for spec in taking_part(self.arrays(p, ranks, rank), p, rank):
            part = _part(p, ranks, rank)
            start, inner = (0, *part.start[1:]), part.shape[1:]
            if spec.owner is not None:  # of another rank's array nothing
                start = (0,) * len(part.start)
                inner = inner if spec.owner == rank else (0,) * len(inner)
            part = Box(start, (rows, *inner))
            boxes = selected_boxes(selection, part, spec.origin, rows, p.rows)
            found += [Access(spec, box) for box in boxes]
        return found

    def cuts(self, parameters: UpdatesParameters, ranks: int) -> Cuts:
        return _cut(parameters, ranks).boundaries

    def volume(self, parameters: UpdatesParameters, ranks: int) -> CaseTotals:
        p = parameters
        parts = 1
        if p.layout != "shared":
            parts = sum(1 for rank in range(ranks) if _part(p, ranks, rank).size)
        row = prod(_whole(p, ranks).shape[1:]) * p.itemsize
        return CaseTotals(parts, _final_rows(p, ranks) * row)

    def run(self, repetition: Repetition) -> None:
        """Write, change and read back; collective."""
        p = _parameters(repetition)
        settle = settle_cache_again if p.cache == "dropped" else settle_cache
        merged = Merged(repetition.source, self.changed(p, repetition.team.size))
        changed = replace(repetition, workload=Updates(grown=True), source=merged)
        run_stages(
            repetition, lambda: _write(repetition), lambda: read_store(changed), settle=settle
        )

    def check(self, parameters: UpdatesParameters, ranks: int) -> str | None:
        p = parameters
        if p.source not in GENERATORS:
            return (
                "what is changed must differ from what was there, which is sure only with source: "
                f"{', '.join(GENERATORS)}, and not with {p.source}"
            )
        if (p.shape is None) == (p.shape_per_rank is None):
            return "give either shape (of the whole array) or shape_per_rank"
        shape = _whole(p, ranks).shape
        if len(shape) < 2:
            return f"an array of rows has 2 axes or more, {list(shape)} has {len(shape)}"
        held = shape if p.layout == "shared" else _part(p, ranks, 0).shape
        return illegal_chunks(p, held, axes=range(1, len(shape) + 1)) or _check_selections(
            p, shape[0], _final_rows(p, ranks)
        )

    def refuse(self, parameters: UpdatesParameters, backend: type[Backend]) -> str | None:
        if issubclass(backend, Changes):
            return None
        return f"backend {backend.name} does not change what it has written"


def _check_selections(p: UpdatesParameters, rows: int, final_rows: int) -> str | None:
    for key, selection, there in (("change", p.change, rows), ("read", p.read, final_rows)):
        if selection == "random_rows" and p.rows > there:
            return f"{key}: random_rows takes {p.rows} rows of {there}"
        if selection == "first_half" and there < 2:
            return f"{key}: one row has no first half"
    if p.change != "append" and p.steps != 1:
        return f"steps are those of change: append, here it is {p.change}"
    return None


def _whole(p: UpdatesParameters, ranks: int) -> Box:
    """Return the array as first written."""
    if p.shape is not None:
        return Box((0,) * len(p.shape), p.shape)
    assert p.shape_per_rank is not None
    rows, *inner = p.shape_per_rank
    shape = (rows, *(n * ranks if axis == 0 else n for axis, n in enumerate(inner)))
    return Box((0,) * len(shape), shape)


def _final_rows(p: UpdatesParameters, ranks: int) -> int:
    return _whole(p, ranks).shape[0] + p.appended


def _cut(p: UpdatesParameters, ranks: int) -> GlobalArray:
    """Return the array as it is cut: over all ranks along the second axis."""
    shape = _whole(p, ranks).shape
    return GlobalArray(shape, (1, ranks, *(1 for _ in shape[2:])))


def _part(p: UpdatesParameters, ranks: int, rank: int) -> Box:
    return _cut(p, ranks).part(rank)


def _parameters(repetition: Repetition) -> UpdatesParameters:
    return cast("UpdatesParameters", repetition.case.parameters)


def _write(repetition: Repetition) -> set[str]:
    """Write the store, then change it; return the files that this rank wrote to."""
    written = write_store(replace(repetition, source=Generation(repetition.source, 0)))
    if _parameters(repetition).cache == "dropped":
        settle_cache(repetition, written)
    before = repetition.observed.disk
    written |= _change(replace(repetition, source=Generation(repetition.source, 1)))
    after = repetition.observed.disk
    if before is not None and after is not None:
        repetition.observed.count("update", "grown_bytes", after.stored - before.stored)
    return written


def _change(repetition: Repetition) -> set[str]:
    """Open the store again and apply the changes; return the files written to."""
    p, team, clock = _parameters(repetition), repetition.team, repetition.clock
    with repetition.step("plan"):
        workload = cast("Updates", repetition.workload)
        specs = workload.arrays(p, team.size, team.rank)
        changes = workload.changes(p, team.size, team.rank)
        path, comm = repetition.path, repetition.comm
    backend = repetition.backend
    assert isinstance(backend, Changes)
    with clock.phase("reopen"):
        store = backend.reopen(path, comm)
        repetition.open_stores.append(store)
    mine = [spec for spec in specs if spec.owner in (None, team.rank)]
    growing = specs if store.collective_growth and p.change == "append" else mine
    needed = list(dict.fromkeys([*growing, *(access.spec for access in changes[0])]))
    wanted = specs if store.collective_lookup else needed
    with repetition.step("preparation"):
        open_wanted = store.opener(wanted)
    with clock.phase("reopen_array", operations=count_owned(specs, team.rank)):
        returned = open_wanted()
    arrays = LazyArrays(store, wanted, returned)
    rows = specs[0].shape[0] if specs else 0
    rounds = (Round(specs, accesses) for accesses in changes)
    memory = TransferMemory(repetition)
    for group in memory.turns(rounds):
        for turn, pieces in zip(group, memory.for_writing(group), strict=True):
            if turn.first and p.change == "append":
                rows += p.rows
                _extend(repetition, arrays, growing, rows)
            write_pieces(repetition, arrays, pieces, "update")
    return finish_writing(repetition, store, "_update")


def _extend(
    repetition: Repetition, arrays: Mapping[str, Array], specs: Sequence[ArraySpec], rows: int
) -> None:
    """Resize the first axis of arrays."""
    with repetition.step("preparation"):
        growing = (arrays[spec.name] for spec in specs)
        calls = [array.resizer(rows) for array in growing if isinstance(array, Grows)]
    with repetition.clock.phase("extend", operations=count_owned(specs, repetition.team.rank)):
        for call in calls:
            call()
