"""The program: `python -m pffbench`, and the command `pffbench`."""

import gc
import resource
import signal
import sys

# Ctrl-C ends the program without a traceback of its imports, until a command can react to it. What
# ignores Ctrl-C, such as nohup(1), is left as it is.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
gc.disable()  # modules stay: looking for garbage among them takes milliseconds, on each rank
if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]  # the current directory, in which another's yaml.py may lie

from pffbench.errors import WRONG_INPUT  # noqa: E402

#: MiB of address space below which NumPy cannot be loaded: its OpenBLAS ends the process.
_FEWEST = 192
_limit, _ = resource.getrlimit(resource.RLIMIT_AS)
if _limit != resource.RLIM_INFINITY and _limit < _FEWEST * 2**20:
    print(
        f"pffbench: a process may have {_limit // 2**20} MiB of virtual memory, and MPI and other "
        f"libraries need {_FEWEST} MiB at least, for a run more; raise the limit (ulimit -v)",
        file=sys.stderr,
    )
    sys.exit(WRONG_INPUT)

from pffbench.cli import main  # noqa: E402

if __name__ == "__main__":
    main()
