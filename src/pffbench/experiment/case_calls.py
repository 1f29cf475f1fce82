"""The calls of all ranks in one repetition of a case, without listing the ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.registry import backend_class
from pffbench.case import Case, Parameters
from pffbench.errors import UserError
from pffbench.parallel.decomposition import Box, Shape
from pffbench.parallel.rank_classes import AllParts, RankClass
from pffbench.parallel.topology import Topology
from pffbench.workloads.base import Workload
from pffbench.workloads.registry import workload
from pffbench.workloads.transfers import Access

#: Most ranks that are asked one by one, where a workload has no classes of ranks.
MOST_ASKED = 4096


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
        The calls of all ranks, those that move nothing included.
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
    pattern = workload(case.parameters.workload)
    if reason := pattern.without_footprint(case.parameters):
        raise UserError(f"workload {pattern.name} has no footprint here: {reason}")
    return [_of_kind(case, pattern, one, topology) for _, one in case.parameters.each]


def _of_kind(case: Case, pattern: Workload, p: Parameters, topology: Topology) -> KindCalls:
    alone, times = pattern.one_array(p)
    if pattern.exchanges(p):
        return _through_writers(case, pattern, alone, times, topology)
    ranks = topology.size
    alone = _each_its_own(alone)
    classes = _classes(pattern, alone, ranks, _unit(case, alone, ranks))
    openers = pattern.openers(alone, topology)
    writing, reading = (
        classes if some is None else [RankClass(some[0], len(some))] for some in openers
    )
    writes, _ = _calls(pattern.writes, alone, writing, ranks, times)
    reads, opened = _calls(pattern.reads, alone, reading, ranks, times)
    arrays = _arrays(pattern, alone, classes, ranks, times)
    return KindCalls(alone, arrays, writes, reads, opened, *openers)


def arrays_of(case: Case, p: Parameters, ranks: int) -> list[AlikeArrays]:
    """Return the arrays of one kind in all stores of a case.

    Raises
    ------
    UserError
        Ranks have arrays of their own, and there are too many to ask each.
    """
    pattern = workload(p.workload)
    alone, times = pattern.one_array(p)
    alone, classes = _each_its_own(alone), list[RankClass]()
    if alone.file_layout != "shared":
        classes = list(_classes(pattern, alone, ranks, _unit(case, alone, ranks)))
    return _arrays(pattern, alone, classes, ranks, times)


def _each_its_own(p: Parameters) -> Any:
    """Return the parameters in which a rank sees its own arrays alone, wherever they lie."""
    if p.file_layout == "shared":
        return p
    return replace(
        p, layout="file_per_process", group=None, within=None, file_groups=None,
        transfer="independent",
    )  # fmt: skip


def _unit(case: Case, p: Parameters, ranks: int) -> Shape | None:
    """Return the shape of a chunk, or of a shard."""
    kinds = workload(p.workload).kinds(p, ranks)
    return backend_class(p.backend).storage(kinds[0], case.options).unit if kinds else None


def _classes(
    pattern: Workload, p: Parameters, ranks: int, unit: Shape | None
) -> Sequence[RankClass]:
    classes = pattern.rank_classes(p, ranks, unit)
    if classes is not None:
        return classes
    if ranks > MOST_ASKED:
        what = "with a decomposition map " if p.irregular else ""
        raise UserError(
            f"workload {pattern.name} {what}has no closed form of its calls, and each of {ranks} "
            f"ranks would be asked; take at most {MOST_ASKED}"
        )
    return [RankClass(rank, 1) for rank in range(ranks)]


def _arrays(
    pattern: Workload, p: Any, classes: Iterable[RankClass], ranks: int, times: int
) -> list[AlikeArrays]:
    if p.file_layout == "shared":
        groups = p.groups(ranks)
        firsts: Iterable[tuple[int, int]] = (
            (groups.group(i).start, 1) for i in range(groups.files)
        )
    else:
        firsts = ((one.rank, one.count) for one in classes)
    found: Counter[ArraySpec] = Counter()
    for rank, count in firsts:
        for spec in pattern.arrays(p, ranks, rank):
            found[_unplaced(spec)] += count * times
    return [AlikeArrays(spec, count) for spec, count in found.items()]


def _unplaced(spec: ArraySpec) -> ArraySpec:
    """Return an array without name and place: equal for equal ones."""
    return replace(spec, name="", number=0, origin=(), logical_shape=(), offset=0, owner=None)


def _calls(
    accesses: Callable[[Any, int, int], list[Access]],
    p: Parameters,
    classes: Iterable[RankClass],
    ranks: int,
    times: int,
) -> tuple[list[AlikeCalls], int]:
    """Return the calls of all ranks, and the number of arrays of each rank, added up."""
    found, opened = list[AlikeCalls](), 0
    for one in classes:
        mine = accesses(p, ranks, one.rank)
        found += [AlikeCalls(access, one.count * times) for access in mine]
        opened += len({access.spec for access in mine}) * one.count * times
    return found, opened


def _through_writers(
    case: Case, pattern: Workload, p: Any, times: int, topology: Topology
) -> KindCalls:
    ranks = topology.size
    (spec,) = pattern.arrays(p, ranks, 0)
    unit = backend_class(p.backend).storage(spec, case.options).unit or spec.shape
    parts, placed = pattern.through_writers(p, topology, unit)
    steps = p.steps or 1
    calls = list(_calls_of_writers(spec, placed, unit, p.steps, times))
    writers = tuple(placed)
    return KindCalls(
        p,
        [AlikeArrays(_unplaced(spec), times)],
        calls,
        calls,
        len(writers) * times,
        writers,
        writers,
        _exchanged(parts, placed, steps * times),
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


def _exchanged(parts: AllParts, placed: Mapping[int, Sequence[Box]], times: int) -> Exchanged:
    """Return what is sent to other ranks: all elements but those of a writer's own part."""
    starts, shapes = (array.tolist() for array in (parts.start, parts.stop - parts.start))
    kept = largest = 0
    for rank, boxes in placed.items():
        own = Box(tuple(starts[rank]), tuple(shapes[rank]))
        kept += sum(box.common(own).size for box in boxes)
        largest = max(largest, own.size + sum(box.size for box in boxes))
    return Exchanged((int(parts.sizes.sum()) - kept) * times, largest)
