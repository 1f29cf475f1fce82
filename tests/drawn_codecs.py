"""Results directories of compressed cases with planted ratios and times."""

from __future__ import annotations

import numpy as np

from drawn_runs import BYTES, PHASES, a_case, a_repetition, a_run, rewrite
from pffbench.phases import READ_PHASES
from pffbench.record.repetitions import Counted
from pffbench.storage.durability import DiskUsage

#: Source, backend and codec → ratio, seconds to write and seconds to read.
WAYS = {
    ("image", "hdf5", "none"): (1.0, 0.10, 0.10),
    ("image", "hdf5", "zstd"): (2.0, 0.20, 0.12),
    ("image", "hdf5", "gzip"): (1.9, 0.90, 0.30),
    ("image", "zarr", "none"): (1.0, 0.15, 0.08),
    ("image", "zarr", "zstd"): (2.0, 0.40, 0.15),
    ("image", "zarr", "gzip"): (2.1, 1.20, 0.40),
    ("sparse", "hdf5", "none"): (1.0, 0.10, 0.10),
    ("sparse", "hdf5", "zstd"): (900.0, 0.05, 0.04),
    ("sparse", "zarr", "zstd"): (900.0, 0.08, 0.03),
}  # fmt: skip


def a_codecs_run(
    directory, ways=WAYS, repetitions=8, noise=0.01, unread=(), uncounted=(), **record
):
    """Write a run whose cases take these times, with noise; some are not read, or not counted."""
    cases = {
        (source, backend, codec): a_case(backend, source=source, codec=codec)
        for source, backend, codec in ways
    }
    for (source, *_), (_, entry) in cases.items():
        entry.group = f"codecs.{source}"  # other data are another comparison
    a_run(directory, cases.values(), repetitions=0, **record)
    rng = np.random.default_rng(7)
    load = np.exp(rng.normal(0, 0.1, repetitions))
    repetitions_made = []
    for way, (name, entry) in cases.items():
        ratio, *seconds = ways[way]
        for number in range(repetitions):
            took = dict.fromkeys(PHASES, 1e-9)
            took |= dict(zip(("write", "read"), np.array(seconds) * load[number], strict=True))
            if way in unread:
                took = {p: s for p, s in took.items() if p not in READ_PHASES}
            took = {p: float(s * np.exp(rng.normal(0, noise))) for p, s in took.items()}
            stored = Counted("write", "stored_bytes", BYTES / ratio, BYTES / ratio)
            counts = () if way in uncounted else (stored,)
            disk = DiskUsage(round(BYTES / ratio), round(BYTES / ratio), 1)
            more = {"counts": counts, "disk": disk}
            repetitions_made.append(a_repetition(name, entry, number + 1, took, **more))
    return rewrite(directory, repetitions_made)
