"""Workload `hyperslab`: global arrays cut over the ranks, with time steps if wanted."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache, partial
from math import prod
from typing import Annotated, Literal, cast

import msgspec
from msgspec.structs import replace

from pffbench.backends.base import Backend
from pffbench.case import (
    ArrayShape,
    ChunkShape,
    Count,
    DataSize,
    FileCount,
    GivenShape,
    Natural,
    Parameters,
)
from pffbench.data.base import DType
from pffbench.geometry.box import Box, Shape
from pffbench.geometry.cut import (
    Cut,
    Decomposition,
    Distribution,
    Grid,
    Parts,
    Region,
    process_grid,
)
from pffbench.geometry.maps import MapCut
from pffbench.geometry.stretches import Stretches
from pffbench.workloads.arrays import CaseArrays, Family, array_name, one_part
from pffbench.workloads.base import Impossible, Workload
from pffbench.workloads.irregular import MapFile
from pffbench.workloads.map_rules import check_map, elements_on_disk, refuse_map
from pffbench.workloads.refusals import unfit_chunks
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.write_read import write_read_cycle

Start = Annotated[tuple[Natural, ...], msgspec.Meta(min_length=1, max_length=4)]


#: Names of arrays that every format allows, and every language that reads them.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")


#: How many times as many ranks a case is tried with, if its arrays are smaller than their chunks.
_MORE_RANKS = 64


class ListedArray(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Arrays of one kind among several in a file; what is left out is as the case has it."""

    #: Name in the file; with a count the arrays are ``name_000``, ``name_001`` and so on.
    name: str
    #: As in `HyperslabParameters`.
    shape: ArrayShape | None = None
    shape_per_rank: ArrayShape | None = None
    dtype: DType | None = None
    decomposition: Decomposition | MapFile | None = None
    cut_unit: ArrayShape | None = None
    chunks: Literal["auto", "rank_part", "contiguous"] | ChunkShape | None = None
    #: Number of such arrays.
    count: Count = 1

    def name_of(self, index: int) -> str:
        """Return the name of one of them."""
        return self.name if self.count == 1 else f"{self.name}_{index:03d}"

    @property
    def names(self) -> list[str]:
        """Names of all of them."""
        return [self.name_of(index) for index in range(self.count)]

    def within(self, p: HyperslabParameters) -> HyperslabParameters:
        """Return the parameters of a case that has these arrays only."""
        common = set(self.__struct_fields__) & set(p.__struct_fields__)
        given = {key: value for key in common if (value := getattr(self, key)) is not None}
        return replace(p, datasets=self.count, **given)


class HyperslabParameters(Parameters, frozen=True, kw_only=True, tag="hyperslab"):
    """Parameters of the workload `hyperslab`."""

    #: Shape of each global array (strong scaling). Default with ``source: file``: the shape of the
    #: variable. A decomposition map has its own shape.
    shape: GivenShape[ArrayShape | None] = None
    #: Shape of each rank's part (weak scaling). One of the two is needed.
    shape_per_rank: GivenShape[ArrayShape | None] = None
    #: Number of global arrays. Or a list of arrays that differ: each has a name, one of the two
    #: shapes, optionally a `count`, and the keys in which it differs from the case: `dtype`,
    #: `decomposition`, `cut_unit`, `chunks`. They are written in this order.
    datasets: DataSize[Count | Annotated[tuple[ListedArray, ...], msgspec.Meta(min_length=1)]] = 1
    #: Number of time steps. An array gets a leading axis of this length and is written and read
    #: step by step. Without steps there is no such axis.
    steps: DataSize[Count | None] = None
    #: Cut along the first axis, the first two, or all. Or a map of the stretches of the flattened
    #: array that each process has: ``{file: PATH, holes: refuse, overlaps: refuse}``. ``allow``
    #: accepts elements that no process has, or that several have. Only with ``files: one`` and
    #: ``arrays: shared``.
    decomposition: Decomposition | MapFile = "slab"
    #: Cut of an axis of n elements that does not divide evenly over p ranks. ``block``: each rank
    #: has ceil(n / p) elements, and the last ones fewer or none, so that chunks can be aligned.
    #: ``balanced``: the parts differ by one element at most.
    distribution: Distribution = "block"
    #: Ranks hold whole multiples of this shape, and the remainder at the end of an axis. The parts
    #: then differ by units instead of elements. With the shape of the chunks, or of the shards, no
    #: chunk has data of two ranks.
    cut_unit: ArrayShape | None = None
    #: Another decomposition for reading. Only with ``files: one`` and ``arrays: shared``.
    read_decomposition: Decomposition | None = None
    #: The part of each array that is read (default: all of it). Only with ``files: one`` and
    #: ``arrays: shared``.
    read_start: DataSize[Start | None] = None
    read_shape: DataSize[ArrayShape | None] = None

    @property
    def has_steps(self) -> bool:
        return self.steps is not None

    @property
    def irregular(self) -> bool:
        """Whether a map says which stretches of an array each rank has."""
        return isinstance(self.decomposition, MapFile)

    @property
    def reads_elsewhere(self) -> bool:
        """Whether ranks read other parts than they wrote."""
        return any((self.read_decomposition, self.read_start, self.read_shape))

    @property
    def input_files(self) -> tuple[str, ...]:
        by = [one.decomposition for _, one in self.each]
        maps = dict.fromkeys(one.file for one in by if isinstance(one, MapFile))
        return (*super().input_files, *maps)

    @property
    def each(self) -> tuple[tuple[str, HyperslabParameters], ...]:
        """Parameters of each kind of array, with the beginning of a message about it."""
        if isinstance(self.datasets, int):
            return (("", self),)
        return tuple(
            (f"datasets[{n}] ({one.name}): ", one.within(self))
            for n, one in enumerate(self.datasets)
        )

    def name_of(self, kind: int, index: int) -> str:
        """Return the name of one of the arrays of a kind."""
        if isinstance(self.datasets, int):
            return array_name(index, None)
        return self.datasets[kind].name_of(index)


