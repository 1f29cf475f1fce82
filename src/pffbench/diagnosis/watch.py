"""An end to calls that never return.

When one rank does not take part in a collective call of a library, the others wait in it for
ever and no Python code of theirs runs on. A thread of each rank sees that and ends the process.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
from collections.abc import Callable
from types import TracebackType

_STATUS = 1
#: Seconds that the other ranks live on, so that the launcher does not kill the one that tells.
_GRACE = 5.0


class Watch:
    """Ends this process when the statements under it take too long.

    Parameters
    ----------
    seconds : float
        How long they may take.
    tell : callable, optional
        Called before the end; given on the one rank that reports.
    """

    def __init__(self, seconds: float, tell: Callable[[], object] | None = None) -> None:
        self._seconds = seconds
        self._tell = tell
        wait = seconds if tell is not None else seconds + _GRACE
        self._timer = threading.Timer(wait, self._end)
        self._timer.daemon = True

    def __enter__(self) -> Watch:
        self._timer.start()
        # A library that keeps Python's lock keeps the timer from running; this one needs no lock.
        faulthandler.dump_traceback_later(self._seconds + 3 * _GRACE, exit=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        faulthandler.cancel_dump_traceback_later()
        self._timer.cancel()

    def _end(self) -> None:
        try:
            if self._tell is not None:
                self._tell()
            sys.stdout.flush()
        finally:
            os._exit(_STATUS)  # the main thread is stuck in a library and cannot be asked to leave
