"""The process that looks on while rank 0 calls libraries (see `watch`).

It reads a message per line from its standard input: how many seconds the next call may take and
what to print when it takes longer, or that nothing is called any more. The end of the input is
its own end.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from contextlib import suppress
from typing import Any

from pffbench.errors import UserError
from pffbench.storage.scratch import Scratch

#: Seconds that the launcher needs to pass on what was printed.
_PASSING_ON = 0.5


def main() -> None:
    """Look on until the input ends or a call takes too long."""
    message: dict[str, Any] = {"seconds": None}
    deadline: float | None = None
    unread = b""
    while _readable(deadline):
        received = os.read(sys.stdin.fileno(), 2**20)
        if not received:
            return
        *lines, unread = (unread + received).split(b"\n")
        if lines:
            message = json.loads(lines[-1])  # only the latest counts
            seconds = message["seconds"]
            deadline = None if seconds is None else time.monotonic() + seconds
    _end(message)


def _readable(deadline: float | None) -> bool:
    """Wait for input; False when the deadline passes first."""
    left = None if deadline is None else max(0.0, deadline - time.monotonic())
    return bool(select.select([sys.stdin], [], [], left)[0])


def _end(message: dict[str, Any]) -> None:
    """Tell what is known, clean up, and end the process that is stuck."""
    print(message["text"], flush=True)
    with suppress(UserError, OSError):
        Scratch(message["directory"], message["run_id"]).destroy()
    time.sleep(_PASSING_ON)
    stuck = int(sys.argv[1])
    if os.getppid() == stuck:  # its number has not passed to another process meanwhile
        os.kill(stuck, signal.SIGKILL)  # a library that does not return heeds nothing less


if __name__ == "__main__":
    main()
