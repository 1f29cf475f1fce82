"""Durability: files, directories and dirty pages on their way to the device.

The kernel writes dirty pages in the background. Pages left by one repetition would be written
during the next one, which then takes several times as long: the largest source of noise in write
measurements.
"""

from __future__ import annotations

import ctypes
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from pathlib import PurePosixPath
from time import monotonic, sleep
from typing import TYPE_CHECKING

import msgspec

from pffbench.case import Natural
from pffbench.proc import PROC, labelled_bytes
from pffbench.storage.filesystem import filesystem

if TYPE_CHECKING:
    import threading

_BLOCK_BYTES = 512  # the unit of st_blocks, whatever the file system's block size is


class DiskUsage(msgspec.Struct, frozen=True, gc=False):
    """Space and number of files."""

    #: Bytes of allocated blocks; holes count nothing.
    stored: Natural
    #: Bytes of the file sizes.
    apparent: Natural
    #: Number of files; directories and their space are not counted.
    files: Natural
    #: Number of directories below those that were asked for.
    directories: Natural = 0

    @property
    def inodes(self) -> int:
        """Number of files and directories, each of which takes an inode."""
        return self.files + self.directories

    def with_more(self, other: DiskUsage | None) -> DiskUsage:
        """Return the sum with that of another directory, if there is any."""
        return (
            self
            if other is None
            else DiskUsage(
                self.stored + other.stored,
                self.apparent + other.apparent,
                self.files + other.files,
                self.directories + other.directories,
            )
        )


def sync_files(paths: Iterable[str]) -> None:
    """Write the data and metadata of files to their device: open, fsync(2), close, one by one.

    A file that another rank wrote may be synced too; on a network file system this does not
    reach pages that another node still holds, so the writing node must sync.

    Raises
    ------
    OSError
        A file cannot be opened, or the device reported an error.
    """
    with_each(paths, os.fsync)


def sync_directories(paths: Iterable[str]) -> None:
    """Write directories to their device, so that the names in them survive a loss of power.

    Raises
    ------
    OSError
        A path is not a directory, cannot be opened, or the device reported an error.
    """
    with_each(paths, os.fsync, os.O_DIRECTORY)


def directories_of(files: Iterable[str], root: str) -> list[str]:
    """List the directories that must be synced for files to be found again.

    Parameters
    ----------
    files : iterable of str
        Files below `root`; they need not exist.
    root : str
        The uppermost directory to list.

    Returns
    -------
    list of str
        Every directory between a file and `root`, both ends included, without repeats and
        deepest first, which is the order to sync them in.

    Raises
    ------
    ValueError
        A file does not lie below `root`.
    """
    top = PurePosixPath(root)
    found: set[PurePosixPath] = set()
    for directory in {PurePosixPath(file).parent for file in files}:
        relative = directory.relative_to(top)
        found.update(top / step for step in (relative, *relative.parents))
    return [str(path) for path in sorted(found, key=lambda path: (-len(path.parts), path))]


def files_below(paths: Iterable[str]) -> Iterator[str]:
    """Yield the regular files among paths and in the directories below them.

    Symbolic links are neither followed nor yielded.

    Raises
    ------
    OSError
        A path does not exist or a directory cannot be read.
    """
    for path, status in _files_and_directories(paths):
        if stat.S_ISREG(status.st_mode):
            yield path


def disk_usage(paths: Iterable[str]) -> DiskUsage:
    """Add up the space of files, and of directories with all below them, on the device.

    Space that a file system allocates late is counted only after a sync. Symbolic links are not
    followed and count nothing.

    Raises
    ------
    OSError
        A path does not exist or a directory cannot be read.
    """
    stored = apparent = files = directories = 0
    for _, status in _files_and_directories(paths):
        if stat.S_ISDIR(status.st_mode):
            directories += 1
            continue
        stored += status.st_blocks * _BLOCK_BYTES
        apparent += status.st_size
        files += 1
    return DiskUsage(stored, apparent, files, directories)


def with_each(paths: Iterable[str], act: Callable[[int], object], flags: int = 0) -> None:
    """Open one path after the other for reading, pass the descriptor on, and close it."""
    for path in paths:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
        try:
            act(fd)
        finally:
            os.close(fd)


def _files_and_directories(paths: Iterable[str]) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the regular files among paths, and all files and directories below the others."""
    for path in paths:
        status = os.lstat(path)
        if stat.S_ISDIR(status.st_mode):
            yield from _below(path)
        elif stat.S_ISREG(status.st_mode):
            yield path, status


def _below(directory: str) -> Iterator[tuple[str, os.stat_result]]:
    waiting = [directory]  # a directory of another user may be nested deeper than calls can be
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                is_directory = entry.is_dir(follow_symlinks=False)
                if is_directory:
                    waiting.append(entry.path)
                if is_directory or entry.is_file(follow_symlinks=False):
                    yield entry.path, entry.stat(follow_symlinks=False)


#: Bytes of dirty pages and pages under write-back that every idle machine has.
QUIET = 8 * 2**20
_POLL = 0.01
#: Seconds without fewer dirty pages after which the rest is known to be of other file systems.
_NO_PROGRESS = 0.1


class Settled(msgspec.Struct, frozen=True):
    """State of a node's dirty pages at the start of a repetition."""

    #: Time that it took to settle.
    seconds: float = 0.0
    #: Bytes still dirty or under write-back after it, on all file systems of the node.
    dirty_bytes: int = 0


class Settler:
    """Writes dirty pages of a file system to the device, on one rank of each node.

    syncfs(2) has no time limit. It runs in a thread, and when it has not returned in time the
    repetition begins without it; no second one is started before it has returned.

    Parameters
    ----------
    directory : str
        Any directory on the file system.
    limit : float
        Maximum seconds to wait.
    """

    def __init__(self, directory: str, limit: float) -> None:
        self._directory = directory
        self._limit = limit
        self._thread: threading.Thread | None = None

    @cached_property
    def _in_memory(self) -> bool:
        return filesystem(self._directory).in_memory

    def settle(self) -> Settled:
        """Write the file system out and wait until little is dirty, or the limit has passed.

        Pages that nothing writes out, such as those of other file systems and of files that
        programs share, are not waited for: the kernel may leave them for half a minute. A file
        system in memory has no device to wait for.

        Raises
        ------
        OSError
            The directory cannot be reached.
        """
        if self._in_memory:
            return Settled()
        import threading  # needed on one rank of a node, off the timer

        begin = monotonic()
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=_syncfs, args=(self._directory,), daemon=True)
            self._thread.start()
        self._thread.join(self._limit)
        dirty = least = dirty_bytes()
        now = changed = monotonic()
        while dirty > QUIET and now - begin < self._limit and now - changed < _NO_PROGRESS:
            sleep(_POLL)
            dirty, now = dirty_bytes(), monotonic()
            if dirty < least:
                least, changed = dirty, now
        return Settled(monotonic() - begin, dirty)


def _syncfs(directory: str) -> None:
    """Write out the file system of a directory; pages that remain show in `dirty_bytes`."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:  # it has gone; the repetition will fail with the error
        return
    try:
        ctypes.CDLL(None, use_errno=True).syncfs(descriptor)
    finally:
        os.close(descriptor)


def dirty_bytes() -> int:
    """Return this node's bytes that are dirty or under write-back; 0 where none are reported."""
    return sum(labelled_bytes(PROC / "meminfo", "Dirty", "Writeback", "NFS_Unstable").values())
