"""Results directories of the workload `codecs` with planted ratios and times."""

from __future__ import annotations

import numpy as np

from drawn_runs import BYTES, PHASES, a_case, a_run, a_sample
from pffbench.record.counters import append_counts
from pffbench.record.gather import Count
from pffbench.record.samples import SamplesLog

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
        (source, backend, codec): a_case(backend, workload="codecs", source=source, codec=codec)
        for source, backend, codec in ways
    }
    for (source, *_), (_, entry) in cases.items():
        entry["group"] = f"codecs.{source}"  # other data are another comparison
    a_run(directory, cases.values(), repetitions=0, **record)
    (directory / "samples.csv").unlink()
    rng = np.random.default_rng(7)
    load = np.exp(rng.normal(0, 0.1, repetitions))
    rows = []
    for way, (name, entry) in cases.items():
        ratio, *seconds = ways[way]
        for number in range(repetitions):
            took = dict(zip(("write", "read"), np.array(seconds) * load[number], strict=True))
            for p in PHASES:
                if way in unread and p in ("open", "open_array", "read", "close_read"):
                    continue
                s = float(took.get(p, 1e-9) * np.exp(rng.normal(0, noise)))
                rows.append(a_sample(name, entry, number + 1, p, s))
            if way not in uncounted:
                stored = Count("write", "stored_bytes", BYTES / ratio, BYTES / ratio)
                append_counts(directory, name, number + 1, False, [stored])
    SamplesLog(str(directory / "samples.csv")).append(rows)
    return directory
