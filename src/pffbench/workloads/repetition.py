"""One repetition of a case on one rank: what it uses, what it measures and what was observed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Backend, Store
from pffbench.backends.hints import FileHints
from pffbench.backends.inspection import StoredAs
from pffbench.case import Case, Parameters, Stage
from pffbench.data import Source
from pffbench.data.verify import Mismatch
from pffbench.geometry.groups import FileGroups
from pffbench.mpi.agreement import AgreedStep
from pffbench.mpi.topology import Team
from pffbench.observe.allocator import TransferBuffer
from pffbench.observe.clock import PhaseClock
from pffbench.observe.process_counters import PeakMemory
from pffbench.storage.block_device import DeviceReads
from pffbench.storage.durability import DiskUsage
from pffbench.storage.page_cache import CacheProof
from pffbench.storage.scratch import Scratch
from pffbench.workloads.arrays import CaseArrays
from pffbench.workloads.base import Workload

if TYPE_CHECKING:
    from pffbench.workloads.route import Route


class Place(msgspec.Struct, frozen=True):
    """What a repetition uses on this rank: the ranks, a directory, memory and a clock."""

    #: The ranks.
    team: Team
    #: Directory in which files may be created and removed.
    scratch: Scratch
    #: This repetition's directory in it; it exists, and is empty unless another job wrote.
    directory: str
    #: Times the phases.
    clock: PhaseClock
    #: Bytes that a rank's buffers may use; more data are moved in batches of this size.
    memory: int
    #: Memory for transfers; the next repetition may reuse it.
    buffer: TransferBuffer = msgspec.field(default_factory=TransferBuffer)
    #: Watches the peak memory of the repetition.
    peak: PeakMemory = msgspec.field(default_factory=PeakMemory)
    #: The open stores, to be closed after a failure.
    open_stores: list[Store] = msgspec.field(default_factory=list)

    @property
    def path(self) -> str:
        """Path of this repetition's directory."""
        return self.scratch.path(self.directory)

    @property
    def keeps_directory(self) -> bool:
        """Whether this rank looks after the directory: rank 0, or one rank of each node."""
        return self.team.keeps(node_local=self.scratch.node_local)


class Subject(msgspec.Struct, frozen=True):
    """What a repetition measures: a case, and the objects that it names."""

    #: The case.
    case: Case
    #: The objects that it names.
    workload: Workload
    backend: Backend
    source: Source
    #: Its arrays, and the calls that move them.
    arrays: CaseArrays
    #: Data of arrays of other types than the case's, by type.
    sources_by_type: Mapping[str, Source] = {}
    #: Suffix of the store's name, if the store was made from another one.
    store_suffix: str = ""

    @property
    def parameters(self) -> Parameters:
        """The parameters of the case."""
        return self.case.parameters

    @property
    def collective(self) -> bool:
        """Whether data are moved by collective calls."""
        return self.parameters.transfer == "collective"

    @property
    def shifted(self) -> bool:
        """Whether each rank reads what its partner wrote."""
        return self.parameters.cache == "shifted"

    @property
    def returns_arrays(self) -> bool:
        """Whether the library returns a new array for each read."""
        return self.parameters.transfer_of_reads in self.backend.new_arrays

    @property
    def keeps_data(self) -> bool:
        """Whether what is written can be read back."""
        return not self.backend.capabilities.discards

    @property
    def equal_memory(self) -> bool:
        """Whether all libraries get memory of equal state; see `Allocator`."""
        return self.parameters.settings == "matched"

    def source_of(self, spec: ArraySpec) -> Source:
        """Return the data of an array, which may have its own type."""
        return self.sources_by_type.get(spec.dtype, self.source)


class Request(msgspec.Struct, frozen=True):
    """What the run asks of a repetition."""

    #: All in one job, or writing and reading in separate jobs.
    stage: Stage = "all"
    #: Number of times that the data are read.
    reads: int = 1
    #: Whether its times do not count.
    warmup: bool = False
    #: Whether to inspect the storage layout of the arrays.
    inspect: bool = True
    #: Whether the rows that are lost are counted, and those that there are.
    counts_rows: bool = False
    #: Whether rows may be lost, which makes any other run INVALID.
    unsafe: bool = False
    #: The site's command that drops the page cache of a node.
    drop_hook: str | None = None


