"""Memory of this process: that of its transfers, and whether the allocator keeps what is freed.

Memory that comes fresh from the system costs about as much as reading into it: the kernel clears
each page. Whether a library's read pays for that depends on its own buffers, on those of the case
before it and on the thresholds of the C library. With ``settings: matched`` all ranks keep what
is freed, so that each library reads into memory of equal state; with ``settings: defaults`` the C
library decides, as in a user's program.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pffbench.mpi.collectives import any_of

if TYPE_CHECKING:
    from mpi4py import MPI

Settings = Literal["matched", "defaults"]
Memory = np.ndarray[Any, np.dtype[np.uint8]]

#: Parameters of mallopt(3).
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4
#: The C library's own values: blocks from the threshold on are mapped, at most so many. Freeing a
#: mapped block raises the threshold to its size, but not beyond the largest one.
_USUAL_THRESHOLD, _LARGEST_THRESHOLD, _USUAL_MAPPINGS = 2**17, 2**25, 2**16
#: Memory begins at a multiple of so many bytes, as NumPy's does: places in a page.
STEP, PLACES = 16, mmap.PAGESIZE // 16
#: Bytes that a free block must have more than the next large block needs, to be shifted in it.
SLACK = 3 * mmap.PAGESIZE
#: Most free blocks that are filled to find one.
_MOST_FILLING = 500
#: Bytes of a huge page, and the advice of madvise(2) to put memory into such pages now.
_HUGE_PAGE, _COLLAPSE = 2**21, 25
#: A block that is neither mapped nor kept in a cache of the thread.
_SMALL = 2**16
#: Bytes that a mapped block takes beyond those asked for, at most.
_HEADER = 2**13


class Allocator:
    """Sets how the C library treats freed memory, before each repetition of a case.

    Once the thresholds have been set the C library no longer adapts them to what a program frees.
    Where a case with ``defaults`` follows, they are set to the values that they would have reached
    in a program that runs that case alone; see `adapted_threshold`.
    """

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None)
        #: Whether a case has kept memory, so that thresholds no longer adapt.
        self._fixed = False
        #: Why memory cannot be kept; empty if it can.
        self.missing = _reason_against(self._libc)

    def agree(self, comm: MPI.Intracomm) -> None:
        """Keep memory on all ranks or on none; collective."""
        if any_of(comm, bool(self.missing)):
            self.missing = self.missing or "it cannot be set on all ranks"

    def states(self, settings: Collection[Settings]) -> dict[str, str]:
        """Describe, for `run.json`, the state for each settings of a run's cases."""
        return {kind: self._state(kind, mixed=len(settings) > 1) for kind in sorted(settings)}

    def prepare(self, settings: Settings, blocks: Iterable[int]) -> None:
        """Set the state for a repetition.

        Parameters
        ----------
        settings : {"matched", "defaults"}
            Those of its case.
        blocks : iterable of int
            Sizes in bytes of the blocks of memory that the case moves data through.
        """
        if settings == "matched":
            self._keep()
            return
        if self._fixed:
            threshold = adapted_threshold(blocks)
            self._libc.mallopt(_MMAP_MAX, _USUAL_MAPPINGS)
            self._libc.mallopt(_MMAP_THRESHOLD, threshold)
            self._libc.mallopt(_TRIM_THRESHOLD, 2 * threshold)
        return_free_memory()  # so that no case inherits what another one has freed

    def _keep(self) -> None:
        """Map no block on its own, and return nothing to the system."""
        if self.missing:
            return
        self._fixed = True
        done = [self._libc.mallopt(_MMAP_MAX, 0), self._libc.mallopt(_TRIM_THRESHOLD, -1)]
        if not all(done):
            self.missing = "mallopt(3) fails"

    def _state(self, settings: Settings, *, mixed: bool) -> str:
        if settings == "matched" and self.missing:
            return f"the allocator's own: {self.missing}"
        if settings == "matched":
            return "freed memory is kept: mallopt(M_MMAP_MAX, 0), mallopt(M_TRIM_THRESHOLD, -1)"
        begin = "free memory is returned before each repetition (malloc_trim)"
        if self.missing or not mixed:
            return f"the allocator's own; {begin}"
        return (
            "the thresholds that a program reaches which runs the case alone: M_MMAP_THRESHOLD, "
            "its largest block, at most 32 MiB, and M_TRIM_THRESHOLD, twice that, which no longer "
            f"adapt; {begin}"
        )


def adapted_threshold(blocks: Iterable[int]) -> int:
    """Return the size from which on a program that has freed such blocks gets memory mapped.

    glibc maps blocks of 128 KiB or more at first. Each mapped block that is freed raises the
    threshold to its size, unless it is larger than 32 MiB (mallopt(3)). Where all blocks are
    larger a library cuts them into pieces of a size that is not known: the highest is taken.
    """
    sizes = [size for n in blocks if (size := n + _HEADER) <= _LARGEST_THRESHOLD]
    return max(_USUAL_THRESHOLD, *sizes) if sizes else _LARGEST_THRESHOLD


