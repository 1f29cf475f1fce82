"""The plan of a run: its cases, and the bytes, files and memory that each needs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import prod
from typing import TypeVar

import msgspec

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Cuts
from pffbench.backends.registry import backend_class
from pffbench.case import Case, Parameters, itemsize
from pffbench.experiment.schema import Experiment
from pffbench.parallel.decomposition import part_lengths
from pffbench.workloads.base import CaseTotals
from pffbench.workloads.registry import workload

P = TypeVar("P", bound=Parameters)


class Contents(msgspec.Struct, frozen=True):
    """Facts about the arrays of a case that a plan needs.

    Parameters
    ----------
    volume : Volume
        Number of arrays and bytes.
    kinds : list of ArraySpec
        One array of each kind, that of rank 0 first; empty where rank 0 opens none.
    held : int
        Bytes that a rank holds at a time at least: its longest call, or more.
    cuts : tuple of tuple of int
        Boundaries of the arrays that all ranks write together; empty where there are none.
    """

    volume: CaseTotals
    kinds: list[ArraySpec]
    held: int
    cuts: Cuts

    @property
    def blocks(self) -> list[int]:
        """Sizes in bytes of the blocks of memory that data move through: a call's, and chunks."""
        chunks = [(kind.chunks, kind.itemsize) for kind in self.kinds]
        return [self.held, *(prod(shape) * n for shape, n in chunks if isinstance(shape, tuple))]


def of_arrays(parameters: P) -> P:
    """Return parameters with source, durability and cache state reset: equal for equal arrays.

    A sweep over such parameters inspects its arrays once.
    """
    return msgspec.structs.replace(
        parameters, source="uniform", file=None, variable=None, durability="close", cache="warm"
    )


def contents_of(parameters: Parameters, ranks: int) -> Contents:
    """Return the contents of cases whose parameters have passed the checks."""
    return _contents(of_arrays(parameters), ranks)


@lru_cache(maxsize=1024)
def _contents(parameters: Parameters, ranks: int) -> Contents:
    pattern = workload(parameters.workload)
    return Contents(
        pattern.volume(parameters, ranks),
        pattern.kinds(parameters, ranks),
        pattern.held(parameters, ranks),
        pattern.cuts(parameters, ranks) if parameters.file_layout == "shared" else (),
    )


#: Space that a format adds to the data: metadata, and partly filled file system blocks.
_FORMAT_OVERHEAD = 1.1
_BLOCK = 4096
#: Largest number of copies of the rank's buffer: its own, and one of the library.
_COPIES = 2


class Cost(msgspec.Struct, frozen=True, gc=False):
    """Cost of one repetition of a case.

    Parameters
    ----------
    nbytes : int
        Bytes of array data, all ranks.
    arrays : int
        Arrays that are defined, all ranks.
    files : int
        Files on disk, as far as they are known beforehand.
    space : int
        Bytes on disk, an upper estimate.
    memory : int
        Bytes of memory on the rank that needs most, without the libraries themselves; writer ranks
        need more.
    writer_memory, writer_memory_of_rank : int
        Bytes that a writer rank holds, and more bytes for each rank of its node; 0 where there are
        no writer ranks.
    calls : int
        Calls of all ranks together to write, where each rank makes one for the arrays of every
        rank; else 0.
    """

    nbytes: int
    arrays: int
    files: int
    space: int
    memory: int
    writer_memory: int = 0
    writer_memory_of_rank: int = 0
    calls: int = 0

    def memory_of_writer(self, ranks_of_node: int) -> int:
        """Return the bytes that a writer rank holds on a node with so many ranks."""
        return self.writer_memory + self.writer_memory_of_rank * ranks_of_node