class Observed(msgspec.Struct):
    """Observations of one rank in one repetition, other than times."""

    mismatches: list[Mismatch] = msgspec.field(default_factory=list)
    verified_bytes: int = 0
    cache: CacheProof | None = None
    disk: DiskUsage | None = None
    stored_as: StoredAs | None = None
    facts: dict[str, str] = msgspec.field(default_factory=dict)
    hints: list[FileHints] = msgspec.field(default_factory=list)
    hints_of_reading: list[FileHints] = msgspec.field(default_factory=list)
    remarks: list[str] = msgspec.field(default_factory=list)
    #: Seconds of work that only the first repetition of a case does.
    once: float = 0.0
    counts: dict[tuple[str, str], float] = msgspec.field(default_factory=dict)
    #: How often everything was read so far; the times of reading are sums over that.
    reads: int = 1
    #: Bytes that the kernel delivered to this process, and fetched from a device for it, while it
    #: read; NaN if not known.
    kernel_bytes: float = math.nan
    device_bytes: float = math.nan
    #: Of `kernel_bytes`, those of the kernel's own files that pffbench read meanwhile.
    own_bytes: float = 0.0
    #: Bytes of memory that this process added while it read, at most; 0 where the kernel does not
    #: let it be seen.
    added_memory: float = 0.0
    #: With a dropped cache: bytes in the page cache after reading, over all nodes.
    resident_after: int | None = None
    #: With a dropped cache: what the device of this node read meanwhile for all programs, on one
    #: rank of the node; 0 on the others.
    device_reads: DeviceReads = DeviceReads()
    #: Number of memory blocks that data were moved through, by size.
    blocks: Counter[int] = msgspec.field(default_factory=Counter)
    #: Phases and errors of calls that moved fewer bytes than requested, which the next step reports
    #: to all ranks.
    short_transfers: list[tuple[str, OSError]] = msgspec.field(default_factory=list)

    def count(self, phase: str, what: str, amount: float) -> None:
        """Add to a counter of this rank in a phase."""
        self.counts[phase, what] = self.counts.get((phase, what), 0.0) + amount

    def keep_most(self, phase: str, what: str, amount: float) -> None:
        """Keep the largest value of a counter of this rank in a phase."""
        self.counts[phase, what] = max(self.counts.get((phase, what), 0.0), float(amount))


class Repetition(msgspec.Struct, frozen=True):
    """One repetition of a case on one rank."""

    #: What it uses.
    place: Place
    #: What it measures.
    subject: Subject
    #: What the run asks of it.
    request: Request = Request()
    #: What was observed so far.
    observed: Observed = msgspec.field(default_factory=Observed)
    #: Observers of the phases that move data, in addition to those of every workload; see
    #: `pffbench.workloads.observers`.
    observers: tuple[Callable[..., Callable[[], None] | None], ...] = ()
    #: Makes the route of a workload that has its own; see `pffbench.workloads.route`.
    route: Callable[..., Route] | None = None

    def of(self, **changes: Any) -> Repetition:
        """Return the repetition of a subject with other fields."""
        return replace(self, subject=replace(self.subject, **changes))

    def with_parameters(self, parameters: Parameters) -> Repetition:
        """Return the repetition of a case with other parameters, and so with other arrays."""
        arrays = self.subject.workload.arrays(parameters, self.place.team.size)
        return self.of(case=replace(self.subject.case, parameters=parameters), arrays=arrays)

    @property
    def groups(self) -> FileGroups:
        """Which ranks share a file."""
        return self.subject.parameters.groups(self.place.team.size)

    @property
    def owner(self) -> int:
        """The number of this rank as an owner of arrays."""
        return self.groups.owner(self.place.team.rank)

    @property
    def keeps_file(self) -> bool:
        """Whether this rank copies and removes its file, for all that share it."""
        return self.groups.keeps(self.place.team.rank)

    @property
    def comm(self) -> Any:
        """Communicator to open the store with that this rank writes to; None for one rank."""
        return None if self.groups.alone else self.place.team.of_file(self.groups)

    @property
    def read_comm(self) -> Any:
        """Communicator to open the store with that this rank reads; None for one rank."""
        if not self.subject.shifted:
            return self.comm
        return None if self.groups.alone else self.place.team.of_file(self.groups, shifted=True)

    @property
    def author(self) -> int:
        """The rank that wrote the part that this rank reads."""
        team = self.place.team
        return team.topology.partners[team.rank] if self.subject.shifted else team.rank

    @property
    def path(self) -> str:
        """The store that this rank writes to."""
        return self.path_of(self.place.team.rank)

    @property
    def read_path(self) -> str:
        """The store that this rank reads."""
        return self.path_of(self.author)

    def path_of(self, rank: int) -> str:
        """Return the store of a rank."""
        place, subject = self.place, self.subject
        stem = subject.parameters.file_stem(self.groups.index(rank))
        name = stem + subject.store_suffix + subject.backend.suffix
        return place.scratch.path(place.directory, name)

    def step(self, name: str) -> AgreedStep:
        """Return the context manager of an untimed step.

        It fails if calls before it moved too little, named by their phase: so all ranks learn of
        that without an additional step.
        """
        self.place.clock.tell(name)
        short = self.observed.short_transfers
        phase, error = short[0] if short else (name, None)
        return AgreedStep(self.place.team.comm, phase, error)
