"""The program: `python -m pffbench`, and the command `pffbench`."""

import gc

gc.disable()  # modules stay: looking for garbage among them takes milliseconds, on each rank

from pffbench.cli import main  # noqa: E402

if __name__ == "__main__":
    main()
