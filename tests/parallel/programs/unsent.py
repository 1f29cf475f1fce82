"""pffbench on ranks of which rank 1 receives nothing, or maps other memory than its node."""

import sys

import numpy as np

from pffbench.__main__ import main
from pffbench.mpi import delivery

_send, _share = delivery.Broadcast._send, delivery.SharedMemory.share


def _half_sent(self, data):
    """Take part with other memory."""
    lost = self._comm.rank == 1 and data.size > 100
    _send(self, np.zeros_like(data) if lost else data)


def _half_shared(self, nbytes, text):
    memory = _share(self, nbytes, text)
    return np.zeros_like(memory) if self._node.rank == 1 else memory


if __name__ == "__main__":
    delivery.Broadcast._send = _half_sent
    delivery.SharedMemory.share = _half_shared
    sys.exit(main())
