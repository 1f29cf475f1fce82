"""Content-addressed store of versions: each different chunk is kept once.

Each column has four arrays, which change only by growing:

- `pool/<column>`: the different chunks, one after the other;
- `hashes/<column>`: their SHA-256, so that a store can be extended;
- `places/<column>`: for each version the numbers in the pool of its chunks, in C order;
- `shapes/<column>`: for each version the start of its places, and the column's shape.

Chunks at the edge are padded with zeros before they are hashed and stored.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pffbench_studies.versions.history import COLUMNS, Edit, Shape, Table, Values, Version
from pffbench_studies.versions.interface import Call, ColumnStorage, ReadCall
from pffbench_studies.versions.plain import Column, Folder, FolderReader, FolderWriter

#: Entries in one chunk of places, shapes and hashes.
_ENTRIES = 256
_HASH = 32


def grid_of(shape: Shape, chunks: Shape) -> Shape:
    """Return the number of chunks along each axis."""
    return tuple(-(-n // c) for n, c in zip(shape, chunks, strict=True))


def touched_chunks(edits: Iterable[Edit], before: Shape, chunks: Shape) -> set[Shape]:
    """Return the chunks, of the shape after all edits, that may have changed.

    An edit that changes the length of an axis moves the edge, so that from its start on everything
    counts as touched, the chunk with the edge included.
    """
    found: set[Shape] = set()
    for edit in edits:
        grid, stop = grid_of(edit.shape, chunks), edit.start
        stop = tuple(s + n for s, n in zip(edit.start, edit.data.shape, strict=True))
        ranges = []
        for axis, c in enumerate(chunks):
            first, last = edit.start[axis] // c, -(-stop[axis] // c)
            if before[axis] != edit.shape[axis]:
                edge = min(before[axis], edit.shape[axis]) // c
                first, last = min(first, edge), grid[axis]
            ranges.append(range(first, last))
        found.update(itertools.product(*ranges))
        before = edit.shape
    last_grid = grid_of(before, chunks)
    return {at for at in found if all(i < n for i, n in zip(at, last_grid, strict=True))}


@dataclass
class Pool:
    """The different chunks of one column."""

    #: Shape of a chunk.
    chunks: Shape

    numbers: dict[bytes, int] = field(default_factory=dict)
    shape: Shape = ()
    places: Values = field(default_factory=lambda: np.empty(0, np.int64))
    hashed: int = 0

    def take(self, values: Values, edits: Sequence[Edit]) -> list[tuple[bytes, Values]]:
        """Add a version of the column; return the new chunks, with their hashes."""
        shape = self.shape or (0,) * values.ndim
        touched = touched_chunks(edits, shape, self.chunks)
        grid = grid_of(values.shape, self.chunks)
        places = np.full(grid, -1, np.int64)
        both = tuple(slice(0, min(a, b)) for a, b in zip(grid, self.places.shape, strict=False))
        if self.shape:
            places[both] = self.places[both]
        new: list[tuple[bytes, Values]] = []
        for at in sorted(touched):
            chunk = self._chunk(values, at)
            key = hashlib.sha256(chunk.data).digest()
            if key not in self.numbers:
                self.numbers[key] = len(self.numbers)
                new.append((key, chunk))
            places[at] = self.numbers[key]
        self.hashed += len(touched)
        self.shape, self.places = values.shape, places
        return new

    def _chunk(self, values: Values, at: Shape) -> Values:
        box = tuple(slice(i * c, (i + 1) * c) for i, c in zip(at, self.chunks, strict=True))
        part = values[box]
        chunk = np.zeros(self.chunks, values.dtype)
        chunk[tuple(slice(0, n) for n in part.shape)] = part
        return chunk


class KeepingChunks(FolderWriter):
    """A pool of chunks, and for each version the numbers of its chunks.

    Staging hashes the chunks that edits touch; committing writes the new ones, then the places, and
    the shapes last, which complete a version.
    """

    def __init__(self, folder: Folder, storage: ColumnStorage) -> None:
        super().__init__(folder, storage)
        self._pools: dict[str, Pool] = {}
        self._staged: dict[str, list[tuple[bytes, Values]]] = {}

    def stage(self, version: Version) -> Call:
        edits = {name: [e for e in version.edits if e.column == name] for name in COLUMNS}

        def call() -> None:
            if not version.number:
                self._create(version.table)
            for name, values in version.table.items():
                self._staged[name] = self._pools[name].take(values, edits[name])

        return call

    def commit(self, version: Version) -> Call:
        return self._write

    def _create(self, table: Table) -> None:
        create = self._folder.create
        for name, values in table.items():
            chunks = self._storage.chunks(values.ndim)
            self._pools[name] = Pool(chunks)
            pool, row = f"pool/{name}", values.ndim + 1
            self._arrays[pool] = create(
                pool, (0, *chunks), values.dtype, (1, *chunks), self._storage
            )
            for kind, shape, dtype, one in (
                ("hashes", (0, _HASH), "u1", (_ENTRIES, _HASH)),
                ("places", (0,), "i8", (_ENTRIES,)),
                ("shapes", (0, row), "i8", (_ENTRIES, row)),
            ):
                self._arrays[f"{kind}/{name}"] = create(f"{kind}/{name}", shape, dtype, one, None)

    def _write(self) -> None:
        for name, new in self._staged.items():
            pool = self._pools[name]
            if new:
                self._append(f"pool/{name}", np.stack([chunk for _, chunk in new]))
                keys = np.frombuffer(b"".join(key for key, _ in new), np.uint8)
                self._append(f"hashes/{name}", keys.reshape(-1, _HASH))
            begin = self._append(f"places/{name}", pool.places.ravel())
            self._append(f"shapes/{name}", np.array([[begin, *pool.shape]], np.int64))

    def _append(self, name: str, values: Values) -> int:
        """Append entries to an array; return its former length."""
        array = self._arrays[name]
        begin = int(array.shape[0])
        if len(values):
            array.resize((begin + len(values), *array.shape[1:]))
            array[begin:] = values
        return begin


#: A column of a version: the pool, and the places of its chunks.
Found = tuple[Column, Values]


class RecallingChunks(FolderReader):
    """Versions, assembled from chunks of the pool."""

    def look_up(self, number: int) -> dict[str, Found]:
        found = {}
        for name in COLUMNS:
            begin, *shape = self._folder.array(f"shapes/{name}")[number]
            grid = grid_of(tuple(int(n) for n in shape), self._storage.chunks(len(shape)))
            end = int(begin) + int(np.prod(grid))
            places = self._folder.array(f"places/{name}")[int(begin) : end]
            pool = self._folder.array(f"pool/{name}")
            found[name] = pool, np.asarray(places).reshape(grid)
        return found

    def reader(self, found: dict[str, Found], out: Table) -> ReadCall:
        steps = [
            (pool, *step, out[name])
            for name, (pool, places) in found.items()
            for step in self._steps(places, out[name].shape)
        ]

        def call() -> Table:
            for pool, selection, place, buffer in steps:
                self._folder.read_into(pool, selection, buffer, place)
            return out

        return call

    def _steps(
        self, places: Values, shape: Shape
    ) -> Iterator[tuple[tuple[Any, ...], tuple[slice, ...]]]:
        """Yield the parts of the pool and their targets."""
        chunks = self._storage.chunks(len(shape))
        for at, number in np.ndenumerate(places):
            sides = list(zip(at, chunks, shape, strict=True))
            place = tuple(slice(i * c, min((i + 1) * c, n)) for i, c, n in sides)
            inside = tuple(slice(0, box.stop - box.start) for box in place)
            yield (int(number), *inside), place
