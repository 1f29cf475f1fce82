"""The footprint of a case: files, system calls, shared stripes, exchanged bytes, at any scale.

Each quantity is declared once, in `QUANTITIES`, and is exact, a bound that holds, or unknown. It
follows from the calls of the ranks (`calls`) and the law of the format (`laws`); tests compare it
with what the kernel counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cached_property
from math import prod

import msgspec
import numpy as np
import numpy.typing as npt

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.registry import backend_class
from pffbench.case import Case, FileCount
from pffbench.data import NEVER_ZERO
from pffbench.experiment.plan import arrays_of
from pffbench.geometry.box import Box
from pffbench.geometry.cut import part_lengths
from pffbench.mpi.topology import Topology
from pffbench_footprint.calls import AlikeCalls, KindCalls, calls_of
from pffbench_footprint.laws import (
    LAWS,
    LEFT_OUT,
    Amount,
    FileCalls,
    Inodes,
    Requests,
    Totals,
    TransferMode,
    at_least,
    at_most,
    is_rectilinear,
    summed,
    unknown,
)

Integers = npt.NDArray[np.int64]
#: Most boundaries between ranks' bytes that are looked at one by one.
_MOST_BOUNDARIES = 5_000_000
_NO_LAW = "nothing is known of this backend"
_CHOOSES = "the library chooses chunks"


class Stripe(msgspec.Struct, frozen=True):
    """Stripes of a parallel file system."""

    #: Bytes of a stripe.
    nbytes: int
    #: Servers that a file is striped over.
    servers: int


class Footprint(msgspec.Struct, frozen=True, dict=True):
    """One repetition of a case: its calls and the law of its format."""

    #: The case.
    case: Case
    #: The ranks and their nodes.
    topology: Topology
    #: Of the file system.
    stripe: Stripe | None = None

    @cached_property
    def kinds(self) -> list[KindCalls]:
        """The calls, for each kind of arrays."""
        return calls_of(self.case, self.topology)

    @cached_property
    def law(self) -> FileCalls | None:
        """The law of the format, if there is one."""
        return LAWS.get(self.case.parameters.backend)

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return self.topology.size

    def openers(self, *, reads: bool = False) -> Sequence[int]:
        """Return the ranks that open stores to write, or to read."""
        found = self.kinds[0].readers if reads else self.kinds[0].writers
        return range(self.ranks) if found is None else found

    def way(self, *, reads: bool = False) -> TransferMode:
        """Return how the case moves data in one direction."""
        p, kind = self.case.parameters, self.kinds[0]
        collective = (p.transfer_of_reads if reads else p.transfer) == "collective"
        some = kind.readers if reads else kind.writers
        # Collective calls need a communicator, also where it is of one rank.
        by_one = some is not None and len(some) == 1 and not collective
        owned = not p.shares_arrays
        alone = by_one or not p.shares_files
        zeros = p.source not in NEVER_ZERO
        return TransferMode(self.case.options, p.settings, alone, collective, owned, zeros)

    @property
    def stores(self) -> int:
        """Number of stores."""
        return self.case.parameters.groups(self.ranks).files

    @cached_property
    def inodes(self) -> Inodes | None:
        """Files and directories; None where they are not known."""
        law, options = self.law, self.case.options
        assert law is not None
        of_store = law.of_store(options)
        files, directories = (n * self.stores for n in of_store)
        for kind in self.kinds:
            for one in kind.arrays:
                found = law.of_array(one.spec, options)
                if found is None:
                    return None
                files += found.files * one.times
                directories += found.directories * one.times
        return Inodes(files, directories)

    @cached_property
    def totals(self) -> Totals:
        """What laws of opening and naming files start from."""
        arrays = sum(one.times for kind in self.kinds for one in kind.arrays)
        writing = sum(_counted(one) for kind in self.kinds for one in kind.writes)
        opened = sum(kind.opened for kind in self.kinds)
        writers, readers = len(self.openers()), len(self.openers(reads=True))
        inodes = self.inodes or Inodes(self.stores, 0)
        requests = self.read.number.value or 0
        return Totals(writers, readers, self.stores, arrays, inodes, writing, requests, opened)

    def requests(self, *, reads: bool) -> Requests:
        """Return the system calls that move array data in the phase ``read``, or ``write``."""
        law, way = self.law, self.way(reads=reads)
        assert law is not None
        move, limit = (law.read if reads else law.write), law.limit(self.case.options)
        # What all ranks read together is read once, or more often.
        return summed(
            (
                move(one.access.spec, box, way),
                1 if way.collective and kind.family.read_by_all else one.times,
            )
            for kind in self.kinds
            for one in (kind.reads if reads else kind.writes)
            for box in _cut(one, limit)
        )

    @cached_property
    def written(self) -> Requests:
        """The system calls of the phase ``write``."""
        return self.requests(reads=False)

    @cached_property
    def read(self) -> Requests:
        """The system calls of the phase ``read``."""
        return self.requests(reads=True)


def _counted(one: AlikeCalls) -> int:
    """Return the number of calls that move anything."""
    return one.times if one.access.box.size else 0


def _cut(one: AlikeCalls, limit: int | None) -> Iterable[Box]:
    """Yield the boxes of an access, cut at the limit of a call; none of an empty one."""
    access = one.access
    if not access.box.size:
        return ()
    if limit is None or access.nbytes <= limit:
        return (access.box,)
    return access.box.split(limit // access.spec.itemsize)


Law = Callable[[Footprint], Amount]


class FootprintQuantity(msgspec.Struct, frozen=True):
    """A quantity of a footprint."""

    #: Its name in JSON.
    name: str
    #: Bytes, or a number.
    unit: str
    #: One sentence.
    explanation: str
    #: Its value of a case whose backend has a law.
    law: Law
    #: Whether it can be told of any backend.
    without_law: bool = False
    #: Whether it is told where the stripes of the file system are given.
    of_stripes: bool = False
    #: Whether it is less where files of chunks are left out.
    of_files: bool = False

    def of(self, case: Footprint) -> Amount:
        """Return its value for a case."""
        if case.law is None and not self.without_law:
            return unknown(_NO_LAW)
        found = self.law(case)
        if self.of_files and _law(case).leaves_out_chunks(case.way()):
            most = found.value if found.kind == "exact" else None
            return unknown(LEFT_OUT) if most is None else at_most(most, LEFT_OUT)
        return found


def _law(case: Footprint) -> FileCalls:
    assert case.law is not None
    return case.law


def _data(case: Footprint) -> Amount:
    return Amount(sum(kind.nbytes(kind.writes) for kind in case.kinds))


def _bytes_written(case: Footprint) -> Amount:
    law, options = _law(case), case.case.options
    before = law.header(None, options)
    data = case.written.nbytes
    if before is None or data.kind == "unknown":
        return data if data.value is None else at_least(data.value, "metadata come in addition")
    headers = before * case.stores + sum(
        (law.header(one.spec, options) or 0) * one.times
        for kind in case.kinds
        for one in kind.arrays
    )
    return data.plus(Amount(headers))


def _rewritten(case: Footprint) -> Amount:
    law, way, total = _law(case), case.way(), Amount(0)
    for kind in case.kinds:
        for one in kind.writes:
            if one.access.box.size:
                found = law.rewritten(one.access.spec, one.access.box, way)
                total = total.plus(found)
    return total


def _shared_chunks(case: Footprint) -> Amount:
    p = case.case.parameters
    if not p.shares_arrays or p.owns_chunks:
        return Amount(0)
    if len(case.openers()) == 1:
        return Amount(0)
    if _irregular(case):
        return unknown("the stretches of a map are not counted by chunks")
    total = Amount(0)
    for kind in case.kinds:
        total = total.plus(_shared_chunks_of(case, kind))
    return total


def _shared_chunks_of(case: Footprint, kind: KindCalls) -> Amount:
    """Count the chunks of arrays of one kind that lie in parts of several ranks."""
    p = kind.family.parameters
    spec, times = kind.arrays[0].spec, sum(one.times for one in kind.arrays)
    unit = backend_class(p.backend).storage(spec, case.case.options).unit
    if unit is None:
        contiguous = spec.chunks == "contiguous"
        return Amount(0) if contiguous else unknown(_CHOOSES)
    if backend_class(p.backend).capabilities.raw or spec.chunks == "contiguous":
        return Amount(0)  # no chunks
    if is_rectilinear(case.case.options):
        return Amount(0)  # a chunk is the part of a rank
    if isinstance(p.files, FileCount):
        chunks = sum(prod(_grid(one.spec, unit)) * one.times for one in kind.arrays)
        return at_most(chunks, "groups of ranks are not looked at one by one")
    edges = kind.family.writer_edges
    grid = _grid(spec, unit)
    shared = prod(grid) - prod(
        n - len({edge // length for edge in axis if edge % length})
        for n, length, axis in zip(grid, unit, edges, strict=True)
    )
    found = shared * times
    if not p.exchanges:
        return Amount(found)
    if not found:
        return Amount(0)
    return at_most(prod(grid) * times, "writers hold parts of several ranks")


def _grid(spec: ArraySpec, unit: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(-(-n // c) for n, c in zip(spec.shape, unit, strict=True))


def _stripes(case: Footprint) -> Amount:
    assert case.stripe is not None
    size, nbytes = case.stripe.nbytes, _bytes_written(case)
    if nbytes.value is None:
        return unknown(nbytes.why)
    if (
        nbytes.kind == "exact"
        and case.stores == 1
        and backend_class(case.case.parameters.backend).file_per == "store"
    ):
        return Amount(-(-nbytes.value // size))
    return at_least(-(-nbytes.value // size), "each file begins a stripe of its own")


def _servers(case: Footprint) -> Amount:
    assert case.stripe is not None
    stripes, servers = _stripes(case), case.stripe.servers
    if case.stores > 1 or stripes.value is None or stripes.value < servers:
        if stripes.kind == "exact" and case.stores == 1:
            return stripes
        return at_most(servers * case.stores, "the file system places stripes")
    return Amount(servers)


def _shared_stripes(case: Footprint) -> Amount:
    """Count the stripes that hold bytes of several ranks."""
    p, kind = case.case.parameters, backend_class(case.case.parameters.backend)
    files_of_ranks = p.arrays == "per_rank" and kind.file_per != "store"
    if p.alone or files_of_ranks or len(case.openers()) == 1:
        return Amount(0)
    if case.way().collective:
        return unknown("MPI-IO decides which ranks write")
    if kind.file_per == "chunk":
        return Amount(0) if _shared_chunks(case).value == 0 else unknown("chunks are shared")
    if not kind.capabilities.raw and not _contiguous(case):
        return _stripes_of_chunks(case)
    one = case.kinds[0]
    if len(case.kinds) > 1 or one.exchanged or _irregular(case) or isinstance(p.files, FileCount):
        runs, why = case.written.number, "not one kind of arrays, cut regularly in one file"
        return at_most(runs.value, why) if runs.kind == "exact" and runs.value else unknown(why)
    return _stripes_of_pieces(case, one)


def _irregular(case: Footprint) -> bool:
    """Whether a decomposition map cuts arrays."""
    return any(kind.family.irregular for kind in case.kinds)


def _contiguous(case: Footprint) -> bool:
    """Whether all arrays are in one piece."""
    return all(one.spec.chunks == "contiguous" for kind in case.kinds for one in kind.arrays)


def _stripes_of_chunks(case: Footprint) -> Amount:
    """Bound the shared stripes of chunks, whose places are the library's choice."""
    assert case.stripe is not None
    size, law, options = case.stripe.nbytes, _law(case), case.case.options
    shared, borders, most = _shared_chunks(case), 0, 0
    for one in (one for kind in case.kinds for one in kind.arrays):
        unit = one.spec.chunks
        if not isinstance(unit, tuple) or one.spec.codec != "none":
            return unknown("sizes or places of chunks are the library's choice")
        if not law.begins_at(one.spec, options, size):
            borders += prod(_grid(one.spec, unit)) * one.times
        most = max(most, prod(unit) * one.spec.itemsize)
    if shared.value is None:
        return unknown(shared.why)
    # A shared stripe holds the border of two chunks, or a part of a chunk that ranks share.
    bound = borders + shared.value * (-(-most // size) + 1)
    return at_most(bound, "places of chunks are the library's choice") if bound else Amount(0)


def _stripes_of_pieces(case: Footprint, kind: KindCalls) -> Amount:
    """Count the shared stripes of arrays in one piece each, or bound them."""
    assert case.stripe is not None
    size, law, options = case.stripe.nbytes, _law(case), case.case.options
    spec, arrays = kind.arrays[0].spec, kind.arrays[0].times
    inner, rows = _boundaries(case, kind)
    if not len(inner) or not rows:
        return Amount(0)
    begin, together = (
        law.header(None, options),
        backend_class(case.case.parameters.backend).file_per == "store",
    )
    if begin is not None:
        begin += law.header(spec, options) or 0
    if law.begins_at(spec, options, size):
        begin, together = 0, False  # each array by itself
    owned = _owned(case)
    if owned and not together:
        return Amount(0)
    if owned:
        arrays = 1  # the row has all of them
    count = len(inner) * rows * arrays - 1
    if begin is None:
        most = arrays * (-(-spec.nbytes // size) + 1)
        return at_most(min(count, most), "where arrays begin is the library's choice")
    if count > _MOST_BOUNDARIES or (owned and len(kind.arrays) > 1):
        return at_most(count, "too many, or unequal, pieces to look at each")
    times = rows * arrays if together else rows
    places = (begin + int(inner[-1]) * np.arange(times)[:, None] + inner).reshape(-1)[:-1]
    shared = int(np.unique(places[places % size > 0] // size).size)
    return Amount(shared if together else shared * arrays)


def _owned(case: Footprint) -> bool:
    """Whether ranks have their own arrays in files that they share."""
    p = case.case.parameters
    return p.arrays == "per_rank" and not p.alone


def _boundaries(case: Footprint, kind: KindCalls) -> tuple[Integers, int]:
    """Return where bytes of one rank end and those of another begin.

    Returns
    -------
    array of int64
        The boundaries in a row of the file, in bytes, the row's end included.
    int
        Number of rows of an array.
    """
    spec = kind.arrays[0].spec
    if _owned(case):
        sizes = [np.full(one.times, one.spec.nbytes, np.int64) for one in kind.arrays]
        return np.cumsum(np.concatenate(sizes)), 1
    edges = kind.family.writer_edges
    axis = max((i for i, axis in enumerate(edges) if axis), default=0)
    if not edges or not edges[axis]:
        return np.array([], np.int64), 0
    inner = prod(spec.shape[axis + 1 :]) * spec.itemsize
    ends = np.cumsum(part_lengths((spec.shape[axis],), (edges[axis],))[0], dtype=np.int64)
    return ends * inner, prod(spec.shape[:axis])


def _exchanged(case: Footprint) -> Amount:
    if case.kinds[0].readers is not None and case.kinds[0].exchanged is None:
        return unknown("MPI decides how data go from the ranks that read to the others")
    return Amount(
        sum(
            kind.exchanged.elements * kind.arrays[0].spec.itemsize
            for kind in case.kinds
            if kind.exchanged
        )
    )


def _memory(case: Footprint) -> Amount:
    held = arrays_of(case.case.parameters, case.ranks).held
    return at_least(held, "libraries and batches take more")


def _memory_of_writer(case: Footprint) -> Amount:
    held = [
        kind.exchanged.largest * kind.arrays[0].spec.itemsize
        for kind in case.kinds
        if kind.exchanged
    ]
    return at_least(max(held), "libraries and batches take more") if held else Amount(0)


def _syncs(case: Footprint) -> Amount:
    p, law = case.case.parameters, _law(case)
    flushes = p.durability != "close"
    of_library = law.flush_syncs(case.totals, case.way(), flushes=flushes)
    return of_library.plus(_our_syncs(case)) if p.durability == "sync" else of_library


def _our_syncs(case: Footprint) -> Amount:
    """Count the files and directories that the phase ``sync`` syncs, each once on each node."""
    p, inodes = case.case.parameters, case.inodes
    if inodes is None:
        return unknown(_CHOOSES)
    nodes = np.array(case.topology.nodes)[list(case.openers())]
    on, groups = len(np.unique(nodes)), p.groups(case.ranks)
    if backend_class(p.backend).file_per == "store":
        if case.kinds[0].writers is not None:
            return Amount(2 * on)
        index = np.array([groups.index(rank) for rank in range(case.ranks)])
        return Amount(len(np.unique(nodes * groups.files + index)) + on)
    everything = inodes.files + inodes.directories + 1
    if case.totals.arrays < case.stores and backend_class(p.backend).file_per == "array":
        return at_most(everything - 1 + on, "directories without files are not synced")
    if on == 1:
        return Amount(everything)
    if p.alone:
        return Amount(everything - 1 + on)
    return at_least(everything, "nodes sync directories that they share")


#: All quantities, in the order of tables.
QUANTITIES: tuple[FootprintQuantity, ...] = (
    FootprintQuantity(
        "data_bytes", "B", "array data that all ranks write", _data, without_law=True
    ),
    FootprintQuantity(
        "files", "", "files of the written stores",
        lambda case: Amount(case.inodes.files) if case.inodes else unknown(_CHOOSES),
        of_files=True,
    ),
    FootprintQuantity(
        "directories", "", "directories of the written stores",
        lambda case: Amount(case.inodes.directories) if case.inodes else unknown(_CHOOSES),
        of_files=True,
    ),
    FootprintQuantity(
        "creates", "", "calls that create a file, until the stores are closed",
        lambda case: _law(case).creates(case.totals, case.way()), of_files=True,
    ),
    FootprintQuantity(
        "renames", "", "calls that make a directory, or rename, link or remove a file, until then",
        lambda case: _law(case).renames(case.totals, case.way()), of_files=True,
    ),
    FootprintQuantity(
        "opens_to_write", "", "calls of open(2), until then",
        lambda case: _law(case).opens_to_write(case.totals, case.way()), of_files=True,
    ),
    FootprintQuantity(
        "opens_to_read", "", "calls of open(2) to read the stores",
        lambda case: _law(case).opens_to_read(case.totals, case.way(reads=True)), of_files=True,
    ),
    FootprintQuantity(
        "write_requests", "", "system calls that write array data, in the phase `write`",
        lambda case: case.written.number,
    ),
    FootprintQuantity(
        "written_bytes", "B", "bytes that are written, until the stores are closed", _bytes_written
    ),
    FootprintQuantity(
        "rewritten_bytes", "B", "bytes that are read to change parts of chunks", _rewritten
    ),
    FootprintQuantity(
        "read_requests", "", "system calls that read array data, in the phase `read`",
        lambda case: case.read.number,
    ),
    FootprintQuantity(
        "read_bytes", "B", "bytes that these read; a memory map reads without calls",
        lambda case: case.read.nbytes,
    ),
    FootprintQuantity(
        "shared_chunks", "", "chunks or shards that several ranks write", _shared_chunks
    ),
    FootprintQuantity("stripes", "", "stripes of all files", _stripes, of_stripes=True),
    FootprintQuantity("servers", "", "servers that hold stripes", _servers, of_stripes=True),
    FootprintQuantity(
        "shared_stripes", "", "stripes with array data of several ranks", _shared_stripes,
        of_stripes=True,
    ),
    FootprintQuantity(
        "exchanged_bytes", "B", "bytes that ranks send to writers which are other ranks",
        _exchanged, without_law=True,
    ),
    FootprintQuantity(
        "memory_of_rank", "B", "array data that the rank with most holds at a time", _memory,
        without_law=True,
    ),
    FootprintQuantity(
        "memory_of_writer", "B", "the same of the writer with most, of one array or step",
        _memory_of_writer, without_law=True,
    ),
    FootprintQuantity(
        "syncs", "", "calls of fsync(2), until the stores are closed and synced", _syncs,
        of_files=True,
    ),
)  # fmt: skip


def amounts_of(case: Footprint, names: Container[str] | None = None) -> dict[str, Amount]:
    """Return quantities of a case by name; those of stripes where these are given."""
    return {
        quantity.name: quantity.of(case)
        for quantity in QUANTITIES
        if (case.stripe is not None or not quantity.of_stripes)
        and (names is None or quantity.name in names)
    }


def differences(one: Mapping[str, Amount], other: Mapping[str, Amount]) -> dict[str, str]:
    """Return the factors between quantities of two cases that differ, the largest first.

    Quantities that bounds do not tell apart come last.
    """
    found: dict[str, tuple[float, str]] = {}
    for name, first in one.items():
        second = other[name]
        if (first.value, first.certainty) == (second.value, second.certainty) != (None, "unknown"):
            continue
        found[name] = _factor(first, second)
    return {name: told for name, (_, told) in sorted(found.items(), key=lambda item: -item[1][0])}


def _factor(first: Amount, second: Amount) -> tuple[float, str]:
    """Return how far two amounts are apart, for their order, and the factor as text."""
    sense = {
        ("exact", "exact"): "", ("exact", "at least"): "≥ ", ("at most", "exact"): "≥ ",
        ("exact", "at most"): "≤ ", ("at least", "exact"): "≤ ", ("at most", "at least"): "≥ ",
        ("at least", "at most"): "≤ ",
    }.get((first.certainty, second.certainty))  # fmt: skip
    if sense is None or first.value is None or second.value is None:
        return 0.0, "?"
    if not first.value or not second.value:
        sure = "at most" not in (first.certainty, second.certainty)
        return (math.inf, "from 0" if second.value else "to 0") if sure else (0.0, "?")
    factor = second.value / first.value
    return max(factor, 1 / factor), f"{sense}×{factor:.4g}"
