"""HDF5 against IOR's HDF5: 64 MiB per rank in one transfer, contiguous, no fill.

    python benchmarks/hdf5_against_ior.py [--pairs 7] [--ranks 1 2 4] [--place /dev/shm]

IOR creates and opens its dataset within the time of the transfer, so `define` and `open_array`
count here too.
"""

from __future__ import annotations

from collections.abc import Sequence

from against_ior import Match, compare
from rows import Row
from script import Given, main

_WHOLE = "backend: hdf5, shape_per_rank: [16777216], hdf5: {collective_metadata: false}"
_SAME = "-a HDF5 -b 64m -t 64m --hdf5.noFill"
MATCHES = (
    Match(
        "hdf5, shared independent",
        f"{_WHOLE}, layout: shared, transfer: independent",
        _SAME,
        0.97,
    ),
    Match(
        "hdf5, shared collective",
        f"{_WHOLE}, layout: shared, transfer: collective",
        f"{_SAME} -c",
        0.97,
    ),
    Match("hdf5, file per process", f"{_WHOLE}, layout: file_per_process", f"{_SAME} -F", 0.97),
)


def measure(given: Given) -> Sequence[Row]:
    """Return the rows."""
    return compare(given, MATCHES, 1, 2, 4)


if __name__ == "__main__":
    main(measure, __doc__)
