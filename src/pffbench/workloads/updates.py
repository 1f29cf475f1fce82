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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from math import prod
from typing import Annotated, ClassVar, Literal, cast

import numpy as np
from msgspec.structs import replace

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Array, Backend, LazyArrays
from pffbench.backends.traits import Changes, Grows
from pffbench.case import ArrayShape, Count, DataSize, GivenShape
from pffbench.data import GENERATORS, Source
from pffbench.data.views import Changed, Generation, Merged
from pffbench.geometry.box import Box, Shape
from pffbench.geometry.cut import Grid
from pffbench.workloads.arrays import CaseArrays, Family, at_once, of_owner, one_part
from pffbench.workloads.base import CountColumn, Impossible
from pffbench.workloads.buffers import TransferMemory
from pffbench.workloads.irregular import MapFile
from pffbench.workloads.listed import (
    ArrayWorkload,
    MappedParameters,
    MappedPart,
    OneOrMore,
    arrays_of_kinds,
)
from pffbench.workloads.refusals import unfit_chunks
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.route import Route, count_owned, route_of
from pffbench.workloads.selections import Mask, Selection, rows_of, selected, selected_boxes
from pffbench.workloads.transfer_phase import write_transfers
from pffbench.workloads.transfers import Access, Round
from pffbench.workloads.write_read import (
    finish_writing,
    open_for_writing,
    read_store,
    run_stages,
    settle_cache,
    settle_cache_again,
    write_store,
)

#: ``chunks: rank_part`` are rows of one rank's part that fit in this: a chunk of a whole part would
#: be rewritten for each row.
_BLOCK_BYTES = 2**20


class UpdatesParameters(MappedParameters, frozen=True, kw_only=True, tag="updates"):
    """Parameters of the workload `updates`."""

    #: Shape of the array as first written, with 2 axes or more. The first axis is the rows. The
    #: second axis is cut over the ranks, so that each has a part of every row.
    shape: GivenShape[ArrayShape | None] = None
    #: The same for one rank (weak scaling). One of the two is needed.
    shape_per_rank: GivenShape[ArrayShape | None] = None
    #: Number of arrays. Or a list of arrays that differ, which are written in this order.
    datasets: DataSize[Count | Annotated[tuple[MappedPart, ...], OneOrMore]] = 1
    #: A map of the stretches of each row that each process has, as of the workload `hyperslab`. The
    #: `shape` is then the number of rows and the shape of the map. Each row is a call.
    decomposition: MapFile | None = None
    #: The elements to change. ``every_second_element`` is along the last axis. Each of the random
    #: rows is changed by a separate call. ``append`` adds rows at the end of the array, and its
    #: first axis is then unlimited.
    change: Selection | Literal["append"] = "first_half"
    #: Number of random rows changed or read, or of rows that one step of ``append`` adds.
    rows: DataSize[Count] = 1
    #: Number of steps of ``append``.
    steps: DataSize[Count] = 1
    #: The elements read at the end, including appended rows.
    read: Selection = "all"

    changes_arrays: ClassVar[bool] = True

    @property
    def appended(self) -> int:
        """Number of rows appended."""
        return self.rows * self.steps if self.change == "append" else 0


class Updates(ArrayWorkload):
    """An array is written and closed, opened again and changed, closed again and read.

    With ``arrays: per_rank`` the ranks' parts are arrays of their own.
    """

    name = "updates"
    columns = (CountColumn("grew MiB", "update", "update", "grown_bytes", 2**20),)
    summary = "parts of an array overwritten, or rows appended, after it was closed"
    parameters_type = UpdatesParameters
    map_of_rows = True

    def family(self, p: UpdatesParameters, ranks: int) -> Family:
        return _family(p, ranks)

    def run(self, repetition: Repetition) -> None:
        """Write, change and read back; collective."""
        p = _parameters(repetition)
        settle = settle_cache_again if p.cache == "dropped" else settle_cache
        grown = arrays_of_kinds(p, partial(_family, ranks=repetition.place.team.size, grown=True))
        merged = _with_data(repetition, lambda source: Merged(source, changed_elements(p)))
        changed = merged.of(arrays=grown)
        run_stages(
            repetition, lambda: _write(repetition), lambda: read_store(changed), settle=settle
        )

    def refuse(
        self, parameters: UpdatesParameters, ranks: int, backend: type[Backend]
    ) -> str | None:
        p = parameters
        if p.source not in GENERATORS:
            return (
                "what is changed must differ from what was there, which is sure only with source: "
                f"{', '.join(GENERATORS)}, and not with {p.source}"
            )
        return super().refuse(p, ranks, backend) or _unchangeable(backend)

    def check(self, p: UpdatesParameters, ranks: int) -> str | None:
        if len(p.shape_keys) != 1:
            return "give either shape (of the whole array) or shape_per_rank"
        shape = _whole(p, ranks)
        if len(shape) < 2:
            return f"an array of rows has 2 axes or more, {list(shape)} has {len(shape)}"
        return _check_selections(p, shape[0], shape[0] + p.appended)

    def check_family(self, family: Family) -> str | None:
        axes = len(family.cut.whole) + (family.steps is not None)
        return unfit_chunks(family, axes=range(1, axes + 1))


