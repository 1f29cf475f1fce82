"""Control of the page cache, and measurement of its state.

A read after a write measures the memory of the node unless the pages are evicted first, and
eviction is only a request to the kernel. So the resident pages are counted after each eviction.

Only the page cache of *this* node is controlled. File systems with a cache of their own
(the page pool of GPFS, the ARC of ZFS, the servers of Lustre) keep their contents, and the kernel
keeps directories and inodes. A command of the site may drop these too.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import time
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from functools import cache

import msgspec
import numpy as np

from pffbench.case import CacheState
from pffbench.mpi.agreement import AgreedStep
from pffbench.mpi.topology import Team
from pffbench.storage.durability import with_each
from pffbench.storage.filesystem import filesystem, nearest_existing

_WINDOW_PAGES = 2**18  # 1 GiB of 4 KiB pages: bounds the answer vector for huge files
_READ_BYTES = 4 * 2**20
_PAGES_SETTLE = 0.1  # seconds, between two evictions
_PROT_NONE = 0  # mincore needs a mapping, not the permission to read it
_MAP_FAILED = ctypes.c_void_p(-1).value


class Residency(msgspec.Struct, frozen=True):
    """Resident pages of files in the page cache of this node."""

    #: Pages held, and pages that the files span.
    resident: int
    total: int

    @property
    def fraction(self) -> float:
        """Resident part of the pages, 0 to 1; NaN where there are no pages."""
        return self.resident / self.total if self.total else math.nan

    def __add__(self, other: Residency) -> Residency:
        return Residency(self.resident + other.resident, self.total + other.total)


def residency(paths: Iterable[str]) -> Residency:
    """Count the pages of files that are in the page cache.

    Calls mincore(2) on a mapping of each file, which reads nothing. Empty files have no pages.
    Since Linux 5.2 the kernel reports the residency only to the owner of a file or to those who
    may write it; to others it reports all pages as resident.

    Parameters
    ----------
    paths : iterable of str
        Regular files; not directories.

    Raises
    ------
    OSError
        A file cannot be opened or mapped.
    """
    found = Residency(0, 0)

    def count(fd: int) -> None:
        nonlocal found
        size = os.fstat(fd).st_size
        pages = math.ceil(size / mmap.PAGESIZE)
        found += Residency(_resident_pages(fd, size), pages)

    with_each(paths, count)
    return found


def evict(paths: Iterable[str]) -> None:
    """Write files to their device and drop their pages from the page cache.

    Dirty pages cannot be dropped, so every file is synced first, and all of them before the
    first is dropped. Pages that another process has mapped stay, as do those of a file system
    in memory: measure with `residency`.

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
    with_each(files, os.fdatasync)
    with_each(files, lambda fd: os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED))


def warm(paths: Iterable[str]) -> None:
    """Read files completely, so that the page cache holds them.

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

    with_each(paths, read_through)


_TRIED_BYTES = 2**20


def part_kept_in_cache(directory: str) -> float:
    """Write a small file in a directory, evict it, and return the part that stayed; remove it.

    Raises
    ------
    OSError
        The file cannot be made there.
    """
    import tempfile  # on rank 0 only

    with tempfile.NamedTemporaryFile(dir=directory, prefix=".pffbench-") as file:
        file.write(b"\xa5" * _TRIED_BYTES)
        file.flush()
        evict([file.name])
        return residency([file.name]).fraction


def reason_against_cold_reads(parent: str) -> str | None:
    """Return why files in a directory cannot be dropped from the page cache; None if they can.

    Parameters
    ----------
    parent : str
        The directory, which need not exist yet. One that cannot be reached or written to has no
        reason here, since the run is refused for that anyway.
    """
    try:
        there = filesystem(parent)
        if there.in_memory:
            return f"{parent} is {there.type}, which keeps files in memory"
        kept = part_kept_in_cache(nearest_existing(parent))
    except OSError:
        return None
    return f"{kept:.0%} of a file in {parent} stays in the page cache" if kept else None


@cache
def _libc() -> ctypes.CDLL:
    """Return the C library, for mmap, mincore and munmap.

    Python's own mmap objects hide their address and copy the descriptor, which costs more than
    the three calls together.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    libc.mmap.restype = pointer
    libc.mmap.argtypes = [pointer, size, number, number, number, ctypes.c_int64]
    libc.mincore.argtypes = [pointer, size, pointer]
    libc.munmap.argtypes = [pointer, size]
    return libc


def _resident_pages(fd: int, size: int) -> int:
    window = _WINDOW_PAGES * mmap.PAGESIZE
    return sum(
        _resident_in(fd, start, min(window, size - start)) for start in range(0, size, window)
    )


def _resident_in(fd: int, start: int, length: int) -> int:
    libc, answers = _libc(), np.empty(math.ceil(length / mmap.PAGESIZE), np.uint8)
    address = libc.mmap(None, length, _PROT_NONE, mmap.MAP_SHARED, fd, start)
    if address == _MAP_FAILED:
        raise _last_error()
    try:
        if libc.mincore(address, length, answers.ctypes.data):
            raise _last_error()
    finally:
        libc.munmap(address, length)
    return int(np.count_nonzero(answers & 1))  # only the lowest bit has a meaning


