"""pffbench on ranks of which rank 1 receives nothing, or sees an old state of shared memory."""

import sys

import numpy as np

from pffbench.__main__ import main
from pffbench.parallel import delivery

_send, _deliver = delivery.Broadcast._send, delivery.SharedMemory.deliver


def _half_sent(self, data):
    """Take part with other memory."""
    lost = self._comm.rank == 1 and data.size > 100
    _send(self, np.zeros_like(data) if lost else data)


def _half_seen(self, text, data):
    told = _deliver(self, text, data)
    if self._node.rank == 1:
        data[-8:] = 0xA5
    return told


if __name__ == "__main__":
    delivery.Broadcast._send = _half_sent
    delivery.SharedMemory.deliver = _half_seen
    sys.exit(main())
