"""What the block device of a file system has read, as the kernel counts it for all programs."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import NamedTuple

from pffbench.proc import SYS, kernel_text

_SECTOR_BYTES = 512  # the unit of the kernel's file, whatever the device's sectors are


class DeviceReads(NamedTuple):
    """Reads of a block device."""

    #: Requests that the device completed; NaN if they are not counted.
    requests: float = math.nan
    #: Bytes that they delivered.
    nbytes: float = math.nan

    def since(self, before: DeviceReads) -> DeviceReads:
        """Return the reads after those of an earlier count."""
        return DeviceReads(self.requests - before.requests, self.nbytes - before.nbytes)


def count_device_reads(path: str) -> DeviceReads:
    """Return the reads so far of the block device that holds a path, by all programs of the node.

    File systems of a server or in memory, and those that combine devices, have no device that the
    kernel names. Their reads are not counted.

    Parameters
    ----------
    path : str
        An existing file or directory.
    """
    try:
        device = Path(path).stat().st_dev
    except OSError:
        return DeviceReads()
    text = kernel_text(SYS / f"dev/block/{os.major(device)}:{os.minor(device)}/stat")
    fields = (text or "").split()
    if len(fields) < 3:
        return DeviceReads()
    return DeviceReads(float(fields[0]), float(fields[2]) * _SECTOR_BYTES)
