"""Letting earlier writes reach the device before a repetition begins.

The kernel writes dirty pages out in the background. What one repetition has left behind would be
written during the next one, which then takes several times as long: of all noise in writing this
is the largest part.
"""

from __future__ import annotations

import ctypes
import os
import re
import threading
import time
from dataclasses import dataclass
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
#: Bytes of dirty pages and pages under write-back that every idle machine has.
QUIET = 8 * 2**20
_POLL = 0.01


@dataclass(frozen=True, slots=True)
class Settled:
    """How a node was found at the start of a repetition.

    Parameters
    ----------
    seconds : float
        Time that it took to settle.
    dirty_bytes : int
        Bytes still dirty or under write-back after it, on all file systems of the node.
    """

    seconds: float = 0.0
    dirty_bytes: int = 0

    @property
    def quiet(self) -> bool:
        """Whether little is left to be written."""
        return self.dirty_bytes <= QUIET


class Settler:
    """Writes a file system out, on one rank of each node.

    syncfs(2) cannot be given a limit of time. It runs in a thread, and when it has not returned in
    time the repetition begins without it; no second one is started before it has returned.

    Parameters
    ----------
    directory : str
        Any directory on the file system.
    limit : float
        Most seconds to wait.
    """

    def __init__(self, directory: str, limit: float) -> None:
        self._directory = directory
        self._limit = limit
        self._thread: threading.Thread | None = None

    def settle(self) -> Settled:
        """Write the file system out and wait until little is dirty, or the limit has passed."""
        begin = time.monotonic()
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=_syncfs, args=(self._directory,), daemon=True)
            self._thread.start()
        self._thread.join(self._limit)
        dirty = dirty_bytes()
        while dirty > QUIET and time.monotonic() - begin < self._limit:
            time.sleep(_POLL)
            dirty = dirty_bytes()
        return Settled(time.monotonic() - begin, dirty)


def _syncfs(directory: str) -> None:
    """Write out the file system of a directory; what cannot be written shows in `dirty_bytes`."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:  # it has gone; the repetition will say so
        return
    try:
        ctypes.CDLL(None, use_errno=True).syncfs(descriptor)
    finally:
        os.close(descriptor)


def dirty_bytes(meminfo: Path = _MEMINFO) -> int:
    """Return the bytes of this node that are dirty or under write-back; 0 where nothing tells."""
    try:
        text = meminfo.read_text()
    except OSError:
        return 0
    found = re.findall(r"^(?:Dirty|Writeback|NFS_Unstable):\s*(\d+) kB$", text, re.MULTILINE)
    return 1024 * sum(map(int, found))
