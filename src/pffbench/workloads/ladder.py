"""The cycle that most workloads run: create, define, write, close, then open, read, remove.

Read `write_read_cycle` first: it is the ladder of phases, and nothing but the library's calls
stands on a rung. Everything a rung needs is made ready before it, off the timer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain

import numpy as np

from pffbench.backends.base import Array, ArraySpec, Buffer, Store, what_was_read
from pffbench.storage.durable import directories_of, disk_usage, sync_directories, sync_files
from pffbench.workloads.access import Access
from pffbench.workloads.between import left_by_another_job, settle_cache
from pffbench.workloads.cycle import Cycle
from pffbench.workloads.pieces import Piece, amount
from pffbench.workloads.read_proof import POISON, forget_data, note_blocks, watched_read
from pffbench.workloads.rounds import Rounds, Turn, all_at_once, turns
from pffbench.workloads.short import note_short, step_after_transfers
from pffbench.workloads.sink import Sink, into_memory

#: Looks at open arrays and what was just moved of them, off the timer.
Look = Callable[[Mapping[str, Array], Sequence[Access]], None]


def not_at_all(arrays: Mapping[str, Array], accesses: Sequence[Access]) -> None:
    """Look at nothing."""


def write_read_cycle(cycle: Cycle, rounds: Rounds = all_at_once, sink: Sink = into_memory) -> None:
    """Write everything, then read it back: one repetition of a case, collective.

    In two stages, one job writes and leaves everything there, and another one begins with what
    it finds.

    Parameters
    ----------
    cycle : Cycle
        The repetition.
    rounds : callable
        Which arrays are defined, or opened, before which are moved.
    sink : callable
        What becomes of data that are read, within the time of reading.
    """
    written = left_by_another_job(cycle) if cycle.stage == "read" else write_store(cycle, rounds)
    if cycle.stage == "write":
        return
    with watched_read(cycle, settle_cache(cycle, written)):
        for number in range(cycle.reads):
            if number:
                forget_data(cycle)
            read_store(cycle, rounds, sink)
    cycle.observed.reads = cycle.reads
    remove_store(cycle)


def write_store(cycle: Cycle, rounds: Rounds = all_at_once, look: Look = not_at_all) -> set[str]:
    """Create, write and close the store; return the files that this rank wrote to."""
    p, team, clock = cycle.case.parameters, cycle.team, cycle.clock
    with cycle.step("plan"):
        specs = cycle.workload.arrays(p, team.size, team.rank)
        accesses = cycle.workload.writes(p, team.size, team.rank)
        path, comm = cycle.path(team.rank), cycle.comm
    with clock.phase("create"):
        store = cycle.hold(cycle.backend.create(path, comm))
    for group in turns(team.comm, rounds(specs, accesses), cycle.memory):
        for turn, pieces in zip(group, filled(cycle, group), strict=True):
            one = turn.round
            if turn.first:
                store.prepare(one.specs)
                with clock.phase("define", operations=count_owned(one.specs, team.rank)):
                    arrays = store.define(one.specs)
            write_pieces(cycle, arrays, pieces)
            if turn.last:
                look(arrays, one.accesses)
    return finish_writing(cycle, store)


def finish_writing(cycle: Cycle, store: Store, suffix: str = "") -> set[str]:
    """Flush, close and sync a store as the case asks; return the files that this rank wrote to.

    Parameters
    ----------
    cycle : Cycle
        The repetition.
    store : Store
        What has been written to.
    suffix : str
        Ends the names of the phases, where a store is written more than once.
    """
    durability, clock = cycle.case.parameters.durability, cycle.clock
    with step_after_transfers(cycle, "facts"):
        cycle.observed.facts.update(store.transfer_facts())
    if durability != "close":
        with clock.phase("flush" + suffix):
            store.flush()
    with clock.phase("close" + suffix):
        store.close()
    cycle.open_stores.remove(store)
    with cycle.step("files"):
        files = store.files()
    if durability == "sync":
        sync_store(cycle, files, "sync" + suffix)
    with cycle.step("inspection"):
        _inspect(cycle)
    return files


def filled(cycle: Cycle, group: Sequence[Turn]) -> list[list[Piece]]:
    """Make the data of a group of turns: the pieces of each."""
    with cycle.step("memory"):
        buffer = cycle.room.take(_nbytes(group))
    pieces = _placed(cycle, group, buffer)
    with cycle.step("data"):
        for piece in chain.from_iterable(pieces):
            piece.fill(cycle.source)
            note_blocks(cycle.blocks, piece.spec, piece.memory.nbytes)
    return pieces


def _poisoned(cycle: Cycle, group: Sequence[Turn]) -> list[list[Piece]]:
    """Make room for what is read: the pieces of each turn of a group.

    It is the room that the data were written from, so nothing of it may stay. Memory that a
    library does not read into is not touched at all: it takes no room then.
    """
    with cycle.step("memory"):
        if cycle.backend.capabilities.caller_buffer:
            buffer = cycle.room.take(_nbytes(group))
            buffer.fill(POISON)
        else:
            cycle.room.leave()
            buffer = cycle.room.take(_nbytes(group))
    return _placed(cycle, group, buffer)


def _nbytes(group: Sequence[Turn]) -> int:
    return sum(access.nbytes for turn in group for access in turn.accesses)


def _placed(cycle: Cycle, group: Sequence[Turn], buffer: Buffer) -> list[list[Piece]]:
    """Lay the pieces of a group of turns one behind the other in memory."""
    found, done = [], 0
    for turn in group:
        nbytes = sum(access.nbytes for access in turn.accesses)
        found.append(cycle.pieces(turn.accesses, buffer[done : done + nbytes]))
        done += nbytes
    return found


def write_pieces(
    cycle: Cycle, arrays: Mapping[str, Array], pieces: Sequence[Piece], phase: str = "write"
) -> None:
    """Write pieces to arrays of an open store, in a phase of that name."""
    with cycle.step("preparation"):
        calls = [piece.writer(arrays, cycle.collective) for piece in pieces]
    nbytes, operations = amount(pieces)
    with cycle.clock.phase(phase, nbytes, operations):
        returned = [call() for call in calls]
    note_short(cycle, phase, arrays, pieces, zip(calls, returned, strict=True), wrote=True)


def sync_store(cycle: Cycle, written: set[str], phase: str = "sync") -> None:
    """Bring the files and all directories above them to the device, each once per node."""
    with cycle.step("files"):
        above = directories_of(written, cycle.scratch.path(cycle.directory))
    files, directories = cycle.team.share_both_on_node(written, above)
    with cycle.clock.phase(phase, operations=len(files) + len(directories)):
        sync_files(files)
        sync_directories(directories)


def read_store(
    cycle: Cycle, rounds: Rounds = all_at_once, sink: Sink = into_memory, look: Look = not_at_all
) -> None:
    """Open the store, read, and verify every byte off the timer."""
    p, team, clock = cycle.case.parameters, cycle.team, cycle.clock
    with cycle.step("plan"):
        author = cycle.reader_of
        specs = cycle.workload.arrays(p, team.size, author)
        accesses = cycle.workload.reads(p, team.size, author)
        path, comm = cycle.read_path(author), cycle.comm
    with clock.phase("open"):
        store = cycle.hold(cycle.backend.open(path, comm))
    for group in turns(team.comm, rounds(specs, accesses), cycle.memory):
        placed, results = _poisoned(cycle, group), []
        for turn, pieces in zip(group, placed, strict=True):
            one = turn.round
            if turn.first:
                needed = list(dict.fromkeys(access.spec for access in one.accesses))
                wanted = one.specs if store.collective_lookup else needed
                open_wanted = store.opener(wanted)
                with clock.phase("open_array", operations=count_owned(one.specs, author)):
                    returned = open_wanted()
                arrays = store.opened(wanted, returned)
            results.append(_read_pieces(cycle, arrays, pieces, sink))
            if turn.last:
                look(arrays, one.accesses)
        with step_after_transfers(cycle, "verification"):
            if cycle.backend.capabilities.keeps_data:
                for pieces, got in zip(placed, results, strict=True):
                    _verify(cycle, pieces, got)
        del results
    with clock.phase("close_read"):
        store.close()
    cycle.open_stores.remove(store)


def _read_pieces(
    cycle: Cycle, arrays: Mapping[str, Array], pieces: Sequence[Piece], sink: Sink
) -> list[Buffer]:
    """Read pieces from arrays of an open store and return what came."""
    with cycle.step("preparation"):
        readers = [piece.reader(arrays, cycle.collective) for piece in pieces]
        calls = [
            sink(reader, piece.memory) if piece.memory.size else reader
            for piece, reader in zip(pieces, readers, strict=True)
        ]
    nbytes, operations = amount(pieces)
    with cycle.clock.phase("read", nbytes, operations):
        returned = [call() for call in calls]
    note_short(cycle, "read", arrays, pieces, zip(readers, returned, strict=True), wrote=False)
    return [what_was_read(r, piece.memory) for r, piece in zip(returned, pieces, strict=True)]


def remove_store(cycle: Cycle) -> None:
    """Remove the store: each rank its own file, or rank 0 the shared one."""
    team = cycle.team
    mine = cycle.backend.capabilities.keeps_data and (cycle.alone or team.is_root)
    path = cycle.read_path(team.rank)
    with cycle.clock.phase("remove", operations=int(mine)):
        if mine:
            cycle.scratch.remove(path)


def count_owned(specs: Sequence[ArraySpec], rank: int) -> int:
    """Count the arrays that are this rank's to define; rank 0 counts those of all ranks."""
    return sum(1 for spec in specs if (spec.owner if spec.owner is not None else 0) == rank)


def _verify(cycle: Cycle, pieces: Sequence[Piece], results: Sequence[Buffer]) -> None:
    source = cycle.backend.as_read(cycle.source)
    for piece, got in zip(pieces, results, strict=True):
        data = np.ascontiguousarray(np.ma.getdata(got))
        if piece.spec.byte_order != "native":  # netCDF4-python gives back that of the file
            data = data.astype(data.dtype.newbyteorder("="), copy=False)
        wrong = piece.verify(source, data.reshape(piece.box.shape))
        if wrong is not None:
            cycle.observed.mismatches.append(wrong)
        cycle.observed.verified_bytes += piece.memory.nbytes


def _inspect(cycle: Cycle) -> None:
    """Look, on rank 0, at what has come to be on disk."""
    if not (cycle.team.is_root and cycle.backend.capabilities.keeps_data):
        return
    cycle.observed.disk = disk_usage([cycle.scratch.path(cycle.directory)])
    if cycle.inspect and cycle.workload.arrays(cycle.case.parameters, cycle.team.size, 0):
        cycle.observed.stored_as = cycle.backend.describe(cycle.path(0))
