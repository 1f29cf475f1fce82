"""Peak memory of a rank during one repetition."""

from __future__ import annotations

import resource
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

    def reset(self) -> None:
        """Begin a new peak."""
        try:
            _CLEAR.write_text("5")
        except OSError:
            self.since_reset = False
        else:
            self.since_reset = True

    def read(self) -> int:
        """Return the peak in bytes."""
        try:
            for line in _STATUS.read_text().splitlines():
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
        except OSError:
            pass
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
