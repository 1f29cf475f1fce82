"""The calls of all ranks in one repetition of a case.

Each rank is asked, but for workloads whose calls are alike on all ranks, and where an array is cut
regularly: its edges then say how many parts have one shape and lie alike in the chunks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.registry import backend_class
from pffbench.case import Case, FileCount, Parameters
from pffbench.errors import UserError
from pffbench.experiment.plan import arrays_of
from pffbench.geometry.box import Box, Shape
from pffbench.geometry.cut import Grid
from pffbench.mpi.topology import Topology
from pffbench.plugins import load, plugins
from pffbench.workloads.arrays import CaseArrays, Family, at_once
from pffbench.workloads.chunk_cache import ChunkCacheParameters
from pffbench.workloads.datasets import DatasetsParameters
from pffbench.workloads.hyperslab import HyperslabParameters
from pffbench.workloads.slices import SlicesParameters
from pffbench.workloads.startup import StartupParameters
from pffbench.workloads.transfers import Access
from pffbench.workloads.updates import UpdatesParameters
from pffbench.workloads.writers import WriterRanks, parts_of_writers

#: Most ranks that are asked one by one.
MOST_ASKED = 4096
#: Parameters of the workloads whose repetition makes the calls of `writes` and of `reads` once
#: each, and no others.
_KNOWN = (
    HyperslabParameters, DatasetsParameters, SlicesParameters, ChunkCacheParameters,
    UpdatesParameters, StartupParameters,
)  # fmt: skip
#: Entry points by which a package says that its workload makes the calls of one of these: name of
#: the workload → parameters that its own derive from.
_GROUP = "pffbench.footprint"


class AlikeArrays(msgspec.Struct, frozen=True):
    """Arrays that differ in name, place and owner only."""

    #: One of them.
    spec: ArraySpec
    #: Number of them in all stores.
    times: int


class AlikeCalls(msgspec.Struct, frozen=True):
    """Library calls on boxes of one shape, which lie alike in their arrays."""

    #: One of them.
    access: Access
    #: Number of them, of all ranks.
    times: int


class Exchanged(msgspec.Struct, frozen=True):
    """What ranks send to writers, of one array or step."""

    #: Elements that ranks send to other ranks.
    elements: int
    #: Elements of the part and the boxes of the writer that holds most.
    largest: int


class KindCalls(msgspec.Struct, frozen=True):
    """Arrays of one kind of a case, and the calls that move them."""

    #: The arrays.
    family: Family
    #: The arrays of all stores.
    arrays: list[AlikeArrays]
    #: The calls of all ranks.
    writes: list[AlikeCalls]
    reads: list[AlikeCalls]
    #: Arrays that ranks open to read, added up over the ranks.
    opened: int
    #: The ranks that open a store to write, and to read; None where all do.
    writers: Sequence[int] | None = None
    readers: Sequence[int] | None = None
    #: Where data go through writers.
    exchanged: Exchanged | None = None

    def nbytes(self, calls: Iterable[AlikeCalls]) -> int:
        """Return the bytes of array data that calls move."""
        return sum(one.access.nbytes * one.times for one in calls)


def calls_of(case: Case, topology: Topology) -> list[KindCalls]:
    """Return the calls of a case for each kind of its arrays.

    Raises
    ------
    UserError
        The calls of the workload are not known, or there are too many ranks to ask each.
    """
    arrays = arrays_of(case.parameters, topology.size)
    if reason := _not_counted(case.parameters, arrays):
        raise UserError(f"workload {case.parameters.workload} has no footprint here: {reason}")
    return [_of_kind(case, family, topology) for family in arrays.families]


def _not_counted(p: Parameters, arrays: CaseArrays) -> str | None:
    """Return why the calls of a case are not known before it runs, or None."""
    kind: type[Parameters] = type(p)
    if kind not in _KNOWN and (location := plugins(_GROUP).get(p.workload)):
        kind = load(location)
    if kind not in _KNOWN or not isinstance(p, kind):  # it may move data in its own way
        return "its calls are not known before it runs"
    if any(family.growth for family in arrays.families):
        return "files and bytes of appended rows are not counted"
    if not p.exchanges:
        return None
    if any(family.irregular for family in arrays.families):
        return "parts of a decomposition map that go through writers are not counted"
    whole = all(f.read is f.write is at_once and f.reading is None for f in arrays.families)
    if not whole or p.groups(arrays.families[0].ranks).files > 1:
        return "through writers only whole parts of arrays in one file are counted"
    return None


def _of_kind(case: Case, family: Family, topology: Topology) -> KindCalls:
    # Calls are counted on one array in place of several that are cut alike.
    times = family.count if family.dealt_to is None else 1
    one = replace(family, count=family.count // times)
    if family.writers is not None:
        return _through_writers(case, one, times, topology)
    one = _each_its_own(one)
    if isinstance(one.parameters, StartupParameters):
        return _of_startup(one, one.parameters, topology)
    arrays, writes, opened = _regular(case, one, times)
    if not writes:
        _check_number(one)
        arrays = _arrays(one, times)
        writes, opened = _asked(one, times)
    reads = writes
    if one.reading is not None or one.read is not one.write:
        _check_number(one)
        reads, opened = _asked(one, times, reads=True)
    return KindCalls(one, arrays, writes, reads, opened)


def _each_its_own(family: Family) -> Family:
    """Return the arrays as a rank sees its own alone, wherever they are stored."""
    p = family.parameters
    if p.shares_arrays:
        return family
    alone = replace(p, files="per_rank", transfer="independent")
    return replace(family, parameters=alone)


def _unplaced(spec: ArraySpec) -> ArraySpec:
    """Return an array without name and place: equal for equal ones."""
    return replace(spec, name="", number=0, origin=(), logical_shape=(), offset=0, owner=None)


# ---- alike on all ranks, or regular


def _of_startup(family: Family, p: StartupParameters, topology: Topology) -> KindCalls:
    """Return the calls of rank 0, which writes, and of the ranks that read: the same of each."""
    leaders = np.unique(topology.nodes, return_index=True)[1].tolist()
    some = {"root_bcast": [0], "node_leader_bcast": leaders, "node_leader_shared": leaders}
    readers = some.get(p.strategy)
    count = topology.size if readers is None else len(readers)
    mine = list(family.accesses(0, family.specs(0)))
    writes = [AlikeCalls(access, 1) for access in mine]
    reads = [AlikeCalls(access, count) for access in mine]
    alike = Counter(_unplaced(access.spec) for access in mine)
    arrays = [AlikeArrays(spec, times) for spec, times in alike.items()]
    return KindCalls(family, arrays, writes, reads, len(mine) * count, [0], readers)


def _regular(
    case: Case, family: Family, times: int
) -> tuple[list[AlikeArrays], list[AlikeCalls], int]:
    """Return arrays, writes and opened arrays of a regular cut; nothing where it is not one."""
    p = family.parameters
    regular = isinstance(family.cut, Grid) and family.write is at_once
    if not regular or family.dealt_to is not None or isinstance(p.files, FileCount):
        return [], [], 0
    if family.shared:
        (spec,) = family.specs(0)
        calls = list(_of_parts(case, family, spec, times))
        return [AlikeArrays(_unplaced(spec), times)], calls, family.ranks * times
    counts = [Counter(axis) for axis in family.lengths]
    found = []
    for shape in product(*counts):
        spec = family.spec(Box((0,) * len(shape), shape), 0)
        number = prod(count[n] for count, n in zip(counts, shape, strict=True))
        found.append((spec, number * times))
    calls = [
        AlikeCalls(access, count) for spec, count in found for access in family.accesses(0, [spec])
    ]
    arrays = [AlikeArrays(_unplaced(spec), count) for spec, count in found]
    return arrays, calls, sum(count for _, count in found)


def _of_parts(case: Case, family: Family, spec: ArraySpec, times: int) -> Iterator[AlikeCalls]:
    """Yield the calls on the parts of an array that all ranks share."""
    unit = _unit(case, spec)
    axes = [
        _alike_along(n, axis, length)
        for n, axis, length in zip(spec.shape, family.writer_edges, unit, strict=True)
    ]
    first = 0 if family.steps is None else 1
    for place in product(*(axis.items() for axis in axes)):
        starts, stops = zip(*(ends for ends, _ in place), strict=True)
        part = Box(starts[first:], tuple(b - a for a, b in zip(starts, stops, strict=True))[first:])
        count = prod(number for _, number in place)
        for box in family.by_step(part):
            yield AlikeCalls(Access(spec, box), count * times)


def _alike_along(n: int, edges: Shape, unit: int) -> dict[tuple[int, int], int]:
    """Return one interval of each kind along an axis, with its number.

    Those of one kind have one length and lie alike in the units, and to the end of the axis.
    """
    found: dict[Shape, tuple[tuple[int, int], int]] = {}
    for start, stop in zip((0, *edges), (*edges, n), strict=True):
        kind = stop - start, start % unit, min(n - stop, unit)
        first, count = found.get(kind, ((start, stop), 0))
        found[kind] = first, count + 1
    return dict(found.values())


def _unit(case: Case, spec: ArraySpec) -> Shape:
    """Return the shape of a chunk, or of a shard; of the array where there is none."""
    unit = backend_class(case.parameters.backend).storage(spec, case.options).unit
    return unit or spec.shape


# ---- asked rank by rank


def _check_number(family: Family) -> None:
    """Refuse to ask too many ranks."""
    if family.ranks > MOST_ASKED:
        raise UserError(
            f"workload {family.parameters.workload}: the calls of each rank are asked for here; "
            f"take at most {MOST_ASKED} ranks, not {family.ranks}"
        )


def _asked(family: Family, times: int, *, reads: bool = False) -> tuple[list[AlikeCalls], int]:
    """Return the calls of all ranks, and the number of arrays of each rank, added up."""
    found, opened = list[AlikeCalls](), 0
    for rank in range(family.ranks):
        mine = list(family.accesses(rank, family.specs(rank), reads=reads))
        found += [AlikeCalls(access, times) for access in mine]
        opened += len({access.spec for access in mine}) * times
    return found, opened


def _arrays(family: Family, times: int) -> list[AlikeArrays]:
    groups = family.groups
    firsts: Iterable[int] = range(family.ranks)
    if family.parameters.shares_arrays:
        firsts = (groups.group(index).start for index in range(groups.files))
    found = Counter(_unplaced(spec) for rank in firsts for spec in family.specs(rank))
    return [AlikeArrays(spec, count * times) for spec, count in found.items()]


# ---- through writers


def _through_writers(case: Case, family: Family, times: int, topology: Topology) -> KindCalls:
    p, shape = family.parameters, family.cut.whole
    (spec,) = family.specs(0)
    unit = _unit(case, spec)
    parts = [family.cut.part(rank) for rank in range(family.ranks)]
    writers = WriterRanks.of(p.writers, topology)
    placed = parts_of_writers(p.rearranger, writers, parts, shape, unit[-len(shape) :])
    calls = list(_calls_of_writers(spec, placed, unit, family.steps, times))
    return KindCalls(
        family,
        [AlikeArrays(_unplaced(spec), times)],
        calls,
        calls,
        len(placed) * times,
        tuple(placed),
        tuple(placed),
        _exchanged(parts, placed, (family.steps or 1) * times),
    )


def _calls_of_writers(
    spec: ArraySpec, placed: Mapping[int, Sequence[Box]], unit: Shape, steps: int | None, times: int
) -> Iterator[AlikeCalls]:
    """Yield the calls of the writers: on each array or step as many, some of which move nothing."""
    axes = len(spec.shape) - (steps is not None)
    unit, whole = unit[-axes:], spec.shape[-axes:]
    alike: dict[Any, tuple[Box, int]] = {}
    for box in (box for boxes in placed.values() for box in boxes):
        inside = tuple(a % n for a, n in zip(box.start, unit, strict=True))
        at_end = tuple(b == n for b, n in zip(box.stop, whole, strict=True))
        first, count = alike.get((box.shape, inside, at_end), (box, 0))
        alike[box.shape, inside, at_end] = first, count + 1
    for box, count in alike.values():
        for step in range(steps or 1):
            lead = () if steps is None else (step,)
            moved = Box((*lead, *box.start), (*(1 for _ in lead), *box.shape))
            yield AlikeCalls(Access(spec, moved), count * times)


def _exchanged(parts: Sequence[Box], placed: Mapping[int, Sequence[Box]], times: int) -> Exchanged:
    """Return what is sent to other ranks: all elements but those of a writer's own part."""
    kept = largest = 0
    for rank, boxes in placed.items():
        kept += sum(box.common(parts[rank]).size for box in boxes)
        largest = max(largest, parts[rank].size + sum(box.size for box in boxes))
    return Exchanged((sum(part.size for part in parts) - kept) * times, largest)
