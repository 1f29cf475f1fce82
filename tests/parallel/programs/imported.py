"""Run the command line on two ranks; rank 0 writes into a file what each has imported at the end.

The first argument is the file, the others are pffbench's own.
"""

import json
import sys
from pathlib import Path

from pffbench.cli import main

try:
    main(sys.argv[2:])
finally:
    modules = sorted(sys.modules)  # before anything is imported for the telling
    from mpi4py import MPI

    told = MPI.COMM_WORLD.gather(modules)
    if told is not None:
        Path(sys.argv[1]).write_text(json.dumps(told))
