"""Workload `hyperslab`: global arrays cut over the ranks, with time steps if wanted."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Annotated, cast

import msgspec

from pffbench.backends.base import Backend
from pffbench.case import ArrayShape, Count, DataSize, FileCount, GivenShape, Natural
from pffbench.geometry.box import Box, Shape
from pffbench.geometry.cut import (
    Decomposition,
    Distribution,
    Grid,
    Reading,
    Region,
    process_grid,
)
from pffbench.workloads.arrays import Family
from pffbench.workloads.base import Impossible
from pffbench.workloads.irregular import MapFile
from pffbench.workloads.listed import ArrayParameters, ArrayWorkload, ListedArray, OneOrMore
from pffbench.workloads.refusals import unfit_chunks

Start = Annotated[tuple[Natural, ...], msgspec.Meta(min_length=1, max_length=4)]

#: How many times as many ranks a case is tried with, if its arrays are smaller than their chunks.
_MORE_RANKS = 64


class ListedSlab(ListedArray, frozen=True):
    """As `ListedArray`, with further keys of `HyperslabParameters`."""

    shape_per_rank: ArrayShape | None = None
    cut_unit: ArrayShape | None = None


class HyperslabParameters(ArrayParameters, frozen=True, kw_only=True, tag="hyperslab"):
    """Parameters of the workload `hyperslab`."""

    #: Shape of each global array (strong scaling). Default with ``source: file``: the shape of the
    #: variable. A decomposition map has its own shape.
    shape: GivenShape[ArrayShape | None] = None
    #: Shape of each rank's part (weak scaling). One of the two is needed.
    shape_per_rank: GivenShape[ArrayShape | None] = None
    #: Number of global arrays. Or a list of arrays that differ: each has a name, one of the two
    #: shapes, optionally a `count`, and the keys in which it differs from the case: `dtype`,
    #: `decomposition`, `cut_unit`, `chunks`. They are written in this order.
    datasets: DataSize[Count | Annotated[tuple[ListedSlab, ...], OneOrMore]] = 1
    #: Number of time steps. An array gets a leading axis of this length and is written and read
    #: step by step. Without steps there is no such axis.
    steps: DataSize[Count | None] = None
    #: Cut along the first axis, the first two, or all. Or a map of the stretches of the flattened
    #: array that each process has: ``{file: PATH, holes: refuse, overlaps: refuse}``. ``allow``
    #: accepts elements that no process has, or that several have.
    decomposition: Decomposition | MapFile = "slab"
    #: Cut of an axis of n elements that does not divide evenly over p ranks. ``block``: each rank
    #: has ceil(n / p) elements, and the last ones fewer or none, so that chunks can be aligned.
    #: ``balanced``: the parts differ by one element at most.
    distribution: Distribution = "block"
    #: Ranks hold whole multiples of this shape, and the remainder at the end of an axis. The parts
    #: then differ by units instead of elements. With the shape of the chunks, or of the shards, no
    #: chunk has data of two ranks.
    cut_unit: ArrayShape | None = None
    #: Another decomposition for reading, by the ranks that share a file. Only with
    #: ``arrays: shared``.
    read_decomposition: Decomposition | None = None
    #: The part of each array that is read (default: all of it). Ranks read what their file has of
    #: it.
    read_start: DataSize[Start | None] = None
    read_shape: DataSize[ArrayShape | None] = None

    @property
    def has_steps(self) -> bool:
        return self.steps is not None

    @property
    def reads_elsewhere(self) -> bool:
        """Whether ranks read other parts than they wrote."""
        return any((self.read_decomposition, self.read_start, self.read_shape))


class Hyperslab(ArrayWorkload):
    """Every rank writes and reads its part of global arrays.

    With ``arrays: per_rank`` the parts are separate arrays, so the same bytes can be compared for
    all files and arrays. A rank whose part is empty has no such array.
    """

    name = "hyperslab"
    summary = "global 1-D to 4-D arrays cut over ranks in slabs, pencils or blocks"
    parameters_type = HyperslabParameters
    reads_once = True

    def family(self, p: HyperslabParameters, ranks: int) -> Family:
        whole = _whole(p, ranks)
        by: Decomposition = "slab" if isinstance(p.decomposition, MapFile) else p.decomposition
        return Family(
            parameters=p,
            ranks=ranks,
            cut=Grid.over(whole, ranks, by, p.distribution, p.cut_unit),
            count=p.number,
            steps=p.steps,
            chunk_per_part=True,
            reading=_reading(p, whole),
        )

    def refuse(
        self, parameters: HyperslabParameters, ranks: int, backend: type[Backend]
    ) -> str | None:
        p = parameters
        if isinstance(p.datasets, tuple) and (p.read_start or p.read_shape):
            return "datasets: read_start and read_shape cannot be given with a list of arrays"
        return super().refuse(p, ranks, backend)

    def check(self, p: HyperslabParameters, ranks: int) -> str | None:
        if reason := _check_reading_of_map(p):
            return reason
        shape = p.map_shape or p.given_shape
        if shape is None or len(p.shape_keys) > 1:
            return "give either shape (of the whole array) or shape_per_rank"
        for key in ("decomposition", "read_decomposition"):
            if getattr(p, key) == "pencil" and len(shape) < 2:
                return f"{key}: a pencil needs 2 axes, the array has {len(shape)}"
        if p.cut_unit is not None and p.map_file is not None:
            return "a decomposition map says where arrays are cut; leave cut_unit out"
        if p.cut_unit is not None and len(p.cut_unit) != len(shape):
            return f"cut_unit {list(p.cut_unit)} must have {len(shape)} axes, as the array has"
        return None

    def check_family(self, family: Family) -> str | None:
        p = cast("HyperslabParameters", family.parameters)
        return (
            self._check_chunks(p, family) or _check_groups(p, family) or _check_reading(p, family)
        )

    def _check_chunks(self, p: HyperslabParameters, family: Family) -> str | None:
        """Return why the chunks cannot be those of the arrays; of more ranks they may be larger."""
        reason = unfit_chunks(family)
        if reason is None or p.shape_per_rank is None or p.files_word != "one-shared":
            return reason
        grown = unfit_chunks(self.family(p, _MORE_RANKS * family.ranks))
        return reason if grown else Impossible(f"{reason}, or use more ranks")


def _reading(p: HyperslabParameters, whole: Shape) -> tuple[Reading, ...] | None:
    """Return what each rank reads, if it is not what it wrote."""
    if not p.reads_elsewhere:
        return None
    by = p.read_decomposition or p.decomposition
    assert not isinstance(by, MapFile)
    cut = partial(Grid.over, decomposition=by, distribution=p.distribution)
    return (Region(_region(p, whole), cut),)


def _check_groups(p: HyperslabParameters, family: Family) -> str | None:
    """Return that the parts of the ranks of a group do not make an array, or None."""
    if not isinstance(p.files, FileCount) or not family.shared:
        return None
    if sum(box.size for box in family.boxes) == family.cut.size:
        return None
    return Impossible(
        f"decomposition: {p.decomposition} gives the ranks of a group parts that are no box "
        "together; use decomposition: slab, arrays: per_rank, or another number of files"
    )


def _check_reading(p: HyperslabParameters, family: Family) -> str | None:
    if not p.reads_elsewhere:
        return None
    if p.read_decomposition is not None and p.arrays == "per_rank":
        return "read_decomposition cuts arrays that ranks share; with arrays: per_rank leave it out"
    if p.cache == "shifted":
        return "cache: shifted reads the partner's part; it allows no other read decomposition"
    whole = family.cut.whole
    region = _region(p, whole)
    if not len(region.start) == len(region.shape) == len(whole):
        return f"read_start and read_shape need {len(whole)} axes, as the array has"
    if any(stop > n for stop, n in zip(region.stop, whole, strict=True)):
        return f"the part to read ends at {list(region.stop)}, the array at {list(whole)}"
    return None


def _check_reading_of_map(p: HyperslabParameters) -> str | None:
    """Return why ranks cannot read other parts of an array than a map gives them, or None."""
    if p.map_file is None or not p.reads_elsewhere:
        return None
    if not p.irregular:
        return Impossible(
            "files of groups and arrays of ranks have the elements of a map one after the other; "
            "reading another part needs files: one and arrays: shared"
        )
    if p.read_decomposition is None:
        return "with a decomposition map, reading another part needs a read_decomposition too"
    if p.map_file.holes == "allow":
        return "elements that no process has cannot be read; holes: allow needs the map to read by"
    return None


def _whole(p: HyperslabParameters, ranks: int) -> Shape:
    """Return the shape of the global arrays, without the axis of time steps."""
    if (shape := p.map_shape or p.shape) is not None:
        return shape
    assert p.shape_per_rank is not None
    assert not isinstance(p.decomposition, MapFile)
    return _grown(p.shape_per_rank, ranks, p.decomposition)


@lru_cache(maxsize=4096)
def _grown(shape_per_rank: Shape, ranks: int, decomposition: Decomposition) -> Shape:
    grid = process_grid(ranks, len(shape_per_rank), decomposition)
    return tuple(g * n for g, n in zip(grid, shape_per_rank, strict=True))


def _region(p: HyperslabParameters, whole: Shape) -> Box:
    """Return the part of each global array that is read."""
    start = p.read_start or (0,) * len(whole)
    rest = tuple(n - s for n, s in zip(whole, start, strict=False))
    return Box(start, p.read_shape or rest)
