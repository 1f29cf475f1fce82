"""pffbench with a limit of 1 MiB on the length of files, as a quota sets one."""

import resource
import signal
import sys

from mpi4py import MPI  # noqa: F401  # its own files come first

from pffbench.cli import main

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))
main(sys.argv[1:])
