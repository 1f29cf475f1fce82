"""Bringing the same arrays into the memory of all ranks, by any strategy of `startup`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import msgspec
import numpy as np

from pffbench.backends.array_spec import ArraySpec
from pffbench.backends.base import Array, Buffer, Store
from pffbench.backends.traits import Lists
from pffbench.data.verify import Mismatch
from pffbench.mpi.delivery import Broadcast, Delivery, SharedMemory
from pffbench.mpi.topology import Team
from pffbench.proc import open_descriptors
from pffbench.workloads.attributes import Attributes
from pffbench.workloads.buffers import TransferMemory
from pffbench.workloads.read_proof import POISON
from pffbench.workloads.repetition import Repetition
from pffbench.workloads.route import Route
from pffbench.workloads.transfer_phase import read_pieces
from pffbench.workloads.transfers import Access, Transfer

#: What a program knows of an array once it has asked: name, shape, type.
Description = tuple[str, tuple[int, ...], str]

_METADATA = msgspec.msgpack.Decoder(tuple[list[Description], list[Any]])

DELIVERIES: Mapping[str, Callable[[Team], Delivery]] = {
    "every_rank": lambda team: Delivery(),
    "collective": lambda team: Delivery(),
    "root_bcast": lambda team: Broadcast(team.comm),
    "node_leader_bcast": lambda team: Broadcast(team.node),
    "node_leader_shared": lambda team: SharedMemory(team.node),
}


def read_everything(
    repetition: Repetition,
    path: str,
    strategy: str,
    attributes: Attributes,
    *,
    counted: bool,
) -> None:
    """Bring all arrays, with their metadata, into the memory of all ranks, and verify them.

    Parameters
    ----------
    repetition : Repetition
        The repetition.
    path : str
        The store.
    strategy : str
        Who opens and reads it.
    attributes : Attributes
        Attributes of each array, read like the names, shapes and types.
    counted : bool
        Whether descriptors of the open store are counted, off the timer.
    """
    with repetition.step("plan"):
        team = repetition.team
        accesses = repetition.arrays.reads(team.rank)
        way = DELIVERIES[strategy](team)
    try:
        _read(repetition, path, accesses, way, attributes, counted)
    finally:
        way.end()


def _read(
    repetition: Repetition,
    path: str,
    accesses: Sequence[Access],
    way: Delivery,
    attributes: Attributes,
    counted: bool,
) -> None:
    clock = repetition.clock
    specs = [access.spec for access in accesses]
    mine = specs if way.reads else []
    store = _open(repetition, path, way)
    if counted:
        repetition.observed.count("open", "descriptors", open_descriptors(path))
    with repetition.step("preparation"):
        inquire = _inquiry(store, mine)
    with clock.phase("inquire", operations=len(mine)):
        returned = inquire()
    with repetition.step("inquiry"):
        arrays, described = _arrays_and_descriptions(store, mine, returned)
    values = attributes.read(repetition, store, arrays, mine, described=len(mine))
    with repetition.step("metadata"):
        text = msgspec.msgpack.encode((described, values), enc_hook=int) if way.reads else b""
    memory = _memory(repetition, way, sum(access.nbytes for access in accesses), text)
    route = Route(repetition, reads=False)  # in the memory of the delivery, as rank 0 wrote them
    pieces = route.stage(accesses, memory).calls
    got = read_pieces(repetition, arrays, pieces if way.reads else [])
    if way.delivers:
        received = 0 if way.reads else memory.nbytes
        with clock.phase("distribute", received, operations=int(not way.reads)):
            _pack(pieces, got)
            text = way.deliver(text, memory)
        got = [piece.memory for piece in pieces]
    with repetition.step("verification"):
        _compare(repetition, attributes, specs, text, received=not way.reads)
        if repetition.keeps_data:
            TransferMemory(repetition, route).verify(pieces, got)
    with clock.phase("close_read", operations=int(way.reads)):
        if store is not None:
            store.close()
    if store is not None:
        repetition.open_stores.remove(store)


def _open(repetition: Repetition, path: str, way: Delivery) -> Store | None:
    """Open the store on the ranks that read; the others have none."""
    store = None
    comm = repetition.team.comm if repetition.case.parameters.shares_files else None
    with repetition.clock.phase("open", operations=int(way.reads)):
        if way.reads:
            store = repetition.backend.open(path, comm)
            repetition.open_stores.append(store)
    return store


def _inquiry(store: Store | None, specs: Sequence[ArraySpec]) -> Callable[[], Any]:
    """Return the call that finds the arrays; where the store has no list, by their known names."""
    if store is None:
        return dict
    return store.inquire if isinstance(store, Lists) else store.opener(specs)


def _arrays_and_descriptions(
    store: Store | None, specs: Sequence[ArraySpec], returned: Any
) -> tuple[Mapping[str, Array], list[Description]]:
    """Return the arrays that an inquiry found, and their descriptions."""
    if store is None:
        return {}, _descriptions(specs)
    if not isinstance(store, Lists):
        return store.wrap(specs, returned), _descriptions(specs)
    described = [
        (name, tuple(map(int, shape)), np.dtype(dtype).str)
        for name, (_, shape, dtype) in sorted(returned.items())
    ]
    return store.wrap(specs, [returned[spec.name][0] for spec in specs]), described


def _descriptions(specs: Sequence[ArraySpec]) -> list[Description]:
    return [(spec.name, spec.shape, spec.stored_dtype.str) for spec in specs]


def _memory(repetition: Repetition, way: Delivery, nbytes: int, text: bytes) -> Buffer:
    """Return memory for all arrays, filled with bytes that no array holds."""
    if way.shares:
        with repetition.step("shared memory"):
            way.require(nbytes + len(text))
        with repetition.clock.phase("distribute", operations=0):
            memory = way.share(nbytes, text)
    with repetition.step("memory"):
        if not way.shares:
            memory = repetition.room.take(nbytes)
        if way.reads or not way.shares:
            memory.fill(POISON)
    return memory


def _pack(pieces: Sequence[Transfer], got: Sequence[Buffer]) -> None:
    """Copy arrays that a library allocated to the memory that is passed on."""
    for piece, data in zip(pieces, got, strict=False):
        if data is not piece.memory:
            np.copyto(piece.memory, np.ma.getdata(data))


def _compare(
    repetition: Repetition,
    attributes: Attributes,
    specs: Sequence[ArraySpec],
    text: bytes,
    *,
    received: bool,
) -> None:
    """Compare the metadata that this rank has in the end, its own or those it received."""
    try:
        described, values = _METADATA.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        described, values = [], []
    expected = _descriptions(specs)
    for number, (want, told) in enumerate(zip_longest(expected, described)):
        if want != told:
            wrong = Mismatch(number, (), f"metadata {want}", str(told), 1)
            repetition.observed.mismatches.append(wrong)
            break
    if received:
        attributes.compare(repetition, specs, values)
