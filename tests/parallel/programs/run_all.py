"""Run programs one after the other on all ranks, each in a directory of its own."""

import os
import runpy
import sys
import traceback

from mpi4py import MPI

comm = MPI.COMM_WORLD
for place in sys.argv[1:]:
    os.chdir(place)
    ended = False
    try:
        runpy.run_path("program.py", run_name="__main__")
        ended = True
    finally:
        if not ended:  # the other ranks would wait for this one
            print(f"FAILED in {place}", file=sys.stderr)
            traceback.print_exc()
            sys.stderr.flush()
            comm.Abort(1)
    comm.Barrier()
