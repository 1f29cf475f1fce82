"""One repetition of a case on one rank: its resources and its observations."""

from __future__ import annotations

import math
import mmap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pffbench.backends.base import Backend, Buffer, Store, StoredAs
from pffbench.case import Case, Stage
from pffbench.data import Source
from pffbench.data.verify import Mismatch
from pffbench.parallel.agreement import AgreedStep
from pffbench.parallel.clock import PhaseClock
from pffbench.parallel.process_counters import PeakMemory
from pffbench.parallel.topology import Team
from pffbench.storage.durability import DiskUsage
from pffbench.storage.page_cache import CacheProof, copied_name
from pffbench.storage.scratch import Scratch
from pffbench.workloads.base import Workload
from pffbench.workloads.transfers import Access, Transfer, transfers_of


class TransferBuffer:
    """Hands out memory for all that a rank moves at a time.

    The kernel clears each page that it gives to a process, which takes about as long as writing
    it: with the same memory in each repetition that is done once. There is never more of it than
    was asked for last, so that no repetition's peak memory holds what another one needed.
    """

    def __init__(self) -> None:
        self._memory = _aligned(0)

    def take(self, nbytes: int) -> Buffer:
        """Return memory of so many bytes with anything in it; what was taken before is over."""
        if self._memory.nbytes != nbytes:
            self.leave()  # first, so that there are never both
            self._memory = _aligned(nbytes)
        return self._memory

    def fill(self, value: int) -> None:
        """Overwrite every byte."""
        self._memory.fill(value)

    def leave(self) -> None:
        """Keep nothing: what is taken next takes no room until it is touched."""
        self._memory = _aligned(0)


def _aligned(nbytes: int) -> Buffer:
    """Return memory that begins at a page.

    numpy's own memory begins 16 bytes behind one, where the kernel copies about a tenth slower.
    """
    memory = np.empty(nbytes + mmap.PAGESIZE, dtype=np.uint8)
    begin = -memory.ctypes.data % mmap.PAGESIZE
    return memory[begin : begin + nbytes]


@dataclass
class Observed:
    """What one rank saw in one repetition, beside the times."""

    mismatches: list[Mismatch] = field(default_factory=list)
    verified_bytes: int = 0
    cache: CacheProof | None = None
    disk: DiskUsage | None = None
    stored_as: StoredAs | None = None
    facts: dict[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    counts: dict[tuple[str, str], float] = field(default_factory=dict)
    #: How often everything was read; the times of reading are sums over that.
    reads: int = 1
    #: Bytes that the kernel delivered to this process, and fetched from a device for it, while it
    #: read; NaN where that is not known.
    kernel_bytes: float = math.nan
    device_bytes: float = math.nan
    #: With a dropped cache: bytes in the page cache after reading, over all nodes.
    resident_after: int | None = None

    def count(self, phase: str, what: str, amount: float) -> None:
        """Add to what this rank has counted in a phase; it goes to `counters.csv`."""
        self.counts[phase, what] = self.counts.get((phase, what), 0.0) + amount


@dataclass(frozen=True, slots=True)
class ShortTransfer:
    """A call that moved fewer bytes than it was to: in which phase, and what is told of it."""

    phase: str
    told: str


@dataclass(frozen=True)
class Repetition:
    """All that one repetition of a case needs on one rank.

    Parameters
    ----------
    team : Team
        The ranks.
    case : Case
        What is run.
    workload, backend, source
        The objects that the case names.
    scratch : Scratch
        Where files may be made and removed.
    directory : str
        This repetition's own directory in it; it exists, and is empty unless another job wrote.
    clock : PhaseClock
        Times the phases.
    memory : int
        Bytes that a rank's buffers may take; more data are moved in batches of this size.
    drop_hook : str, optional
        The site's command that drops the page cache of a node.
    inspect : bool
        Whether to look at how the arrays are stored.
    stage : {"all", "write", "read"}
        Which part to do: one job all of it, or one writes and another one reads.
    room : Room
        Memory for what is moved; the next repetition may have the same.
    peak : PeakMemory
        Watches the peak memory of the repetition.
    reads : int
        How often to read what was written.
    blocks : Counter of int
        Sizes of the blocks of memory that data were moved through, with how many there were.
    label : str
        Ends the name of the store, where another one was made of it.
    observed : Observed
        What is found out on the way.
    open_stores : list of Store
        The stores that are open, for whoever has to clean up after a failure.
    short : list of Short
        Calls that moved fewer bytes than they were to, until the next step says it to all.
    """

    team: Team
    case: Case
    workload: Workload
    backend: Backend
    source: Source
    scratch: Scratch
    directory: str
    clock: PhaseClock
    memory: int
    drop_hook: str | None = None
    inspect: bool = True
    stage: Stage = "all"
    room: TransferBuffer = field(default_factory=TransferBuffer)
    peak: PeakMemory = field(default_factory=PeakMemory)
    reads: int = 1
    blocks: Counter[int] = field(default_factory=Counter)
    label: str = ""
    observed: Observed = field(default_factory=Observed)
    open_stores: list[Store] = field(default_factory=list)
    short: list[ShortTransfer] = field(default_factory=list)

    @property
    def alone(self) -> bool:
        """Whether each rank has a file to itself."""
        return self.case.parameters.layout == "file_per_process"

    @property
    def comm(self) -> Any:
        """The communicator to open stores with, None for a file that one rank has to itself."""
        return None if self.alone else self.team.comm

    @property
    def collective(self) -> bool:
        """Whether data are moved by collective calls."""
        return self.case.parameters.transfer == "collective"

    @property
    def reader_of(self) -> int:
        """The rank whose part this rank reads."""
        shifted = self.case.parameters.cache == "shifted"
        return self.team.topology.partner(self.team.rank) if shifted else self.team.rank

    def path(self, rank: int) -> str:
        """Return the store that a rank writes to."""
        stem = f"rank-{rank:06d}" if self.alone else "shared"
        return self.scratch.path(self.directory, stem + self.label + self.backend.suffix)

    def read_path(self, rank: int) -> str:
        """Return the store in which a rank's data are read: what it wrote, or the copy of it."""
        path = self.path(rank)
        return copied_name(path) if self.case.parameters.cache == "copied" else path

    def hold(self, store: Store) -> Store:
        """Note that a store is open."""
        self.open_stores.append(store)
        return store

    def pieces(self, batch: Sequence[Access], buffer: Buffer) -> list[Transfer]:
        """Return the pieces of a batch for this case's backend and transfer."""
        return transfers_of(self.team.comm, batch, buffer, self.backend.call_limit, self.collective)

    def step(self, name: str) -> AgreedStep:
        """Return the context manager of a step that nobody times."""
        self.clock.tell(name)
        return AgreedStep(self.team.comm, name)
