"""The calls of all ranks in one repetition of a case.

Each rank is asked, but for workloads whose calls are alike on all ranks, and where an array is cut
regularly: its cuts then say how many parts have one shape and lie alike in the chunks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.registry import backend_class
from pffbench.case import Case, Parameters
from pffbench.errors import UserError
from pffbench.parallel.decomposition import Box, Shape, part_lengths
from pffbench.parallel.topology import Topology
from pffbench.plugins import load, plugins
from pffbench.workloads.base import Workload
from pffbench.workloads.chunk_cache import ChunkCacheParameters
from pffbench.workloads.datasets import DatasetsParameters
from pffbench.workloads.hyperslab import HyperslabParameters, global_shape
from pffbench.workloads.registry import workload
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
    """Arrays that differ in name, place and owner only.

    Parameters
    ----------
    spec : ArraySpec
        One of them.
    times : int
        Number of them in all stores.
    """

    spec: ArraySpec
    times: int


class AlikeCalls(msgspec.Struct, frozen=True):
    """Library calls on boxes of one shape, which lie alike in their arrays.

    Parameters
    ----------
    access : Access
        One of them.
    times : int
        Number of them, of all ranks.
    """

    access: Access
    times: int


class Exchanged(msgspec.Struct, frozen=True):
    """What ranks send to writers, of one array or step.

    Parameters
    ----------
    elements : int
        Elements that ranks send to other ranks.
    largest : int
        Elements of the part and the boxes of the writer that holds most.
    """

    elements: int
    largest: int


class KindCalls(msgspec.Struct, frozen=True):
    """Arrays of one kind of a case, and the calls that move them.

    Parameters
    ----------
    parameters : Parameters
        The case with arrays of this kind only, and one of them.
    arrays : list of AlikeArrays
        The arrays of all stores.
    writes, reads : list of AlikeCalls
        The calls of all ranks.
    opened : int
        Arrays that ranks open to read, added up over the ranks.
    writers, readers : sequence of int, optional
        The ranks that open a store to write, and to read; None where all do.
    exchanged : Exchanged, optional
        Where data go through writers.
    """

    parameters: Parameters
    arrays: list[AlikeArrays]
    writes: list[AlikeCalls]
    reads: list[AlikeCalls]
    opened: int
    writers: Sequence[int] | None = None
    readers: Sequence[int] | None = None
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
    if reason := _not_counted(case.parameters):
        raise UserError(f"workload {case.parameters.workload} has no footprint here: {reason}")
    return [_of_kind(case, one, topology) for _, one in case.parameters.each]


def _not_counted(p: Parameters) -> str | None:
    """Return why the calls of a case are not known before it runs, or None."""
    kind: type[Parameters] = type(p)
    if kind not in _KNOWN and (location := plugins(_GROUP).get(p.workload)):
        kind = load(location)
    if kind not in _KNOWN or not isinstance(p, kind):  # it may move data in its own way
        return "its calls are not known before it runs"
    if isinstance(p, UpdatesParameters) and p.change == "append":
        return "files and bytes of appended rows are not counted"
    if p.irregular and workload(p.workload).exchanges(p):
        return "parts of a decomposition map that go through writers are not counted"
    return None


def _of_kind(case: Case, p: Parameters, topology: Topology) -> KindCalls:
    pattern, ranks = workload(p.workload), topology.size
    alone, times = _one_array(p, ranks)
    if pattern.exchanges(p):
        return _through_writers(case, alone, times, topology)
    alone = _each_its_own(alone)
    if isinstance(alone, StartupParameters):
        return _of_startup(alone, topology)
    arrays, writes, opened = _regular(case, alone, ranks, times)
    if not writes:
        _check_number(alone, ranks)
        arrays = _arrays(pattern, alone, ranks, times)
        writes, opened = _asked(pattern.writes, alone, ranks, times)
    if pattern.reads_elsewhere(alone) or not isinstance(alone, HyperslabParameters):
        _check_number(alone, ranks)
        reads, opened = _asked(pattern.reads, alone, ranks, times)
        return KindCalls(alone, arrays, writes, reads, opened)
    return KindCalls(alone, arrays, writes, writes, opened)


def _one_array(p: Parameters, ranks: int) -> tuple[Any, int]:
    """Return the parameters with one array in place of several alike, and their number."""
    if isinstance(p, HyperslabParameters) and isinstance(p.arrays, int):
        return replace(p, arrays=1), p.arrays
    if isinstance(p, DatasetsParameters) and p.layout == "shared":
        total = workload(p.workload).volume(p, ranks).arrays
        return replace(p, datasets=1, datasets_per_rank=None), total
    return p, 1


def _each_its_own(p: Parameters) -> Parameters:
    """Return the parameters in which a rank sees its own arrays alone, wherever they lie."""
    if p.file_layout == "shared":
        return p
    return replace(
        p, layout="file_per_process", group=None, within=None, file_groups=None,
        transfer="independent",
    )  # fmt: skip


def _unplaced(spec: ArraySpec) -> ArraySpec:
    """Return an array without name and place: equal for equal ones."""
    return replace(spec, name="", number=0, origin=(), logical_shape=(), offset=0, owner=None)


# ---- alike on all ranks, or regular


def _of_startup(p: StartupParameters, topology: Topology) -> KindCalls:
    """Return the calls of rank 0, which writes, and of the ranks that read: the same of each."""
    pattern = workload(p.workload)
    leaders = np.unique(topology.nodes, return_index=True)[1].tolist()
    some = {"root_bcast": [0], "node_leader_bcast": leaders, "node_leader_shared": leaders}
    readers = some.get(p.strategy)
    count = topology.size if readers is None else len(readers)
    mine = pattern.writes(p, topology.size, 0)
    writes = [AlikeCalls(access, 1) for access in mine]
    reads = [AlikeCalls(access, count) for access in mine]
    alike = Counter(_unplaced(access.spec) for access in mine)
    arrays = [AlikeArrays(spec, times) for spec, times in alike.items()]
    return KindCalls(p, arrays, writes, reads, len(mine) * count, [0], readers)


def _regular(
    case: Case, p: Parameters, ranks: int, times: int
) -> tuple[list[AlikeArrays], list[AlikeCalls], int]:
    """Return arrays, writes and opened arrays of a regular cut; nothing where it is not one."""
    if not isinstance(p, HyperslabParameters) or p.irregular or p.layout == "file_per_group":
        return [], [], 0
    pattern = workload(p.workload)
    if p.layout == "shared":
        (spec,) = pattern.arrays(p, ranks, 0)
        calls = list(_of_parts(case, p, spec, pattern.cuts(p, ranks), times))
        return [AlikeArrays(_unplaced(spec), times)], calls, ranks * times
    lengths = part_lengths(_with_steps(p, global_shape(p, ranks)), pattern.cuts(p, ranks))
    counts = [Counter(axis) for axis in lengths]
    found = [
        (spec, prod(count[n] for count, n in zip(counts, spec.shape, strict=True)) * times)
        for spec in pattern.kinds(replace(p, layout="own"), ranks)
    ]
    calls = [
        AlikeCalls(Access(spec, box), count)
        for spec, count in found
        for box in _by_step(p, spec.whole)
    ]
    arrays = [AlikeArrays(_unplaced(spec), count) for spec, count in found]
    return arrays, calls, sum(count for _, count in found)


def _with_steps(p: HyperslabParameters, shape: Shape) -> Shape:
    return shape if p.steps is None else (p.steps, *shape)


def _by_step(p: HyperslabParameters, box: Box) -> Iterator[Box]:
    """Yield the box of each call of a box with all steps."""
    if p.steps is None:
        yield box
        return
    for step in range(p.steps):
        yield Box((step, *box.start[1:]), (1, *box.shape[1:]))


def _of_parts(
    case: Case, p: HyperslabParameters, spec: ArraySpec, cuts: Sequence[Shape], times: int
) -> Iterator[AlikeCalls]:
    """Yield the calls on the parts of an array that all ranks share."""
    unit = _unit(case, spec)
    axes = [
        _alike_along(n, axis, length)
        for n, axis, length in zip(spec.shape, cuts, unit, strict=True)
    ]
    for place in product(*(axis.items() for axis in axes)):
        starts, stops = zip(*(ends for ends, _ in place), strict=True)
        part = Box(starts, tuple(b - a for a, b in zip(starts, stops, strict=True)))
        count = prod(number for _, number in place)
        for box in _by_step(p, part):
            yield AlikeCalls(Access(spec, box), count * times)


def _alike_along(n: int, cuts: Shape, unit: int) -> dict[tuple[int, int], int]:
    """Return one interval of each kind along an axis, with its number.

    Those of one kind have one length and lie alike in the units, and to the end of the axis.
    """
    found: dict[Shape, tuple[tuple[int, int], int]] = {}
    for start, stop in zip((0, *cuts), (*cuts, n), strict=True):
        kind = stop - start, start % unit, min(n - stop, unit)
        first, count = found.get(kind, ((start, stop), 0))
        found[kind] = first, count + 1
    return dict(found.values())


def _unit(case: Case, spec: ArraySpec) -> Shape:
    """Return the shape of a chunk, or of a shard; of the array where there is none."""
    unit = backend_class(case.parameters.backend).storage(spec, case.options).unit
    return unit or spec.shape


# ---- asked rank by rank


def _check_number(p: Parameters, ranks: int) -> None:
    """Refuse to ask too many ranks."""
    if ranks > MOST_ASKED:
        raise UserError(
            f"workload {p.workload}: the calls of each rank are asked for here; take at most "
            f"{MOST_ASKED} ranks, not {ranks}"
        )


def _asked(
    accesses: Callable[[Any, int, int], list[Access]], p: Parameters, ranks: int, times: int
) -> tuple[list[AlikeCalls], int]:
    """Return the calls of all ranks, and the number of arrays of each rank, added up."""
    found, opened = list[AlikeCalls](), 0
    for rank in range(ranks):
        mine = accesses(p, ranks, rank)
        found += [AlikeCalls(access, times) for access in mine]
        opened += len({access.spec for access in mine}) * times
    return found, opened


def _arrays(pattern: Workload, p: Parameters, ranks: int, times: int) -> list[AlikeArrays]:
    groups = p.groups(ranks)
    firsts: Iterable[int] = range(ranks)
    if p.file_layout == "shared":
        firsts = (groups.group(index).start for index in range(groups.files))
    found = Counter(_unplaced(spec) for rank in firsts for spec in pattern.arrays(p, ranks, rank))
    return [AlikeArrays(spec, count * times) for spec, count in found.items()]


# ---- through writers


def _through_writers(
    case: Case, p: HyperslabParameters, times: int, topology: Topology
) -> KindCalls:
    ranks, pattern, shape = topology.size, workload(p.workload), global_shape(p, topology.size)
    (spec,) = pattern.arrays(p, ranks, 0)
    unit = _unit(case, spec)
    direct = replace(p, rearrange="none", writers="all", steps=None)
    parts = [pattern.writes(direct, ranks, rank)[0].box for rank in range(ranks)]
    writers = WriterRanks.of(p.writers, topology)
    placed = parts_of_writers(p.rearrange, writers, parts, shape, unit[-len(shape) :])
    calls = list(_calls_of_writers(spec, placed, unit, p.steps, times))
    return KindCalls(
        p,
        [AlikeArrays(_unplaced(spec), times)],
        calls,
        calls,
        len(placed) * times,
        tuple(placed),
        tuple(placed),
        _exchanged(parts, placed, (p.steps or 1) * times),
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