def _unchangeable(backend: type[Backend]) -> str | None:
    if issubclass(backend, Changes):
        return None
    return Impossible(f"backend {backend.name} does not change what it has written")


def _check_selections(p: UpdatesParameters, rows: int, final_rows: int) -> str | None:
    for key, selection, there in (("change", p.change, rows), ("read", p.read, final_rows)):
        if selection == "random_rows" and p.rows > there:
            return f"{key}: random_rows takes {p.rows} rows of {there}"
        if selection == "first_half" and there < 2:
            return f"{key}: one row has no first half"
    if p.change != "append" and p.steps != 1:
        return f"steps are those of change: append, here it is {p.change}"
    return None


def _whole(p: UpdatesParameters, ranks: int) -> Shape:
    """Return the shape of an array as first written."""
    if p.shape is not None:
        return p.shape
    assert p.shape_per_rank is not None
    rows, cut, *inner = p.shape_per_rank
    return (rows, cut * ranks, *inner)


def _family(p: UpdatesParameters, ranks: int, *, grown: bool = False) -> Family:
    """Return the arrays of one kind, as first written or with the appended rows.

    The second axis is cut over the ranks. With a map each row is a time step, cut by the map.
    """
    rows, *inner = _whole(p, ranks)
    final = rows + p.appended
    first = final if grown else rows
    family = Family(
        parameters=p,
        ranks=ranks,
        cut=Grid((first, *inner), (1, ranks, *(1 for _ in inner[1:]))),
        name=partial(_name, p.number),
        count=p.number,
        growth=final - first,
        block=partial(_rows_of_a_block, p.itemsize),
        write=partial(_boxes, p, "all", rows),
        read=partial(_boxes, p, p.read, final),
    )
    if p.map_file is None:
        return family
    return replace(
        family,
        steps=first,
        block=one_part,
        write=at_once,
        write_steps=range(rows),
        read=partial(_of_row, p.read),
        read_steps=rows_of(p.read, final, p.rows),
    )


def _name(count: int, index: int, owner: int | None) -> str:
    return ("records" if count == 1 else f"records_{index:03d}") + of_owner(owner)


