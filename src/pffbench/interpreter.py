"""State of the Python process that all cases share, and that code of another package may change.

A package that replaces a clock, lowers the recursion limit or sets the handler of uncaught errors
does so for everything that runs after it. What measures binds its clock when it is imported, and
`plugins` refuses a package that replaces one before. What is changed in a repetition is restored at
its end, so that it reaches no other case.
"""

from __future__ import annotations

import sys
import time

_CLOCKS = ("perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "time", "time_ns",
           "sleep")  # fmt: skip
#: Those of Python: no other package has been imported when this module is.
_ORIGINALS = {name: getattr(time, name) for name in _CLOCKS}


def restore_clocks() -> list[str]:
    """Restore the clocks of Python; return the names of those that had been replaced."""
    replaced = [name for name in _CLOCKS if getattr(time, name, None) is not _ORIGINALS[name]]
    for name in replaced:
        setattr(time, name, _ORIGINALS[name])
    return [f"time.{name}" for name in replaced]


def ask_no_processor() -> None:
    """Keep Python from starting a process, ``uname -p``, for the name of the processor.

    h5py looks at all of `platform.uname` when it is imported, for another part of it: each rank
    would start one, after MPI has begun, in 10 ms.
    """
    import platform

    vars(platform.uname()).setdefault("processor", "")  # where Python keeps the answer


class InterpreterState:
    """The state of this process now, to be restored."""

    def __init__(self) -> None:
        self._recursion_limit = sys.getrecursionlimit()
        self._excepthook = sys.excepthook

    def restore(self) -> list[str]:
        """Restore the state; return the names of what had been changed."""
        changed = restore_clocks()
        if sys.getrecursionlimit() != self._recursion_limit:
            sys.setrecursionlimit(self._recursion_limit)
            changed.append("the recursion limit")
        if sys.excepthook is not self._excepthook:
            sys.excepthook = self._excepthook
            changed.append("sys.excepthook")
        return changed
