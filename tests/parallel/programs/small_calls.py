"""The command line of pffbench, with libraries that take at most 1000 bytes in a call."""

import sys

from pffbench.backends.hdf5 import Hdf5
from pffbench.backends.netcdf4 import NetCdf4
from pffbench.backends.raw.mpiio import MpiIo
from pffbench.cli import main

for backend in (Hdf5, MpiIo, NetCdf4):
    assert backend.call_limit == 2**31 - 1
    backend.call_limit = 1000

main(sys.argv[1:])
