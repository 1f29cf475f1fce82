"""The command line of pffbench; each raw transfer adds a line to the file $PLACES: its direction,
and where in a page its memory begins."""

import os
import sys

import numpy as np

from pffbench.backends.raw import posix
from pffbench.cli import main


def noting(direction, call, buffer_of):
    def noted(descriptor, buffer, offset):
        begin = np.frombuffer(buffer_of(buffer), "u1").ctypes.data % 4096
        with open(os.environ["PLACES"], "a") as file:
            print(direction, begin, file=file)
        return call(descriptor, buffer, offset)

    return noted


posix.preadv = noting("read", posix.preadv, lambda buffers: buffers[0])
posix.pwrite = noting("write", posix.pwrite, lambda buffer: buffer)
main(sys.argv[1:])