class TransferBuffer:
    """Memory for the data that a rank moves at a time.

    The kernel clears each page that it gives to a process, which takes about as long as writing it.
    With the same memory in each repetition this happens once. It is never larger than the last
    request, so that the peak memory of a repetition excludes the needs of another.

    It begins anywhere within a page, at a multiple of 16 bytes as NumPy's memory does: the kernel
    copies to and from some places twice as fast as others, and a start of the program would keep
    one of them for its life.
    """

    def __init__(self) -> None:
        self._pages = _pages(0)
        self._nbytes = 0
        self._begin = 0
        self.spacers = Spacers()

    def begin_at(self, place: int) -> None:
        """Set where in a page memory begins, from 0 to `PLACES` - 1, for a repetition."""
        self._begin = STEP * place

    @property
    def begin(self) -> int:
        """Bytes from the start of a page to where memory begins."""
        return self._begin

    def take(self, nbytes: int) -> Memory:
        """Return `nbytes` of uninitialised memory; memory taken before becomes invalid."""
        if self._nbytes != nbytes:
            self.leave()  # first, so that both never exist together
            self._pages, self._nbytes = _pages(nbytes), nbytes
        return self._pages[self._begin : self._begin + nbytes]

    def fill(self, value: int) -> None:
        """Overwrite every byte."""
        self._pages.fill(value)

    def use_huge_pages(self) -> None:
        """Have the memory in huge pages, whatever used it before; it has been written to."""
        use_huge_pages(self._pages.ctypes.data, self._pages.nbytes)

    def leave(self) -> None:
        """Release the memory: the next takes no space until it is touched."""
        self._pages, self._nbytes = _pages(0), 0


def _pages(nbytes: int) -> Memory:
    """Return memory from a page boundary on that holds so many bytes, begun at any place."""
    memory = np.empty(nbytes + 2 * mmap.PAGESIZE, dtype=np.uint8)
    begin = -memory.ctypes.data % mmap.PAGESIZE
    return memory[begin : begin + nbytes + mmap.PAGESIZE] if nbytes else memory[:0]


class Spacers:
    """Small blocks that shift where the C library places the next large block of a thread.

    A library that returns a new array for each read gets the same memory for it in every
    repetition, and its place in a page would be the same for the life of the program.
    """

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None)
        self._libc.malloc.argtypes, self._libc.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
        self._libc.free.argtypes, self._libc.free.restype = [ctypes.c_void_p], None
        self._held: list[int] = []

    def put(self, nbytes: int, begin: int) -> None:
        """Shift the next block of about so many bytes of this thread by some more than a page.

        The block of the thread that it would get is found by allocating it. Other free blocks are
        filled while a spacer is cut from that one.
        """
        malloc, free = self._libc.malloc, self._libc.free
        place = malloc(nbytes) or 0
        free(place)
        filling: list[int] = []
        size = nbytes // 2
        while size >= mmap.PAGESIZE and len(filling) < _MOST_FILLING:
            block = malloc(size) or 0
            if not block or place - mmap.PAGESIZE <= block < place + nbytes:
                free(block)
                size //= 2
            else:
                filling.append(block)
        self._held.append(malloc(mmap.PAGESIZE + begin) or 0)
        for block in filling:
            free(block)

    def release(self) -> None:
        """Free all of them."""
        while self._held:
            self._libc.free(self._held.pop())


def use_huge_pages(address: int, nbytes: int) -> None:
    """Put memory that has been written to into huge pages, as far as it fills them.

    NumPy asks for them when it makes a large array. Memory that a smaller block has touched before
    stays in small pages then, and the kernel copies into these at half the speed. Where the kernel
    does not know the second call (before Linux 6.1), or has no huge pages, nothing happens.

    Parameters
    ----------
    address, nbytes : int
        The memory.
    """
    first, last = -(-address // _HUGE_PAGE) * _HUGE_PAGE, (address + nbytes) // _HUGE_PAGE
    if (length := last * _HUGE_PAGE - first) > 0:
        madvise = ctypes.CDLL(None).madvise
        for advice in (mmap.MADV_HUGEPAGE, _COLLAPSE):
            madvise(ctypes.c_void_p(first), ctypes.c_size_t(length), advice)


def return_free_memory() -> bool:
    """Return free memory of the C library to the system; False where it has no such call."""
    with suppress(AttributeError):  # glibc has it
        ctypes.CDLL(None).malloc_trim(0)
        return True
    return False


def _reason_against(libc: ctypes.CDLL) -> str:
    """Return why freed memory cannot be kept; empty if it can."""
    if not hasattr(libc, "gnu_get_libc_version"):
        return "the C library is not glibc"
    libc.malloc.argtypes, libc.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
    libc.free.argtypes, libc.free.restype = [ctypes.c_void_p], None
    libc.mallinfo.restype = _Mallinfo
    before = libc.mallinfo().uordblks
    block = libc.malloc(_SMALL)
    taken = (libc.mallinfo().uordblks - before) % 2**32
    libc.free(block)
    return "" if _SMALL <= taken < 2 * _SMALL else "another library replaces malloc"


class _Mallinfo(ctypes.Structure):
    """Result of mallinfo(3)."""

    _fields_ = tuple(
        (name, ctypes.c_int)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
            "fordblks", "keepcost",
        )
    )  # fmt: skip
