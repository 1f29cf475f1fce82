"""Raw files against IOR: 64 MiB per rank in one transfer, written and read in memory.

python benchmarks/raw_against_ior.py [--pairs 7] [--ranks 1 2 4] [--place /dev/shm]
"""

from __future__ import annotations

from collections.abc import Sequence

from against_ior import Match, compare
from rows import Row
from script import Given, main

_WHOLE = "shape_per_rank: [16777216]"
MATCHES = (
    Match(
        "posix, file per process",
        f"backend: posix, layout: file_per_process, {_WHOLE}",
        "-a POSIX -F -b 64m -t 64m",
        0.97,
    ),
    Match(
        "mpiio, shared",
        f"backend: mpiio, layout: shared, {_WHOLE}",
        "-a MPIIO -b 64m -t 64m",
        0.97,
    ),
)


def measure(given: Given) -> Sequence[Row]:
    """Return the rows."""
    return compare(given, MATCHES, 1, 2, 4)


if __name__ == "__main__":
    main(measure, __doc__)
