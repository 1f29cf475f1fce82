"""The signals with which batch systems announce the end of a job."""

from __future__ import annotations

import signal
from typing import Any


class StopSignals:
    """Notes SIGTERM and SIGUSR1 while the ``with`` block runs, instead of ending at them."""

    _SIGNALS = (signal.SIGTERM, signal.SIGUSR1)

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopSignals:
        for number in self._SIGNALS:
            self._before[number] = signal.signal(number, self._note)
        return self

    def _note(self, *_: object) -> None:
        self.asked = True

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
