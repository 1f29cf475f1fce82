"""Phases of most workloads: create, define, write, close, open, read, remove.

Each is a phase of `pffbench.phases`. Only library calls run between its two time stamps. Data that
go through writer ranks are sent in `exchange` before `write`, and in `exchange_read` after `read`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import LazyArrays, Store
from pffbench.backends.inspection import StoredAs
from pffbench.backends.registry import backend_class
from pffbench.backends.traits import Describes, RefusesData, Reports, ReportsHints, SizesChunks
from pffbench.geometry.stretches import Stretches
from pffbench.storage.durability import (
    directories_of,
    disk_usage,
    files_below,
    sync_directories,
    sync_files,
)
from pffbench.storage.page_cache import CacheProof, bring_about
from pffbench.workloads.attributes import NO_ATTRIBUTES, Attributes
from pffbench.workloads.buffers import TransferMemory
from pffbench.workloads.read_proof import forget_data, watched_read
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.route import Route, count_owned, owned, route_of
from pffbench.workloads.transfer_phase import (
    Sink,
    into_memory,
    read_transfers,
    write_transfers,
)
from pffbench.workloads.transfers import Access, Round, Rounds, all_at_once


def left_by_another_job(repetition: Repetition) -> set[str]:
    """Return the files that this rank is to read; shared files once per node."""
    found: set[str] = set()
    team = repetition.place.team
    with repetition.step("files"):
        sharing = repetition.groups.members(team.rank)
        nodes = team.topology.nodes
        looks = team.rank == min(r for r in sharing if nodes[r] == nodes[team.rank])
        if looks and repetition.subject.keeps_data:
            found.update(files_below([repetition.read_path]))
    return found


def settle_cache(repetition: Repetition, written: set[str]) -> set[str]:
    """Establish and measure the state of the page cache before reading.

    Returns
    -------
    set of str
        The files that this rank is going to read: those that it or another rank wrote.
    """
    repetition.place.clock.tell("cache")  # any failure in it is in a step that ranks agree on
    repetition.observed.cache, to_read = _prepare_cache(repetition, written)
    return to_read


def settle_cache_again(repetition: Repetition, written: set[str]) -> set[str]:
    """Settle the cache again in one repetition; the proof with more resident bytes counts."""
    before = repetition.observed.cache
    to_read = settle_cache(repetition, written)
    after = repetition.observed.cache
    if before is not None and after is not None and before.fraction > after.fraction:
        repetition.observed.cache = before
    return to_read


def _prepare_cache(repetition: Repetition, written: set[str]) -> tuple[CacheProof, set[str]]:
    """Establish the cache state for the files that this rank is going to read."""
    team, cache = repetition.place.team, repetition.subject.parameters.cache
    to_read = written
    if repetition.subject.arrays.reads_elsewhere:
        to_read = set().union(*team.comm.allgather(written))
    elif repetition.subject.shifted:
        reader = team.topology.partners.index(team.rank)
        to_read = team.comm.sendrecv(written, dest=reader, source=repetition.author)
    return bring_about(team, cache, written, to_read, repetition.request.drop_hook), to_read


def nothing_more() -> None:
    """Inspect nothing."""


def write_read_cycle(
    repetition: Repetition,
    rounds: Rounds = all_at_once,
    sink: Sink = into_memory,
    attributes: Attributes = NO_ATTRIBUTES,
) -> None:
    """Write everything, then read it back: one repetition of a case; collective.

    Parameters
    ----------
    repetition : Repetition
        The repetition.
    rounds : callable
        Cuts the arrays and accesses into rounds.
    sink : callable
        Consumer of the data read, within the time of reading.
    attributes : Attributes
        Attributes of each array.
    """

    def write() -> set[str]:
        return write_store(repetition, rounds, attributes=attributes)

    def read() -> None:
        read_store(repetition, rounds, sink, attributes=attributes)

    run_stages(repetition, write, partial(read_repeatedly, repetition, read))


def read_repeatedly(repetition: Repetition, read: Callable[[], None]) -> None:
    """Read the store as often as the repetition asks, each time into memory without its data."""
    for number in range(repetition.request.reads):
        if number:
            forget_data(repetition)
        repetition.observed.reads = number + 1
        read()


def run_stages(
    repetition: Repetition,
    write: Callable[[], set[str]],
    read: Callable[[], None],
    *,
    inspect: Callable[[], None] = nothing_more,
    settle: Callable[[Repetition, set[str]], set[str]] = settle_cache,
    reading: Repetition | None = None,
) -> None:
    """Run the stages of a repetition: write, settle the page cache, read, remove; collective.

    In two stages, one job writes and leaves the files there, and another one reads them. Every
    read is watched, so that one that does not read the files is noticed.

    Parameters
    ----------
    repetition : Repetition
        The repetition.
    write : callable
        Writes the store; returns the files that this rank wrote to.
    read : callable
        Reads it.
    inspect : callable
        Inspects the store after the reads, off the timer.
    settle : callable
        Establishes the state of the page cache; returns the files that this rank will read.
    reading : Repetition, optional
        The repetition as it is read, where its parameters or its store differ.
    """
    _note_stretches(repetition)
    as_read = repetition if reading is None else reading
    written = left_by_another_job(as_read) if repetition.request.stage == "read" else write()
    if repetition.request.stage == "write":
        return
    with watched_read(as_read, settle(as_read, written)):
        read()
    inspect()
    remove_store(as_read)


def _note_stretches(repetition: Repetition) -> None:
    """Record how many stretches ranks have: a fact, and where calls are counted a count."""
    rank, arrays = repetition.place.team.rank, repetition.subject.arrays
    described = arrays.maps if repetition.place.team.is_root else None  # of the parts of all ranks
    if described:
        repetition.observed.facts["stretches"] = described
    if not repetition.place.clock.counts or not any(family.irregular for family in arrays.families):
        return
    for phase, accesses in (("write", arrays.writes(rank)), ("read", arrays.reads(rank))):
        boxes = [access.box for access in accesses if isinstance(access.box, Stretches)]
        if boxes:
            repetition.observed.count(phase, "stretches", sum(len(box.offsets) for box in boxes))


def write_store(
    repetition: Repetition,
    rounds: Rounds = all_at_once,
    attributes: Attributes = NO_ATTRIBUTES,
) -> set[str]:
    """Create, write and close the store; return the files that this rank wrote to."""
    with route_of(repetition) as route:
        return _write(repetition, route, rounds, attributes)


def _write(
    repetition: Repetition, route: Route, rounds: Rounds, attributes: Attributes
) -> set[str]:
    clock, owner = repetition.place.clock, repetition.owner
    create = repetition.subject.backend.create
    store, specs, accesses = open_for_writing(repetition, route, create, "create")
    memory = TransferMemory(repetition, route)
    for batches in memory.batches_that_fit(rounds(specs, accesses)):
        with repetition.step("preparation"):
            definers = deque(store.definer(batch.round.specs) for batch in batches if batch.first)
        for batch, placed in zip(batches, memory.for_writing(batches), strict=True):
            if batch.first:
                these, define = batch.round.specs, definers.popleft()
                with clock.phase("define", operations=count_owned(these, owner)):
                    returned = define()
                arrays = LazyArrays(store, these, returned)
                attributes.write(repetition, store, arrays, these)
            route.send(placed)
            write_transfers(repetition, arrays, placed.calls)
    return finish_writing(repetition, store)


def open_for_writing(
    repetition: Repetition, route: Route, open_store: Callable[[str, Any], Store], phase: str
) -> tuple[Store, Sequence[ArraySpec], list[Access]]:
    """Open the store, unless its data are refused; collective.

    Parameters
    ----------
    repetition : Repetition
        The repetition.
    route : Route
        The route of the data.
    open_store : callable
        The call of the backend that creates the store, or opens it again.
    phase : {"create", "reopen"}
        The phase in which it is made.

    Returns
    -------
    tuple of (Store, sequence of ArraySpec, list of Access)
        The store, the arrays of this rank, and its accesses to them.
    """
    with repetition.step("plan"):
        specs = repetition.subject.arrays.specs(repetition.place.team.rank)
        accesses = route.accesses()
        opener = route.opener(open_store)
    refuse_data(repetition, specs)
    with repetition.place.clock.phase(phase):
        store = opener()
        repetition.place.open_stores.append(store)
    return store, specs, accesses


def refuse_data(repetition: Repetition, specs: Sequence[ArraySpec]) -> None:
    """Refuse data that a filter gives up on, before ranks write them together; collective.

    Each rank looks at a part of what is shared, and at its own arrays.

    Raises
    ------
    PhaseFailedError
        On every rank, with the chunk and the consequence.
    """
    subject, comm = repetition.subject, repetition.comm
    p, backend = subject.parameters, subject.backend
    if repetition.request.unsafe:
        return
    if not issubclass(backend_class(p.backend), RefusesData):
        return
    number, ranks = (0, 1) if comm is None else (int(comm.rank), int(comm.size))
    with repetition.step("data"):
        if not isinstance(backend, RefusesData):  # a rank that only takes part
            return
        for spec in specs:
            part = (number, ranks) if spec.owner is None else (0, 1)
            if spec.owner not in (None, repetition.owner):
                continue
            if why := backend.refuse_data(p, spec, subject.source_of(spec), *part):
                raise ValueError(why)


def finish_writing(repetition: Repetition, store: Store, suffix: str = "") -> set[str]:
    """Flush, close and sync a store as the case requires; return the files that this rank wrote.

    Parameters
    ----------
    repetition : Repetition
        The repetition.
    store : Store
        The written store.
    suffix : str
        Suffix of the phases' names, if a store is written more than once.
    """
    place, subject, observed = repetition.place, repetition.subject, repetition.observed
    durability = subject.parameters.durability
    with repetition.step("facts"):
        if isinstance(store, Reports):
            observed.facts.update(store.transfer_facts())
        if isinstance(store, ReportsHints) and (hints := store.file_hints()):
            observed.hints.append(hints)
    if durability != "close":
        with place.clock.phase("flush" + suffix):
            store.flush()
    with place.clock.phase("close" + suffix):
        store.close()
    place.open_stores.remove(store)
    with repetition.step("files"):
        files = store.files()
    if durability == "sync":
        sync_store(repetition, files, "sync" + suffix)
    with repetition.step("inspection"):
        if not suffix:
            _count_stored(repetition)
        if place.keeps_directory and subject.keeps_data:
            observed.disk = disk_usage([place.path])
            looks = repetition.request.inspect and place.team.is_root
            if looks and subject.arrays.specs(0):
                observed.stored_as = describe_store(repetition)
    return files


def _count_stored(repetition: Repetition) -> None:
    """Count the bytes and chunks on disk of the arrays that this rank owns, if a codec is named.

    Each array is counted once, by its owner, also if ranks share its chunks.
    """
    subject = repetition.subject
    backend, counts = subject.backend, subject.keeps_data and subject.parameters.codec != "auto"
    if not counts or not isinstance(backend, SizesChunks):
        return
    specs = subject.arrays.specs(repetition.place.team.rank)
    names = [spec.name for spec in owned(specs, repetition.owner)]
    if not names:
        return  # a rank without data has no file
    for found in backend.stored_chunks(repetition.path, names):
        repetition.observed.count("write", "stored_bytes", found.nbytes)
        repetition.observed.count("write", "stored_chunks", found.count)


def sync_store(repetition: Repetition, written: set[str], phase: str = "sync") -> None:
    """Sync the files and all directories above them, each once per node."""
    place = repetition.place
    with repetition.step("files"):
        above = directories_of(written, place.path)
    files, directories = place.team.share_both_on_node(written, above)
    with place.clock.phase(phase, operations=len(files) + len(directories)):
        sync_files(files)
        sync_directories(directories)


def read_store(
    repetition: Repetition,
    rounds: Rounds = all_at_once,
    sink: Sink = into_memory,
    attributes: Attributes = NO_ATTRIBUTES,
) -> None:
    """Open the store, read, and verify every byte off the timer."""
    with route_of(repetition, reads=True) as route:
        _read(repetition, route, rounds, sink, attributes)


def _read(
    repetition: Repetition, route: Route, rounds: Rounds, sink: Sink, attributes: Attributes
) -> None:
    clock = repetition.place.clock
    with repetition.step("plan"):
        specs = repetition.subject.arrays.specs(route.author)
        accesses = route.accesses()
        open_store = route.opener(repetition.subject.backend.open)
    with clock.phase("open", operations=route.openings):
        store = open_store()
        repetition.place.open_stores.append(store)
    every_array = store.collective_lookup or attributes.of_every_array(store)
    memory = TransferMemory(repetition, route)
    for batches in memory.batches_that_fit(rounds(specs, accesses)):
        with repetition.step("preparation"):
            wants = [_wanted(batch.round, every_array) for batch in batches if batch.first]
            openers = deque((wanted, route.look_up(store, wanted)) for wanted in wants)
        in_memory, results = memory.for_reading(batches), []
        for batch, placed in zip(batches, in_memory, strict=True):
            if batch.first:
                wanted, open_wanted = openers.popleft()
                with clock.phase(route.lookup, operations=route.described(batch.round.specs)):
                    returned = open_wanted()
                arrays = route.wrap(store, wanted, returned)
                looked_up = wanted if route.opens else []
                described = route.described(looked_up)
                route.note_values(attributes.read(repetition, store, arrays, looked_up, described))
            got = read_transfers(repetition, arrays, placed.calls, sink)
            results.append(route.receive(placed, got))
        with repetition.step("verification"):
            if repetition.subject.keeps_data:
                for placed, got in zip(in_memory, results, strict=True):
                    memory.verify(placed.own, got)
        del results
    note_hints_of_reading(repetition, store)
    with clock.phase("close_read", operations=route.openings):
        store.close()
    repetition.place.open_stores.remove(store)


def _wanted(one: Round, every_array: bool) -> Sequence[ArraySpec]:
    """Return the arrays of a round that this rank opens: those that it reads, or all of them."""
    return one.specs if every_array else list(dict.fromkeys(a.spec for a in one.accesses))


def note_hints_of_reading(repetition: Repetition, store: Store) -> None:
    """Note what became of the hints of a store that is open for reading."""
    with repetition.step("facts"):
        if isinstance(store, ReportsHints) and (hints := store.file_hints()):
            repetition.observed.hints_of_reading.append(hints)


def remove_store(repetition: Repetition) -> None:
    """Remove the store: the first of the ranks that share a file does."""
    mine = repetition.subject.keeps_data and repetition.keeps_file
    path = repetition.path if repetition.subject.shifted else repetition.read_path
    with repetition.place.clock.phase("remove", operations=int(mine)):
        if mine:
            repetition.place.scratch.remove(path)


def describe_store(repetition: Repetition) -> StoredAs:
    """Return the storage layout of this rank's store; of no chunks if the backend sees none."""
    backend = repetition.subject.backend
    return backend.describe(repetition.path) if isinstance(backend, Describes) else StoredAs()
