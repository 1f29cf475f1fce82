"""Proof that data which were read came from the files, and from where they were to come from.

A read that a fault suppresses can return the right bytes all the same: those that writing left in
memory. A library's new array gets the memory that the written one had, a chunk buffer that of the
chunk before. So nothing of the data may stay in memory when reading begins, and what the kernel
delivered is counted beside.
"""

from __future__ import annotations

import ctypes
import math
from collections import Counter
from collections.abc import Iterator, Set
from contextlib import contextmanager
from functools import cache, partial

from pffbench.backends.base import ArraySpec
from pffbench.parallel.process_counters import COUNTERS, Meter
from pffbench.storage.page_cache import resident_bytes
from pffbench.workloads.repetition import Repetition

#: Fills memory that is to be read into, and memory that data were in.
POISON = 0xA5
#: Most bytes, and most blocks, of memory that are overwritten at a time.
_MOST_BYTES = 2**28
_MOST_BLOCKS = 4096
#: What a library may add to a block of data: headers of Python objects and of free lists. For a
#: large block, which is cut from free memory wherever that is, one of them will do.
_HEADERS = (0, 16, 33, 64)
_LARGE = 2**17
_KERNEL, _DEVICE = (COUNTERS.index(name) for name in ("read_bytes", "device_read_bytes"))


def note_blocks(blocks: Counter[int], spec: ArraySpec, nbytes: int) -> None:
    """Count the blocks of memory that a library may take to move so many bytes of an array."""
    blocks[nbytes] += 1
    if isinstance(spec.chunks, tuple):
        chunk = math.prod(spec.chunks) * spec.itemsize
        blocks[chunk] += max(1, -(-nbytes // chunk))


@contextmanager
def watched_read(repetition: Repetition, files: Set[str]) -> Iterator[None]:
    """Watch a read: nothing of the data is in memory before it, and its bytes are counted.

    Parameters
    ----------
    repetition : Repetition
        The repetition.
    files : set of str
        The files that this rank is going to read.
    """
    forget_data(repetition)
    meter = Meter(io=True)
    before = meter.begin()
    yield
    counted = meter.since(before)
    meter.close()
    repetition.observed.kernel_bytes = counted[_KERNEL]
    repetition.observed.device_bytes = counted[_DEVICE]
    if repetition.case.parameters.cache == "dropped":
        repetition.clock.tell("residency")
        repetition.observed.resident_after = resident_bytes(repetition.team, files)


def forget_data(repetition: Repetition) -> None:
    """Overwrite what is left of the data in this process's memory, off the timer."""
    with repetition.step("forgetting"), repetition.peak.paused():
        repetition.room.fill(POISON)
        if not repetition.backend.capabilities.caller_buffer:
            repetition.room.leave()
        repetition.backend.forget(partial(_overwrite_free_memory, repetition.blocks))


def _overwrite_free_memory(blocks: Counter[int]) -> None:
    """Take blocks of the sizes that the data had from the allocator, fill them, give them back.

    The allocator gives the same memory to the next who asks for these sizes. It is taken with
    malloc itself: NumPy asks the kernel for huge pages, which the library would then get too. It
    is not handed back to the system, since a read would pay for getting it anew.
    """
    libc = _libc()
    for nbytes, count in blocks.items():
        most = min(count, _MOST_BLOCKS, max(1, _MOST_BYTES // max(1, nbytes)))
        for header in _HEADERS[-1:] if nbytes >= _LARGE else _HEADERS:
            held = [libc.malloc(nbytes + header) for _ in range(most)]
            for address in held:
                ctypes.memset(address, POISON, nbytes + header)
            for address in held:
                libc.free(address)


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None)
    libc.malloc.argtypes, libc.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
    libc.free.argtypes, libc.free.restype = [ctypes.c_void_p], None
    return libc
