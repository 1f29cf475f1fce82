"""Page cache control, and the proof that it worked.

A read after a write measures the memory of the node unless the pages are evicted first, and
eviction is only a request to the kernel. So whoever evicts measures afterwards what stayed.

Only the page cache of *this* node is seen and touched. File systems with a cache of their own
(the page pool of GPFS, the ARC of ZFS, the servers of Lustre) keep what they hold.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

_WINDOW_PAGES = 2**18  # 1 GiB of 4 KiB pages: bounds the answer vector for huge files
_READ_BYTES = 4 * 2**20
_PROT_NONE = 0  # mincore needs a mapping, not the right to read it
_MAP_FAILED = ctypes.c_void_p(-1).value


@dataclass(frozen=True)
class Residency:
    """How much of some files the page cache of this node holds.

    Attributes
    ----------
    resident, total : int
        Pages held, and pages that the files span.
    """

    resident: int
    total: int

    @property
    def fraction(self) -> float:
        """Part of the pages that is held, 0 to 1; NaN where there are no pages."""
        return self.resident / self.total if self.total else math.nan

    def __add__(self, other: Residency) -> Residency:
        return Residency(self.resident + other.resident, self.total + other.total)


def residency(paths: Iterable[str]) -> Residency:
    """Count the pages of files that are in the page cache.

    Asks mincore(2) about a mapping of each file, which reads nothing. Empty files count as no
    pages. Since Linux 5.2 the kernel tells the truth only to the owner of a file or to those who
    may write it; to anybody else it says that everything is resident.

    Parameters
    ----------
    paths : iterable of str
        Regular files; not directories.

    Raises
    ------
    OSError
        A file cannot be opened or mapped.
    """
    calls = _Calls()
    resident = total = 0
    for path in paths:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            size = os.fstat(fd).st_size
            total += math.ceil(size / mmap.PAGESIZE)
            resident += _resident_pages(calls, fd, size)
        finally:
            os.close(fd)
    return Residency(resident, total)


def evict(paths: Iterable[str]) -> None:
    """Write files out to their device and drop their pages from the page cache.

    Dirty pages cannot be dropped, so every file is synced first, and all of them before the
    first is dropped. Pages that another process has mapped stay, as do those of a file system
    that lives in memory: measure with `residency`.

    Parameters
    ----------
    paths : iterable of str
        Regular files; not directories.

    Raises
    ------
    OSError
        A file cannot be opened or synced.
    """
    files = list(paths)
    _with_each(files, os.fdatasync)
    _with_each(files, lambda fd: os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED))


def warm(paths: Iterable[str]) -> None:
    """Read files from end to end, so that the page cache holds them.

    Parameters
    ----------
    paths : iterable of str
        Regular files; not directories.

    Raises
    ------
    OSError
        A file cannot be opened or read.
    """
    buffer = bytearray(_READ_BYTES)

    def read_through(fd: int) -> None:
        while os.readv(fd, [buffer]):
            pass

    _with_each(paths, read_through)


def _with_each(paths: Iterable[str], act: Callable[[int], object]) -> None:
    for path in paths:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            act(fd)
        finally:
            os.close(fd)


class _Calls:
    """mmap, mincore and munmap of the C library, with one answer vector for all files.

    Python's own mmap objects hide their address and copy the descriptor, which costs more than
    the three calls together.
    """

    def __init__(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        pointer, size = ctypes.c_void_p, ctypes.c_size_t
        self.mmap = libc.mmap
        self.mmap.restype = pointer
        self.mmap.argtypes = [
            pointer,
            size,
            ctypes.c_int,
            ctypes.c_int,
            ctypes.c_int,
            ctypes.c_int64,
        ]
        self.mincore = libc.mincore
        self.mincore.argtypes = [pointer, size, pointer]
        self.munmap = libc.munmap
        self.munmap.argtypes = [pointer, size]
        self.vector = np.zeros(1, np.uint8)

    def answers(self, pages: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        """One byte per page to be filled; grows as needed, and is used again."""
        if pages > self.vector.size:
            self.vector = np.zeros(pages, np.uint8)
        return self.vector[:pages]


def _resident_pages(calls: _Calls, fd: int, size: int) -> int:
    window = _WINDOW_PAGES * mmap.PAGESIZE
    return sum(
        _resident_in(calls, fd, start, min(window, size - start))
        for start in range(0, size, window)
    )


def _resident_in(calls: _Calls, fd: int, start: int, length: int) -> int:
    answers = calls.answers(math.ceil(length / mmap.PAGESIZE))
    address = calls.mmap(None, length, _PROT_NONE, mmap.MAP_SHARED, fd, start)
    if address == _MAP_FAILED:
        raise _last_error()
    try:
        if calls.mincore(address, length, answers.ctypes.data):
            raise _last_error()
    finally:
        calls.munmap(address, length)
    return int(np.count_nonzero(answers & 1))  # only the lowest bit has a meaning


def _last_error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
