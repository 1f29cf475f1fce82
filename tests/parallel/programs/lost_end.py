"""The command line of pffbench; posix claims to write the last of three steps, and does not."""

import sys

from pffbench.backends.raw.posix import PosixArray
from pffbench.cli import main

prepare = PosixArray.writer


def writer(self, box, buffer, collective):
    call = prepare(self, box, buffer, collective)
    return call if box.start[0] < 2 else lambda: buffer.nbytes


PosixArray.writer = writer
main(sys.argv[1:])
