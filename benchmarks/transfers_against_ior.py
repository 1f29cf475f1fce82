"""Many transfers against IOR: 64 MiB per rank in transfers of 1 MiB and of 64 KiB.

    python benchmarks/transfers_against_ior.py [--pairs 7] [--ranks 1 4] [--place /dev/shm]

With ``hdf5.api: low_level`` a transfer is one H5Dwrite with data spaces made before; IOR selects
its hyperslab within the time. With ``high_level`` it is ``dataset[a:b] = …``, whose cost is told as
what the API takes, without a mark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from against_ior import BLOCK, Match, compare
from rows import Row
from script import Given, main

_MARK = 0.90


def _matches(transfer: int, name: str) -> Iterator[Match]:
    steps = f"steps: {BLOCK // transfer}, shape_per_rank: [{transfer // 4}]"
    size = f"-b 64m -t {name}"
    alone = f"layout: file_per_process, {steps}"
    hdf5 = "backend: hdf5, hdf5: {collective_metadata: false, api: low_level}"
    sliced = "backend: hdf5, hdf5: {collective_metadata: false, api: high_level}"
    theirs = f"-a HDF5 {size} --hdf5.noFill"
    yield Match(
        f"posix, file per process, {name}", f"backend: posix, {alone}", f"-a POSIX -F {size}", _MARK
    )
    yield Match(
        f"mpiio, shared, {name}",
        f"backend: mpiio, layout: own, {steps}",
        f"-a MPIIO {size}",
        _MARK,
    )
    yield Match(f"hdf5, file per process, {name}", f"{hdf5}, {alone}", f"{theirs} -F", _MARK)
    yield Match(f"hdf5, shared, {name}", f"{hdf5}, layout: own, {steps}", theirs, _MARK)
    yield Match(
        f"hdf5 by slices, file per process, {name}", f"{sliced}, {alone}", f"{theirs} -F", None
    )


MATCHES = (*_matches(2**20, "1m"), *_matches(2**16, "64k"))


def measure(given: Given) -> Sequence[Row]:
    """Return the rows."""
    return compare(given, MATCHES, 1, 4)


if __name__ == "__main__":
    main(measure, __doc__)
