"""A time limit for checks of the doctor: a process that ends rank 0 when a call hangs.

When one rank does not take part in a collective call of a library, the others wait in it for
ever. The library may hold Python's lock meanwhile, so that no thread of the process can report it.
Hence a separate process watches, prints what is known, and ends rank 0; the launcher then ends the
others. Where it does not, they end themselves a little later.

It reads a message per line from its standard input: the time limit of the next call in seconds and
the text to print when it is exceeded, or that no call is in progress. It ends with its input.
"""

from __future__ import annotations

import faulthandler
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import pffbench
from pffbench.errors import UserError
from pffbench.storage.scratch import Scratch

#: Seconds that a rank lives on, so that the launcher does not end the reporting rank.
_GRACE = 5.0


class Watch:
    """Ends this process when a call takes too long.

    Parameters
    ----------
    scratch : Scratch, optional
        Given on the one rank that reports: the directory to remove before the end.
    """

    def __init__(self, scratch: Scratch | None) -> None:
        self._scratch = scratch
        self._onlooker: subprocess.Popen[str] | None = None

    def __enter__(self) -> Watch:
        if self._scratch is not None:
            root = str(Path(pffbench.__file__).parents[1])
            inherited = os.environ.get("PYTHONPATH")
            paths = os.pathsep.join(filter(None, [root, inherited]))
            with suppress(OSError):  # no process can be started: then the end comes silently
                self._onlooker = subprocess.Popen(
                    [sys.executable, "-m", "pffbench.doctor.time_limit", str(os.getpid())],
                    stdin=subprocess.PIPE,
                    text=True,
                    env={**os.environ, "PYTHONPATH": paths},
                )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._onlooker is not None:
            assert self._onlooker.stdin is not None
            with suppress(OSError):
                self._onlooker.stdin.close()
            self._onlooker.wait()

    @contextmanager
    def limit(self, seconds: float, text: str) -> Iterator[None]:
        """Limit the time of the ``with`` block.

        Parameters
        ----------
        seconds : float
            The time limit.
        text : str
            Text that the reporting rank prints when the limit is exceeded.
        """
        self._say(seconds=seconds, text=text)
        # The other ranks end silently: one of them has reported.
        with Path(os.devnull).open("w") as nowhere:
            faulthandler.dump_traceback_later(seconds + _GRACE, exit=True, file=nowhere)
            try:
                yield
            finally:
                faulthandler.cancel_dump_traceback_later()
        self._say(seconds=None, text="")

    def _say(self, *, seconds: float | None, text: str) -> None:
        if self._onlooker is None or self._scratch is None:
            return
        message = {
            "seconds": seconds,
            "text": text,
            "directory": self._scratch.directory,
            "run_id": self._scratch.run_id,
        }
        assert self._onlooker.stdin is not None
        with suppress(OSError):  # it was ended from outside; the limit still holds
            self._onlooker.stdin.write(json.dumps(message) + "\n")
            self._onlooker.stdin.flush()


#: Seconds that the launcher needs to forward the output.
_PASSING_ON = 0.5


def main() -> None:
    """Watch until the input ends or a call exceeds its time limit."""
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
    """Report the state, clean up, and end the process that is stuck."""
    print(message["text"], flush=True)
    with suppress(UserError, OSError):
        Scratch(message["directory"], message["run_id"]).destroy()
    time.sleep(_PASSING_ON)
    stuck = int(sys.argv[1])
    if os.getppid() == stuck:  # its number has not passed to another process meanwhile
        os.kill(stuck, signal.SIGKILL)  # a library that does not return heeds no other signal


if __name__ == "__main__":
    main()
