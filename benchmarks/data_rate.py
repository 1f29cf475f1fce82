"""How fast data are made and verified, against numpy's copy of the same bytes.

    python benchmarks/data_rate.py [--pairs 7]

One process, 64 MiB of the default source (uniform float32), in turns; seconds of the processor, so
that other programs on the machine do not count.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

import numpy as np
from rows import Mark, Ratio, Row
from script import Given, main

from pffbench.data import make_source
from pffbench.data.verify import verify

SHAPE = (64, 512, 512)
_NBYTES = 64 * 2**20
_FAST = Mark("at least", 1, " GB/s")
_HALF = Mark("at least", 0.5)


def measure(given: Given) -> Sequence[Row]:
    """Return the rows."""
    source = make_source("uniform", "float32", 1, None, None)
    data = np.zeros(SHAPE, np.float32)
    other = np.zeros_like(data)

    def make() -> None:
        source.fill(data, 0, (0, 0, 0), SHAPE)

    def check() -> None:
        if verify(source, data, 0, (0, 0, 0), SHAPE) is not None:
            raise RuntimeError("data are not what they were made")

    def copy() -> None:
        np.copyto(other, data)

    for call in (make, check, copy):
        call()
    rates = [[_rate(call) for call in (make, check, copy)] for _ in range(given.pairs)]
    made, verified, copied = (list(column) for column in zip(*rates, strict=True))
    copying = f"{statistics.median(copied):.2f} GB/s"
    return [
        Row(
            "making data, one core",
            "numpy copy",
            _FAST,
            Ratio.of_figures(made),
            f"{statistics.median(made):.2f} GB/s",
            copying,
        ),
        Row(
            "verifying data, one core",
            "numpy copy",
            _HALF,
            Ratio.of(zip(verified, copied, strict=True)),
            f"{statistics.median(verified):.2f} GB/s",
            copying,
        ),
    ]


def _rate(call: Callable[[], None]) -> float:
    """Return gigabytes for each second of the processor."""
    begin = time.process_time()
    call()
    return _NBYTES / (time.process_time() - begin) / 1e9


if __name__ == "__main__":
    main(measure, __doc__)