class Hyperslab(Workload):
    """Every rank writes and reads its part of global arrays.

    With ``arrays: per_rank`` the parts are separate arrays, so the same bytes can be compared for
    all files and arrays. A rank whose part is empty has no such array.
    """

    name = "hyperslab"
    summary = "global 1-D to 4-D arrays cut over ranks in slabs, pencils or blocks"
    parameters_type = HyperslabParameters
    reads_once = True

    def arrays(self, parameters: HyperslabParameters, ranks: int) -> CaseArrays:
        families: list[Family] = []
        first = 0
        for kind, (label, p) in enumerate(parameters.each):
            family = _family(p, ranks)
            name, reading = partial(_name, parameters, kind), _reading(p, family.cut.whole, ranks)
            families.append(replace(family, name=name, first=first, reading=reading, label=label))
            first += family.count
        return CaseArrays(tuple(families))

    def refuse(
        self, parameters: HyperslabParameters, ranks: int, backend: type[Backend]
    ) -> str | None:
        if reason := _check_list(parameters):
            return reason
        found = [(label, _check_kind(one, ranks)) for label, one in parameters.each]
        found += [(label, _beyond(one, backend)) for label, one in parameters.each]
        return next((type(why)(f"{label}{why}") for label, why in found if why), None)

    def run(self, repetition: Repetition) -> None:
        _note_stretches(repetition, cast("HyperslabParameters", repetition.case.parameters))
        write_read_cycle(repetition)


def _family(p: HyperslabParameters, ranks: int) -> Family:
    """Return the arrays of one kind."""
    assert isinstance(p.datasets, int)
    whole = global_shape(p, ranks)
    return Family(
        parameters=p,
        ranks=ranks,
        cut=_cut(p, whole, ranks),
        name=partial(_name, p, 0),
        count=p.datasets,
        steps=p.steps,
        block=_no_part if p.irregular else one_part,
        chunk_per_part=True,
        elements_on_disk=partial(elements_on_disk, p, prod(whole)) if p.irregular else None,
    )


def _cut(p: HyperslabParameters, whole: Shape, ranks: int) -> Cut:
    if isinstance(p.decomposition, MapFile):
        return MapCut(p.decomposition.map, ranks, p.decomposition.file)
    grid = process_grid(ranks, len(whole), p.decomposition)
    return Grid(whole, grid, p.distribution, p.cut_unit)


def _name(p: HyperslabParameters, kind: int, index: int, owner: int | None) -> str:
    return p.name_of(kind, index) + ("" if owner is None else f"_rank_{owner:06d}")


def _no_part(part: Shape) -> None:
    """Return no chunk: the part of a rank is not a box."""


def _reading(p: HyperslabParameters, whole: Shape, ranks: int) -> tuple[Parts, ...] | None:
    """Return what each rank reads, if it is not what it wrote."""
    if not p.reads_elsewhere:
        return None
    region, by = _region(p, whole), p.read_decomposition or p.decomposition
    assert not isinstance(by, MapFile)
    grid = process_grid(ranks, len(region.shape), by)
    return (Region(region.start, Grid(region.shape, grid, p.distribution)),)


