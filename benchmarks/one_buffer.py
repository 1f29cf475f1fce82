"""What it costs that each transfer has memory of its own, which IOR's transfers share.

    python benchmarks/one_buffer.py [--pairs 7] [--place /dev/shm]

IOR moves all transfers of a block through one buffer of the size of a transfer, which stays in the
processor's cache when it is small. pffbench keeps all that it writes and reads, to verify it, so
each byte comes from memory and goes there. Here the same loops over pwrite and preadv, and over
H5Dwrite and H5Dread, run both ways in turns in one process; the ratio is the rate through memory
of their own over that through one buffer. Seconds of the processor.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import h5py
import numpy as np
from rows import Ratio, Row
from script import Given, main

from pffbench.backends.base import Buffer

BLOCK = 64 * 2**20
_PAGE = 4096
#: Moves transfer number i from or to its memory.
Move = Callable[[int, Buffer], object]


def measure(given: Given) -> Sequence[Row]:
    """Return the rows."""
    memory = np.zeros(BLOCK + _PAGE, np.uint8)
    begin = -memory.ctypes.data % _PAGE
    block = memory[begin : begin + BLOCK]
    return [row for size in (2**20, 2**16) for row in _rows(block.reshape(-1, size), given)]


def _rows(own: Buffer, given: Given) -> Iterator[Row]:
    shared = [own[0]] * len(own)
    for name, loops in (("posix", _posix), ("hdf5", _hdf5)):
        pairs: dict[str, list[tuple[float, float]]] = {"write": [], "read": []}
        with given.directory() as place:
            for number in range(given.pairs):
                ways = (own, shared) if number % 2 else (shared, own)
                found = {id(way): loops(way, place / "file") for way in ways}
                for i, access in enumerate(pairs):
                    pairs[access].append((1 / found[id(own)][i], 1 / found[id(shared)][i]))
        for access, both in pairs.items():
            ours, theirs = (
                f"{statistics.median(c) * BLOCK / 2**20:.0f} MiB/s" for c in zip(*both, strict=True)
            )
            size = f"{own.shape[1] // 1024} KiB"
            yield Row(
                f"memory of its own, {name}, {size}, {access}",
                "one buffer",
                None,
                Ratio.of(both),
                ours,
                theirs,
            )


def _posix(parts: Sequence[Buffer], path: Path) -> tuple[float, float]:
    size = parts[0].nbytes
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    wrote = _seconds(lambda i, part: os.pwrite(file, part, i * size), parts)
    read = _seconds(lambda i, part: os.preadv(file, [part], i * size), parts)
    os.close(file)
    path.unlink()
    return wrote, read


def _hdf5(parts: Sequence[Buffer], path: Path) -> tuple[float, float]:
    with h5py.File(path, "w") as file:
        shape = (len(parts), parts[0].size)
        dataset = file.create_dataset("data", shape, "u1", fill_time="never").id
        memory = h5py.h5s.create_simple((1, shape[1]))
        spaces = []
        for i in range(shape[0]):
            spaces.append(dataset.get_space())
            spaces[-1].select_hyperslab((i, 0), (1, shape[1]))
        wrote = _seconds(lambda i, part: dataset.write(memory, spaces[i], part), parts)
        read = _seconds(lambda i, part: dataset.read(memory, spaces[i], part), parts)
    path.unlink()
    return wrote, read


def _seconds(move: Move, parts: Sequence[Buffer]) -> float:
    """Return the seconds of the processor that all transfers take."""
    begin = time.process_time()
    for i, part in enumerate(parts):
        move(i, part)
    return time.process_time() - begin


if __name__ == "__main__":
    main(measure, __doc__)
