"""The signals that ask a run to end: of a batch system, of `timeout`, of a person at a terminal."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

from pffbench.parallel.launcher import speaks_for_all

_GOING_ON = (
    b"\npffbench: stopping when the repetition in hand is finished; Ctrl-C again ends at once\n"
)


class StopSignals:
    """Notes SIGTERM, SIGUSR1 and SIGINT while the ``with`` block runs, instead of ending at them.

    A second SIGINT, which Ctrl-C sends, ends the block with `KeyboardInterrupt`.

    Attributes
    ----------
    asked : bool
        Whether one has come.
    when_asked : callable, optional
        Called at each one, wherever the program is: it must take no time.
    """

    _SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)

    def __init__(self) -> None:
        self.asked = False
        self.when_asked: Callable[[], None] | None = None
        self._interrupted = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopSignals:
        for number in self._SIGNALS:
            self._before[number] = signal.signal(number, self._note)
        return self

    def _note(self, number: int, _: FrameType | None) -> None:
        self.asked = True
        if self.when_asked is not None:
            self.when_asked()
        if number != signal.SIGINT:
            return
        if self._interrupted:
            raise KeyboardInterrupt
        self._interrupted = True
        if speaks_for_all(os.environ):
            with suppress(OSError):  # past Python's buffers, in the midst of which this may be
                os.write(2, _GOING_ON)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