def _rows_of_a_block(itemsize: int, part: Shape) -> Shape:
    """Return the chunk of ``chunks: rank_part``."""
    return (max(1, _BLOCK_BYTES // (prod(part[1:]) * itemsize)), *part[1:])


def _boxes(
    p: UpdatesParameters, selection: Selection, rows: int, spec: ArraySpec, part: Box, rank: int
) -> Iterable[Box]:
    """Return what a selection among so many rows takes of a rank's part, one box a call."""
    with_rows = Box(part.start, (rows, *part.shape[1:]))
    return selected_boxes(selection, with_rows, spec.origin, rows, p.rows)


def _of_row(selection: Selection, spec: ArraySpec, part: Box, rank: int) -> Iterable[Box]:
    """Return what a selection takes of a rank's part of a row that is cut by a map."""
    return (part.every_second(spec.origin[-1]) if selection == "every_second_element" else part,)


def changes_of(p: UpdatesParameters, ranks: int) -> CaseArrays:
    """Return the arrays with the calls that change them, equally many in each step."""
    return arrays_of_kinds(p, partial(_changing, ranks=ranks))


def _changing(p: UpdatesParameters, ranks: int) -> Family:
    """Return the arrays of one kind, with the calls that change them."""
    family, rows = _family(p, ranks), _whole(p, ranks)[0]
    if p.change == "append" and p.map_file is None:
        return replace(family, write=partial(_appended, p, rows))
    if p.change == "append":
        return replace(family, write_steps=range(rows, rows + p.appended))
    if p.map_file is None:
        return replace(family, write=partial(_boxes, p, p.change, rows))
    steps = rows_of(p.change, rows, p.rows)
    return replace(family, write=partial(_of_row, p.change), write_steps=steps)


def _appended(
    p: UpdatesParameters, rows: int, spec: ArraySpec, part: Box, rank: int
) -> Iterator[Box]:
    """Yield the rows that each step appends to a rank's part."""
    for begin in range(rows, rows + p.appended, p.rows):
        yield Box((begin, *part.start[1:]), (p.rows, *part.shape[1:]))


def changed_elements(p: UpdatesParameters) -> Changed:
    """Return a function of the elements of a box that hold the newer data at the end."""

    def is_changed(start: Shape, shape: Shape, whole: Shape) -> Mask:
        rows = whole[0] - p.appended
        if p.change == "append":
            index = np.arange(start[0], start[0] + shape[0])
            return (index >= rows).reshape(-1, *(1,) * (len(shape) - 1))
        return selected(p.change, start, shape, rows, p.rows)

    return is_changed


def _parameters(repetition: Repetition) -> UpdatesParameters:
    return cast("UpdatesParameters", repetition.subject.parameters)


def _with_data(repetition: Repetition, derived: Callable[[Source], Source]) -> Repetition:
    """Return a repetition with data derived from its own, of each element type."""
    subject = repetition.subject
    by_type = {dtype: derived(source) for dtype, source in subject.sources_by_type.items()}
    return repetition.of(source=derived(subject.source), sources_by_type=by_type)


def _write(repetition: Repetition) -> set[str]:
    """Write the store, then change it; return the files that this rank wrote to."""
    written = write_store(_with_data(repetition, partial(Generation, number=0)))
    if _parameters(repetition).cache == "dropped":
        settle_cache(repetition, written)
    before = repetition.observed.disk
    changing = changes_of(_parameters(repetition), repetition.place.team.size)
    newer = _with_data(repetition, partial(Generation, number=1))
    written |= _change(newer.of(arrays=changing))
    after = repetition.observed.disk
    if before is not None and after is not None:
        repetition.observed.count("update", "grown_bytes", after.stored - before.stored)
    return written


def _change(repetition: Repetition) -> set[str]:
    """Open the store again and apply the changes; return the files written to."""
    with route_of(repetition) as route:
        return _changed(repetition, route)


def _changed(repetition: Repetition, route: Route) -> set[str]:
    p, clock, owner = _parameters(repetition), repetition.place.clock, repetition.owner
    backend = repetition.subject.backend
    assert isinstance(backend, Changes)
    store, specs, accesses = open_for_writing(repetition, route, backend.reopen, "reopen")
    mine = [spec for spec in specs if spec.owner in (None, owner)]
    growing = specs if store.collective_growth and p.change == "append" else mine
    needed = list(dict.fromkeys([*growing, *(access.spec for access in accesses)]))
    wanted = specs if store.collective_lookup else needed
    with repetition.step("preparation"):
        open_wanted = store.opener(wanted)
    with clock.phase("reopen_array", operations=count_owned(specs, owner)):
        returned = open_wanted()
    arrays = LazyArrays(store, wanted, returned)
    rows = 0
    rounds = (Round(specs, list(_of_step(accesses, step, p.steps))) for step in range(p.steps))
    memory = TransferMemory(repetition, route)
    for batches in memory.batches_that_fit(rounds):
        for batch, placed in zip(batches, memory.for_writing(batches), strict=True):
            if batch.first and p.change == "append":
                rows += p.rows
                extend(repetition, arrays, growing, rows, "extend", opens=route.opens)
            route.send(placed)
            write_transfers(repetition, arrays, placed.calls, "update")
    return finish_writing(repetition, store, "_update")


def _of_step(accesses: Sequence[Access], step: int, steps: int) -> Iterator[Access]:
    """Yield the accesses of a step; each array has equally many in each."""
    for _, some in groupby(accesses, key=lambda access: access.spec.name):
        calls = list(some)
        each = len(calls) // steps
        yield from calls[step * each : (step + 1) * each]


def extend(
    repetition: Repetition,
    arrays: Mapping[str, Array],
    specs: Sequence[ArraySpec],
    rows: int,
    phase: str,
    *,
    opens: bool,
) -> None:
    """Append rows to arrays in a phase, on the ranks that have them open.

    `rows` are all that were appended since the arrays were created.
    """
    with repetition.step("preparation"):
        growing = ((arrays[spec.name], spec.shape[0] + rows) for spec in specs if opens)
        calls = [array.resizer(length) for array, length in growing if isinstance(array, Grows)]
    owner = repetition.owner
    with repetition.place.clock.phase(phase, operations=count_owned(specs, owner)):
        for call in calls:
            call()
