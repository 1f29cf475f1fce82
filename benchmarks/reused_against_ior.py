"""One buffer for all transfers against IOR, which has one too: 64 KiB, 1 MiB and the whole block.

    python benchmarks/reused_against_ior.py [--pairs 7] [--ranks 1 2] [--place /dev/shm]

As `transfers_against_ior` and `raw_against_ior`, with `buffer: reuse`: both sides write from, and
read into, memory that stays in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from against_ior import BLOCK, Match, compare
from rows import Row
from script import Given, main

#: Bytes of a transfer, its name, and the least ratio of the rates.
_SIZES = ((2**16, "64k", 0.95), (2**20, "1m", 0.97), (BLOCK, "64m", 0.97))


def _matches(transfer: int, name: str, mark: float) -> Iterator[Match]:
    ours = f"buffer: reuse, steps: {BLOCK // transfer}, shape_per_rank: [{transfer // 4}]"
    size = f"-b 64m -t {name}"
    hdf5, alone = "backend: hdf5, hdf5: {collective_metadata: false}", "layout: file_per_process"
    theirs = f"-a HDF5 {size} --hdf5.noFill"
    for what, case, options in (
        ("posix, file per process", f"backend: posix, {alone}", f"-a POSIX -F {size}"),
        ("mpiio, shared", "backend: mpiio, layout: own", f"-a MPIIO {size}"),
        ("hdf5, file per process", f"{hdf5}, {alone}", f"{theirs} -F"),
        ("hdf5, shared", f"{hdf5}, layout: own", theirs),
    ):
        yield Match(f"{what}, one buffer, {name}", f"{case}, {ours}", options, mark)


MATCHES = tuple(match for size in _SIZES for match in _matches(*size))


def measure(given: Given) -> Sequence[Row]:
    """Return the rows."""
    return compare(given, MATCHES, 1, 2)


if __name__ == "__main__":
    main(measure, __doc__)
