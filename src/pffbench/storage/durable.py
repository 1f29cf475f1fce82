"""Durability: files and the directories that name them on the device; what they occupy there."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

_BLOCK_BYTES = 512  # the unit of st_blocks, whatever the file system's block size is


class DiskUsage(NamedTuple):
    """What files take.

    Attributes
    ----------
    stored : int
        Bytes of allocated blocks; holes count nothing.
    apparent : int
        Bytes of the file sizes.
    files : int
        Number of files; directories are not counted, nor what they take.
    """

    stored: int
    apparent: int
    files: int


def sync_files(paths: Iterable[str]) -> None:
    """Put the data and metadata of files on their device: open, fsync(2), close, one by one.

    A file that another rank wrote may be synced too; on a network file system this does not
    reach pages that another node still holds, so let the node that wrote sync.

    Raises
    ------
    OSError
        A file cannot be opened, or the device reported an error.
    """
    _sync_each(paths, os.O_RDONLY)


def sync_directories(paths: Iterable[str]) -> None:
    """Put directories on their device, so that the names in them survive a loss of power.

    Raises
    ------
    OSError
        A path is not a directory, cannot be opened, or the device reported an error.
    """
    _sync_each(paths, os.O_RDONLY | os.O_DIRECTORY)


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
    for path, _ in _regular_files(paths):
        yield path


def disk_usage(paths: Iterable[str]) -> DiskUsage:
    """Add up what files, and directories with all below them, take on the device.

    Space that a file system allocates late is only counted after a sync. Symbolic links are not
    followed and count nothing.

    Raises
    ------
    OSError
        A path does not exist or a directory cannot be read.
    """
    stored = apparent = files = 0
    for _, status in _regular_files(paths):
        stored += status.st_blocks * _BLOCK_BYTES
        apparent += status.st_size
        files += 1
    return DiskUsage(stored, apparent, files)


def _sync_each(paths: Iterable[str], flags: int) -> None:
    for path in paths:
        fd = os.open(path, flags | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _regular_files(paths: Iterable[str]) -> Iterator[tuple[str, os.stat_result]]:
    for path in paths:
        status = os.lstat(path)
        if stat.S_ISDIR(status.st_mode):
            yield from _regular_files_in(path)
        elif stat.S_ISREG(status.st_mode):
            yield path, status


def _regular_files_in(directory: str) -> Iterator[tuple[str, os.stat_result]]:
    waiting = [directory]  # a directory of somebody else may be nested deeper than calls can be
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    yield entry.path, entry.stat(follow_symlinks=False)