def cost_of(case: Case, ranks: int, budget: int, contents: Contents | None = None) -> Cost:
    """Estimate the cost of a case.

    Parameters
    ----------
    case : Case
        A case that has been checked.
    ranks : int
        Number of ranks.
    budget : int
        Bytes that the buffers of a rank may take.
    contents : Contents, optional
        Its arrays, where they are known already.
    """
    p = case.parameters
    backend = backend_class(p.backend)
    contents = contents or contents_of(p, ranks)
    volume = contents.volume
    memory = _COPIES * max(contents.held, min(budget, -(-volume.nbytes // ranks)))
    groups = p.groups(ranks)
    square = p.file_layout == "own" and p.transfer == "collective" and groups.largest > 1
    calls = volume.arrays * groups.largest * (getattr(p, "steps", None) or 1) if square else 0
    more = (*workload(p.workload).held_by_writer(p, ranks), calls)
    if backend.capabilities.discards:
        return Cost(volume.nbytes, volume.arrays, 0, 0, memory, *more)
    stored = [_stored(case, one, ranks) for _, one in p.each]
    files = groups.files + sum(n for n, _ in stored)
    space = sum(nbytes for _, nbytes in stored) + files * _BLOCK
    copies = copies_of_file(case)
    return Cost(volume.nbytes, volume.arrays, copies * files, copies * space, memory, *more)


def _stored(case: Case, p: Parameters, ranks: int) -> tuple[int, int]:
    """Return the files of arrays of one kind beside their stores, and the bytes of their data.

    Parameters
    ----------
    case : Case
        The case.
    p : Parameters
        Its parameters, with arrays of one kind only.
    ranks : int
        Number of ranks.
    """
    backend, contents = backend_class(p.backend), contents_of(p, ranks)
    volume, times = contents.volume, _FORMAT_OVERHEAD
    files = volume.arrays * (backend.file_per != "store")
    if contents.kinds:
        spec = contents.kinds[0]
        stored = backend.storage(spec, case.options)
        # In turns, arrays but the first are created when the length of their axes is known.
        times *= stored.padding if workload(p.workload).defines_first(p) else 1.0
        if backend.file_per == "chunk":
            files += _units(case, p, ranks)
    on_disk = volume.nbytes if volume.extent is None else volume.extent
    return files, int(on_disk * times)


def _units(case: Case, p: Parameters, ranks: int) -> int:
    """Count the chunks or shards of all arrays of one kind."""
    pattern, contents = workload(p.workload), contents_of(p, ranks)
    storage = backend_class(p.backend).storage
    if p.layout == "file_per_group" and p.file_layout == "shared":
        groups = p.groups(ranks)
        firsts = [groups.group(index).start for index in range(groups.files)]
        specs = [spec for first in firsts for spec in pattern.arrays(p, ranks, first)]
        return sum(_count_units(spec, storage(spec, case.options).unit) for spec in specs)
    spec, arrays = contents.kinds[0], contents.volume.arrays
    unit = storage(spec, case.options).unit
    if unit is None or p.file_layout == "shared" or spec.shape == spec.logical_shape:
        return arrays * _count_units(spec, unit)
    # Each part of a global array is an array, and the parts are of unequal lengths.
    own = msgspec.structs.replace(p, layout="own", group=None, within=None, file_groups=None)
    lengths = part_lengths(spec.logical_shape, pattern.cuts(own, ranks))
    units = prod(sum(-(-n // c) for n in axis) for axis, c in zip(lengths, unit, strict=True))
    return arrays // prod(map(len, lengths)) * units


def copies_of_file(case: Case) -> int:
    """Return the number of copies of a case's files that exist at a time."""
    p = case.parameters
    return 2 if workload(p.workload).makes_another(p) else 1


def _count_units(spec: ArraySpec, unit: tuple[int, ...] | None) -> int:
    """Count the chunks, or shards, of an array; where the library chooses, assume 1 MiB each."""
    if unit is None:
        return max(1, prod(spec.shape) * itemsize(spec.dtype) // 2**20)
    return prod(-(-n // c) for n, c in zip(spec.shape, unit, strict=True))


class Plan(msgspec.Struct, frozen=True):
    """The cases of a run.

    Parameters
    ----------
    experiment : Experiment
        The experiment.
    ranks : int
        Number of ranks of the check.
    cases : tuple of Case
        The cases, in the order of the first block.
    left_out : tuple of (str, str)
        Names of the cases that are impossible and may be skipped, each with the reason.
    costs : dict of str to Cost
        Cost of one repetition of each case, by its name.
    limits : tuple of str
        The cases that are left out because of the libraries that are installed: for each backend
        and reason their number, the reason and the remedies. Also why there is no extra cold read.
    remarks : tuple of str
        Options and hints that have no effect, each with the reason, and what else to know.
    """

    experiment: Experiment
    ranks: int
    cases: tuple[Case, ...]
    left_out: tuple[tuple[str, str], ...]
    costs: Mapping[str, Cost]
    limits: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    def is_limit(self, reason: str) -> bool:
        """Whether a case is left out for this reason because of the installed libraries."""
        return any(text.endswith(f": {reason}") for text in self.limits)


def in_environment(plan: Plan, name: str) -> Plan:
    """Return the plan of one environment of a run of several, in which its name is in each case.

    Parameters
    ----------
    plan : Plan
        The plan.
    name : str
        Name of the environment.
    """
    return msgspec.structs.replace(
        plan,
        cases=tuple(msgspec.structs.replace(case, environment=name) for case in plan.cases),
        costs={f"{case}@{name}": cost for case, cost in plan.costs.items()},
        left_out=tuple((f"{case}@{name}", why) for case, why in plan.left_out),
        limits=tuple(f"{name}: {text}" for text in plan.limits),
    )