def _last_error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


#: Largest resident part of a cold read, and smallest of a warm one.
DROPPED_BELOW = 0.01
WARM_ABOVE = 0.99


class CacheProof(msgspec.Struct, frozen=True):
    """The state of the page cache directly before reading; equal on all ranks."""

    #: State requested by the experiment ({"warm", "shifted", "dropped", "separate"}).
    wanted: CacheState
    #: Part of the pages of the files to be read that was resident, 0 to 1; NaN without files.
    fraction: float
    #: Bytes of these pages, over all nodes.
    resident: int = 0

    @property
    def proved(self) -> bool:
        """Whether the measured fraction agrees with the state asked for.

        That other nodes wrote is checked before a run reads the files of another job; that the
        reading nodes hold none of it is measured too. ``shifted`` names a procedure, and
        guarantees nothing about residency.
        """
        if self.wanted in ("dropped", "separate"):
            return self.fraction < DROPPED_BELOW
        return self.wanted == "shifted" or self.fraction > WARM_ABOVE


def bring_about(
    team: Team,
    wanted: CacheState,
    written: AbstractSet[str],
    to_read: AbstractSet[str],
    hook: str | None = None,
) -> CacheProof:
    """Evict or warm the files and measure what is resident; collective.

    Parameters
    ----------
    team : Team
        The ranks.
    wanted : {"warm", "shifted", "dropped", "separate"}
        The requested state. ``warm`` reads the pages that are missing. ``dropped`` writes the
        files out and evicts them on every node that wrote or will read them, once more where
        pages stayed. ``shifted`` and ``separate`` do nothing: ranks read data of others.
    written, to_read : set of str
        The files that this rank wrote, and those that it will read.
    hook : str, optional
        With ``dropped``: a command that each node runs last, for what ``posix_fadvise`` does not
        reach: caches of the file system's own, directories and inodes. Counting pages opens the
        files, so that nothing is counted after it.

    Raises
    ------
    PhaseFailedError
        A file could not be read or evicted, or the hook ended with an error, on any rank.
    """
    if wanted == "dropped":
        with AgreedStep(team.comm, "eviction"):
            evict(team.share_on_node(written | to_read))
    files = team.share_on_node(to_read)
    found = _measured(team, files, to_read)
    if wanted == "dropped" and not found.fraction < DROPPED_BELOW:
        # The kernel may hold pages for a moment, as on a busy machine, and skips these.
        with AgreedStep(team.comm, "second eviction"):
            time.sleep(_PAGES_SETTLE)
            evict(files)
        found = _measured(team, files, to_read)
    if wanted == "dropped" and hook is not None:
        if not found.fraction < DROPPED_BELOW:  # only the hook reaches this cache
            _run_on_nodes(team, hook)
            found = _measured(team, files, to_read)
        _run_on_nodes(team, hook)
    if wanted == "warm" and not found.fraction > WARM_ABOVE:
        with AgreedStep(team.comm, "warming"):
            warm(files)
        found = _measured(team, files, to_read)
    return CacheProof(wanted, found.fraction, found.here.resident * mmap.PAGESIZE)


def resident_bytes(team: Team, to_read: AbstractSet[str]) -> int:
    """Return the bytes of files in the page cache, summed over all nodes; collective."""
    found = _measured(team, team.share_on_node(to_read), to_read)
    return found.here.resident * mmap.PAGESIZE


def run_hook(command: str) -> None:
    """Run the site's command that drops this node's caches.

    Raises
    ------
    RuntimeError
        It ended with an error; the message holds its output.
    """
    import subprocess

    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise RuntimeError(f"the drop hook {command!r} ended with {done.returncode}: {said}")


def _run_on_nodes(team: Team, hook: str) -> None:
    """Run the site's command on one rank of each node; collective."""
    with AgreedStep(team.comm, "drop hook"):
        if team.is_leader:
            run_hook(hook)


def _measured(team: Team, files: list[str], to_read: AbstractSet[str]) -> _Held:
    """Count the resident pages of all nodes.

    Every node counts the files that its ranks read. The pages of one file that all nodes read
    are counted against its size once, since each byte of it is read on one node only.
    """
    here = Residency(0, 0)
    with AgreedStep(team.comm, "residency"):
        here = residency(files)
    only = next(iter(to_read)) if len(to_read) == 1 else None
    held: _Held = team.comm.allreduce(_Held(here, here.total, only), op=_Held.__add__)
    return held


class _Held(msgspec.Struct, frozen=True):
    """Page counts of some ranks, combined pairwise."""

    #: Resident pages and total pages of their files.
    here: Residency
    #: Largest number of pages that the files of any one of these ranks span.
    largest: int
    #: The file that each of them reads, if all read this one and no other.
    only: str | None

    def __add__(self, other: _Held) -> _Held:
        same = self.only if self.only == other.only else None
        return _Held(self.here + other.here, max(self.largest, other.largest), same)

    @property
    def fraction(self) -> float:
        """The resident part."""
        total = self.largest if self.only is not None else self.here.total
        return Residency(min(self.here.resident, total), total).fraction
