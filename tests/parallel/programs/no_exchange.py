"""pffbench whose ranks do not exchange what they say: LOST is `to_writers` or `from_writers`."""

import os
import sys

from pffbench.__main__ import main
from pffbench.mpi.exchange import Exchange

if __name__ == "__main__":
    setattr(Exchange, os.environ["LOST"], lambda *_: lambda: None)
    sys.exit(main())
