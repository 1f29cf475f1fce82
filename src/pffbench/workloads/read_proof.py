"""Proof that data read came from the files, and not from memory.

A read that a fault suppresses can still return the right bytes: those that writing left in memory.
A library's new array may reuse the memory of the written one, and a chunk buffer that of an earlier
chunk. So the data are erased from memory before reading begins, and the bytes that the kernel
delivered are counted.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Iterator, Set
from contextlib import contextmanager
from functools import cache, partial

from pffbench.backends.traits import Forgets
from pffbench.observe.allocator import SLACK, TransferBuffer, use_huge_pages
from pffbench.observe.process_counters import metered
from pffbench.storage.block_device import DeviceReads, count_device_reads
from pffbench.storage.page_cache import resident_bytes
from pffbench.workloads.repetition import Repetition

#: Fills memory before it is read into, and memory that held data.
POISON = 0xA5
#: Most bytes, and most blocks, of memory that are overwritten at a time.
_MOST_BYTES = 2**28
_MOST_BLOCKS = 4096
#: Bytes that a library may add to a block of data: headers of Python objects and of free lists. For
#: a large block, which is cut from any free memory, one of them is enough.
_HEADERS = (0, 16, 33, 64)
_LARGE = 2**17
#: Bytes of an array from which on NumPy asks for huge pages.
_NUMPYS_LARGE = 2**22
#: Counters of the bytes that the kernel delivered, and that it fetched from a device.
KERNEL, DEVICE = "read_bytes", "device_read_bytes"


@contextmanager
def watched_read(repetition: Repetition, files: Set[str]) -> Iterator[None]:
    """Watch a read: erase the data from memory before it, and count its bytes.

    Parameters
    ----------
    repetition : Repetition
        The repetition.
    files : set of str
        The files that this rank is going to read.
    """
    observed, dropped = repetition.observed, repetition.subject.parameters.cache == "dropped"
    # Before the step that all ranks leave together: no rank reads the files before that.
    before = _device_of_node(repetition) if dropped else DeviceReads()
    forget_data(repetition)
    observed.own_bytes = 0.0
    with metered() as counted:
        yield
    observed.kernel_bytes = counted[KERNEL] - observed.own_bytes
    observed.device_bytes = counted[DEVICE]
    if dropped:
        repetition.place.clock.tell("residency")
        observed.resident_after = resident_bytes(repetition.place.team, files)
        # All ranks have ended their reads by now, since they counted the pages together.
        observed.device_reads = _device_of_node(repetition).since(before)


def _device_of_node(repetition: Repetition) -> DeviceReads:
    """Return the reads of this node's device, on the rank that counts them for all of the node."""
    if not repetition.place.team.is_leader:
        return DeviceReads(0.0, 0.0)
    return count_device_reads(repetition.place.scratch.directory)


def forget_data(repetition: Repetition) -> None:
    """Overwrite the data left in this process's memory, off the timer."""
    subject, buffer = repetition.subject, repetition.place.buffer
    with repetition.step("forgetting"), repetition.place.peak.paused():
        buffer.fill(POISON)
        # With equal work a new array gets memory that is overwritten here, beside the buffer.
        if kept := subject.equal_memory:
            buffer.use_huge_pages()
        if subject.returns_arrays and not kept:
            buffer.leave()
        buffer.spacers.release()
        blocks = repetition.observed.blocks
        overwrite = partial(_overwrite_free_memory, blocks, buffer if kept else None)
        if isinstance(subject.backend, Forgets):
            subject.backend.forget(overwrite)
        else:
            overwrite()


def _overwrite_free_memory(blocks: Counter[int], kept: TransferBuffer | None) -> None:
    """Allocate blocks of the sizes that the data had, fill them and free them.

    Where memory is kept, the largest of them will be placed anew in its page.

    The allocator reuses the memory of free blocks of these sizes. The blocks come from malloc
    itself: NumPy requests huge pages, which the library would then get too. Where memory is kept,
    all large blocks are in huge pages. They are not returned to the system, since a read would pay
    for new ones.
    """
    libc = _libc()
    for nbytes, count in blocks.items():
        # Larger blocks come fresh from the system, unless freed memory is kept (`Allocator`).
        most = min(count, _MOST_BLOCKS, max(int(kept is not None), _MOST_BYTES // max(1, nbytes)))
        large = (_HEADERS[-1] + (SLACK if kept else 0),)
        for header in large if nbytes >= _LARGE else _HEADERS:
            held = [libc.malloc(nbytes + header) for _ in range(most)]
            for address in filter(None, held):  # NULL where memory is short
                ctypes.memset(address, POISON, nbytes + header)
                if kept and nbytes >= _NUMPYS_LARGE:
                    use_huge_pages(address, nbytes + header)
            for address in held:
                libc.free(address)
    if kept is not None and blocks:
        kept.spacers.put(max(blocks), kept.begin)


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None)
    libc.malloc.argtypes, libc.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
    libc.free.argtypes, libc.free.restype = [ctypes.c_void_p], None
    return libc
