"""The plan of a run: its cases, and the bytes, files and memory that each needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from math import prod

import msgspec
from msgspec.structs import fields, replace

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.registry import backend_class
from pffbench.case import Case, Parameters, itemsize, keys_that_are
from pffbench.experiment.schema import Experiment
from pffbench.workloads.arrays import CaseArrays, Family, Volume
from pffbench.workloads.registry import workload
from pffbench.workloads.writers import memory_of_writer


def arrays_of(parameters: Parameters, ranks: int) -> CaseArrays:
    """Return the arrays of a case whose parameters have passed the checks.

    A sweep over data, durability and cache states finds them once, so the families have the usual
    values of these keys, see `as_in`.
    """
    return _arrays(replace(parameters, **_usual_data(type(parameters))), ranks)


@cache
def _usual_data(kind: type[Parameters]) -> Mapping[str, object]:
    of_data = keys_that_are(kind, "data")
    return {f.name: f.default for f in fields(kind) if f.name in of_data}


@lru_cache(maxsize=1024)
def _arrays(parameters: Parameters, ranks: int) -> CaseArrays:
    return workload(parameters.workload).arrays(parameters, ranks)


def as_in(case: Parameters, family: Family) -> Parameters:
    """Return the parameters of a family with the data, durability and cache state of the case."""
    of_data = {key: getattr(case, key) for key in keys_that_are(type(case), "data")}
    return replace(family.parameters, **of_data)


#: Space that a format adds to the data: metadata, and partly filled file system blocks.
_FORMAT_OVERHEAD = 1.1
_BLOCK = 4096
#: Largest number of copies of the rank's buffer: its own, and one of the library.
_COPIES = 2


class Cost(msgspec.Struct, frozen=True, gc=False):
    """Cost of one repetition of a case."""

    #: Bytes of array data, all ranks.
    nbytes: int
    #: Arrays that are defined, all ranks.
    arrays: int
    #: Files on disk, as far as they are known beforehand.
    files: int
    #: Bytes on disk, an upper estimate.
    space: int
    #: Bytes of memory on the rank that needs most, without the libraries themselves; writer ranks
    #: need more.
    memory: int
    #: Bytes that a writer rank holds, and more bytes for each rank of its node; 0 where there are
    #: no writer ranks.
    writer_memory: int = 0
    writer_memory_of_rank: int = 0
    #: Calls of all ranks together to write, where each rank makes one for the arrays of every rank;
    #: else 0.
    calls: int = 0

    def memory_of_writer(self, ranks_of_node: int) -> int:
        """Return the bytes that a writer rank holds on a node with so many ranks."""
        return self.writer_memory + self.writer_memory_of_rank * ranks_of_node


def cost_of(case: Case, ranks: int, budget: int) -> Cost:
    """Estimate the cost of a case.

    Parameters
    ----------
    case : Case
        A case that has been checked.
    ranks : int
        Number of ranks.
    budget : int
        Bytes that the buffers of a rank may take.
    """
    p = case.parameters
    backend, arrays = backend_class(p.backend), arrays_of(p, ranks)
    volume = arrays.volume
    memory = _COPIES * max(arrays.held, min(budget, -(-volume.nbytes // ranks)))
    held = max(map(memory_of_writer, arrays.families), key=sum)
    more = (*held, _square_calls(case, arrays))
    if backend.capabilities.discards:
        return Cost(volume.nbytes, volume.arrays, 0, 0, memory, *more)
    turns = arrays.in_turns
    stored = [_stored(case, family, total, turns) for family, total in arrays.counted]
    files = p.groups(ranks).files + sum(n for n, _ in stored)
    space = sum(nbytes for _, nbytes in stored) + files * _BLOCK
    copies = copies_of_file(case, ranks)
    return Cost(volume.nbytes, volume.arrays, copies * files, copies * space, memory, *more)


def _square_calls(case: Case, arrays: CaseArrays) -> int:
    """Return the calls of all ranks to write, if each makes one for the arrays of every rank."""
    p, groups = case.parameters, arrays.families[0].groups
    if p.arrays == "shared" or p.transfer != "collective" or groups.largest == 1:
        return 0
    return sum(v.arrays * groups.largest * (f.steps or 1) for f, v in arrays.counted)


def _stored(case: Case, family: Family, volume: Volume, in_turns: bool) -> tuple[int, int]:
    """Return the files of arrays of one kind beside their stores, and the bytes of their data."""
    backend = backend_class(case.parameters.backend)
    files = volume.arrays * (backend.file_per != "store")
    # In turns, arrays but the first are created when the length of their axes is known.
    padding = 1.0 if in_turns else backend.storage(family.kinds[0], case.options).padding
    if backend.file_per == "chunk":
        files += _units(case, family, volume)
    return files, int(volume.disk_bytes * (_FORMAT_OVERHEAD * padding))


def _units(case: Case, family: Family, volume: Volume) -> int:
    """Count the chunks or shards of all arrays of one kind."""
    storage = backend_class(case.parameters.backend).storage
    if family.shared:
        specs = (family.spec(box, None) for box in family.boxes)
        each = (_count_units(s, storage(s, case.options).unit) for s in specs)
        return family.count * sum(each)
    if family.dealt_to is not None:
        (spec,) = family.kinds
        return volume.arrays * _count_units(spec, storage(spec, case.options).unit)
    # Each part of a global array is an array, and the parts are of unequal lengths.
    lengths = [Counter(axis) for axis in family.lengths]
    return family.count * sum(
        prod(count[n] for count, n in zip(lengths, spec.shape[-len(lengths) :], strict=True))
        * _count_units(spec, storage(spec, case.options).unit)
        for spec in family.kinds
    )


def copies_of_file(case: Case, ranks: int) -> int:
    """Return the number of copies of a case's files that exist at a time."""
    p = case.parameters
    return 2 if arrays_of(p, ranks).second_store else 1


