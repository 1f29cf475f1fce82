"""An alarm that ends this rank when nothing else does.

The watchdog ends ranks that hang. It does not exist yet while a run is prepared, and it may be
stopped or missing itself. So each rank also has a timer of the kernel. When it expires, the rank
writes its Python stack and dies by SIGALRM, and the launcher ends the others. Nothing has to run
for that in the rank, which may be stuck in a library.

Setting the timer is a system call, so it is set for longer than needed, and only now and then.
"""

from __future__ import annotations

import faulthandler
import math
import signal
import sys
from contextlib import suppress
from time import monotonic

#: Seconds that a step may take at least, unless the user gives another limit.
PATIENCE = 600.0
#: Seconds that the preparation of a run, and its end, may take at least.
SHORTEST = 60.0
#: Seconds that the watchdog has, after the end of a step's time, to report and to end the ranks.
MARGIN = 20.0
#: Seconds after which the timer is set again by a new step.
_AGAIN = 5.0
#: Most seconds that the timer is set to.
_LONGEST = 1e8


def patience_around(limit: float | None) -> float:
    """Return the seconds for what is before the first case of a run, or after the last one.

    Parameters
    ----------
    limit : float, optional
        The user's limit of a step in seconds.
    """
    return PATIENCE if limit is None else max(SHORTEST, limit)


class Alarm:
    """The timer of this process."""

    def __init__(self) -> None:
        self._set_until = -math.inf
        self._seconds = math.inf

    def begin(self, seconds: float) -> None:
        """Begin steps of which each must end within so many seconds; infinite for no limit."""
        self._seconds, self._set_until = seconds, -math.inf
        self.step()

    def step(self) -> None:
        """Begin a step."""
        now = monotonic()
        if now < self._set_until:
            return
        self._set_until = now + _AGAIN
        endless = math.isinf(self._seconds)
        until = 0.0 if endless else min(self._seconds + MARGIN, _LONGEST)
        signal.setitimer(signal.ITIMER_REAL, until)

    def end(self) -> None:
        """Switch the timer off."""
        self.begin(math.inf)


def write_stack_at_alarm() -> None:
    """Let the process write its Python stack before SIGALRM ends it."""
    with suppress(OSError, ValueError, AttributeError):  # standard error is no file
        faulthandler.register(signal.SIGALRM, file=sys.stderr, all_threads=False, chain=True)
