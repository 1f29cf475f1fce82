"""Whether there is room for a file, asked before a library begins to write it."""

from __future__ import annotations

import errno
import os
import resource

from pffbench.units import Size

_WHY = "ranks that share a file through parallel HDF5 may wait for ever when it finds no room"


def require_room(directory: str | None, space: int, longest: int) -> None:
    """Look whether files can be written.

    Parameters
    ----------
    directory : str or None
        Where they will be; None where another rank asks the file system.
    space : int
        Bytes that all of them need.
    longest : int
        Bytes of the longest file.

    Raises
    ------
    OSError
        There is less room, or a process may not write so long a file (``ulimit -f``).
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if limit != resource.RLIM_INFINITY and limit < longest:
        raise OSError(
            errno.EFBIG,
            f"{os.strerror(errno.EFBIG)}: the file needs about {Size(longest)}, of which "
            f"{Size(limit)} are allowed (ulimit -f); {_WHY}, so it is not begun",
        )
    if directory is None:
        return
    there = os.statvfs(directory)
    free = there.f_bavail * there.f_frsize
    if free < space:
        raise OSError(
            errno.ENOSPC,
            f"{os.strerror(errno.ENOSPC)}: the file needs about {Size(space)}, and {Size(free)} "
            f"are free in {directory}; {_WHY}, so it is not begun",
        )
