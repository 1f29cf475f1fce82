"""The program: `python -m pffbench`, and the command `pffbench`."""

import gc
import sys

gc.disable()  # modules stay: looking for garbage among them takes milliseconds, on each rank
if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]  # the current directory, in which another's yaml.py may lie

from pffbench.cli import main  # noqa: E402

if __name__ == "__main__":
    main()
