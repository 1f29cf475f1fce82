"""Peak memory of a rank during one repetition."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CLEAR = Path("/proc/self/clear_refs")
_STATUS = Path("/proc/self/status")


class PeakMemory:
    """Reads the peak resident set size since the last reset.

    Linux keeps the peak as ``VmHWM`` and resets it when ``5`` is written to ``clear_refs``
    (proc(5)). Where that is not allowed, the peak of the whole life of the process is read.
    """

    def __init__(self) -> None:
        self.since_reset = False
        self._before = 0

    def reset(self) -> None:
        """Begin a new peak."""
        self._before = 0
        self._clear()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave out of the peak what is taken meanwhile, where the kernel allows it."""
        self._before = self.read()
        yield
        self._clear()

    def read(self) -> int:
        """Return the peak in bytes."""
        return max(self._before, _high_water_mark())

    def _clear(self) -> None:
        try:
            _CLEAR.write_text("5")
        except OSError:
            self.since_reset = False
        else:
            self.since_reset = True


def _high_water_mark() -> int:
    try:
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