def _note_stretches(repetition: Repetition, p: HyperslabParameters) -> None:
    """Record how many stretches ranks have: a fact, and where calls are counted a count."""
    team, arrays = repetition.team, repetition.arrays
    described = arrays.maps if team.is_root else None  # which alone computes the parts of all ranks
    if described:
        repetition.observed.facts["stretches"] = described
    if not repetition.clock.counts or not any(family.irregular for family in arrays.families):
        return
    boxes = [access.box for access in arrays.writes(team.rank)]
    number = sum(len(box.offsets) for box in boxes if isinstance(box, Stretches))
    for phase in ("write",) if p.read_decomposition else ("write", "read"):
        repetition.observed.count(phase, "stretches", number)


def _beyond(p: HyperslabParameters, backend: type[Backend]) -> str | None:
    """Return why a backend cannot move arrays of one kind, or None."""
    reason = refuse_map(p, backend)
    return None if reason is None else Impossible(reason)


def _check_kind(p: HyperslabParameters, ranks: int) -> str | None:
    """Return why arrays of one kind cannot be as they are described, or None."""
    if reason := check_map(p, ranks):
        return reason
    if p.irregular:
        p = replace(p, shape=global_shape(p, ranks))
    if (p.shape is None) == (p.shape_per_rank is None):
        return "give either shape (of the whole array) or shape_per_rank"
    shape = p.shape or p.shape_per_rank
    assert shape is not None
    for key in ("decomposition", "read_decomposition"):
        if getattr(p, key) == "pencil" and len(shape) < 2:
            return f"{key}: a pencil needs 2 axes, the array has {len(shape)}"
    if p.cut_unit is not None and len(p.cut_unit) != len(shape):
        return f"cut_unit {list(p.cut_unit)} must have {len(shape)} axes, as the array has"
    family = _family(p, ranks)
    return _check_chunks(p, family) or _check_groups(p, family) or _check_reading(p, family)


def _check_chunks(p: HyperslabParameters, family: Family) -> str | None:
    """Return why the chunks cannot be those of the arrays; of more ranks they may be larger."""
    reason = unfit_chunks(family)
    if reason is None or p.shape_per_rank is None or p.files_word != "one-shared":
        return reason
    grown = unfit_chunks(_family(p, _MORE_RANKS * family.ranks))
    return reason if grown else Impossible(f"{reason}, or use more ranks")


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
    if p.files_word != "one-shared":
        return "read_decomposition, read_start and read_shape need files: one and arrays: shared"
    if p.cache == "shifted":
        return "cache: shifted reads the partner's part; it allows no other read decomposition"
    whole = family.cut.whole
    region = _region(p, whole)
    if not len(region.start) == len(region.shape) == len(whole):
        return f"read_start and read_shape need {len(whole)} axes, as the array has"
    if any(stop > n for stop, n in zip(region.stop, whole, strict=True)):
        return f"the part to read ends at {list(region.stop)}, the array at {list(whole)}"
    return None


def _check_list(p: HyperslabParameters) -> str | None:
    """Return why a case cannot list arrays, or not these, or None."""
    if isinstance(p.datasets, int):
        return None
    without = {
        "shape": p.shape is None or p.source == "file", "shape_per_rank": p.shape_per_rank is None,
        "source: file": p.source != "file", "read_start": p.read_start is None,
        "read_shape": p.read_shape is None,
    }  # fmt: skip
    if found := [key for key, fine in without.items() if not fine]:
        return (
            f"datasets: {', '.join(found)} cannot be given with a list, whose arrays differ; leave "
            "it out, or make a case of each array"
        )
    if wrong := [one.name for one in p.datasets if not _NAME.fullmatch(one.name)]:
        return (
            f"datasets: the name {wrong[0]!r} is not possible in every format; use a letter, then "
            "at most 63 letters, digits and _"
        )
    names = Counter(name for one in p.datasets for name in one.names)
    if twice := [name for name, times in names.items() if times > 1]:
        return f"datasets: two arrays have the name {twice[0]}; give each array another one"
    return None


def global_shape(p: HyperslabParameters, ranks: int) -> Shape:
    """Return the shape of the global arrays, without the axis of time steps."""
    if isinstance(p.decomposition, MapFile):
        return p.decomposition.map.shape
    if p.shape is not None:
        return p.shape
    assert p.shape_per_rank is not None
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
