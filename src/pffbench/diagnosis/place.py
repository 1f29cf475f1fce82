"""A directory of the doctor's own below the scratch parent: made, marked, used and removed."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pffbench.errors import UserError
from pffbench.results.mpiio import longest_path
from pffbench.storage.pagecache import evict, residency
from pffbench.storage.scratch import Scratch, scratch_parent

_TRIED_BYTES = 2**20
#: Bytes of the longest path of a file in such a directory, and ranks that may open one.
_LONGEST_NAME = 64
_MOST_RANKS = 10**6


@contextmanager
def own_directory(given: str | None) -> Iterator[Scratch]:
    """Make a scratch directory for one process or rank 0, and remove it whatever happens.

    The default parent is made too and, when it was not there before, removed again.

    Raises
    ------
    UserError
        The directory cannot be made, or is no longer the one that was made.
    OSError
        Something in it cannot be removed.
    """
    parent, ours = scratch_parent(given)
    there_before = Path(parent).exists()
    run_id = f"doctor-{os.getpid()}-{time.time_ns():x}"
    longest = longest_path(os.environ, _MOST_RANKS) if "mpi4py.MPI" in sys.modules else None
    length = len(os.fsencode(os.path.realpath(parent))) + len(run_id) + _LONGEST_NAME
    if longest is not None and length > longest:
        raise UserError(
            f"{parent} is too long by {length - longest} bytes: Open MPI crashes at paths of more "
            f"than {longest} bytes; choose a shorter directory or set OMPI_MCA_sharedfp=individual"
        )
    scratch = Scratch.create(parent, run_id, create_parent=ours)
    try:
        yield scratch
    finally:
        scratch.destroy()
        if ours and not there_before:
            with suppress(OSError):  # another run has put something into it meanwhile
                Path(parent).rmdir()


def part_kept_in_cache(scratch: Scratch) -> float:
    """Write a small file, evict it, and return the part of it that stayed in the page cache."""
    path = scratch.path("eviction")
    Path(path).write_bytes(b"\xa5" * _TRIED_BYTES)
    evict([path])
    return residency([path]).fraction