def _count_units(spec: ArraySpec, unit: tuple[int, ...] | None) -> int:
    """Count the chunks, or shards, of an array; where the library chooses, assume 1 MiB each."""
    if unit is None:
        return max(1, prod(spec.shape) * itemsize(spec.dtype) // 2**20)
    rows, *inner = spec.shape
    shape = (rows + spec.growth, *inner)
    return prod(-(-n // c) for n, c in zip(shape, unit, strict=True))


class Plan(msgspec.Struct, frozen=True):
    """The cases of a run."""

    #: The experiment.
    experiment: Experiment
    #: Number of ranks of the check.
    ranks: int
    #: The cases, in the order of the first round.
    cases: tuple[Case, ...]
    #: Names of the cases that are impossible and may be skipped, each with the reason.
    left_out: tuple[tuple[str, str], ...]
    #: Cost of one repetition of each case, by its name.
    costs: Mapping[str, Cost]
    #: The cases that are left out because of the libraries that are installed: for each backend and
    #: reason their number, the reason and the remedies. Also why there is no extra cold read.
    limits: tuple[str, ...] = ()
    #: Options and hints that have no effect, each with the reason, and what else to know.
    remarks: tuple[str, ...] = ()
    #: With ``unsafe: true``: why every other run refuses a case, by the name of the case.
    unsafe: Mapping[str, str] = {}

    @property
    def is_staged(self) -> bool:
        """Whether another job reads, so that the files of all repetitions exist at a time."""
        return any(case.parameters.cache == "separate" for case in self.cases)

    @property
    def peak_space(self) -> int:
        """Bytes on disk at a time, an upper estimate."""
        return self._at_a_time([cost.space for cost in self.costs.values()])

    @property
    def peak_files(self) -> int:
        """Files at a time, as far as they are known beforehand."""
        return self._at_a_time([cost.files for cost in self.costs.values()])

    def _at_a_time(self, of_cases: Sequence[int]) -> int:
        """Return the sum over all cases and rounds, or the most of a case if only one exists."""
        return self.experiment.rounds * sum(of_cases) if self.is_staged else max(of_cases)

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
