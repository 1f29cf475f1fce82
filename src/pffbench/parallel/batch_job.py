"""The batch job of Slurm, PBS or Flux: its remaining time, and the signals of its end."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import FrameType
from typing import Any

from pffbench.parallel.launcher import speaks_for_all
from pffbench.tools import run_tool

#: Reserve for the work after the last repetition: removing files, the summary, the script.
_RESERVE = 60.0
#: Largest part of a short job that is reserved.
_RESERVE_PART = 0.1
#: What Flux reports of a job without a time limit, in seconds.
_FLUX_UNLIMITED = 2**32 - 1
_PBS_FIELD = r"^ +([\w.]+) = (.*)$"


def seconds_left(environ: Mapping[str, str], timeout: float = 5.0) -> float | None:
    """Find how long a run may continue in this job of Slurm, PBS or Flux.

    Parameters
    ----------
    environ : mapping
        An environment, such as `os.environ`.
    timeout : float
        Seconds that the scheduler's command may take.

    Returns
    -------
    float or None
        Seconds from now until the job's end, less a reserve of a minute (a tenth of the rest in
        a short job); None outside of a job, in one without a limit, or where the end is unknown.
    """
    end = _end(environ, timeout)
    if end is None:
        return None
    left = end - time.time()
    return left - min(_RESERVE, _RESERVE_PART * max(left, 0.0))


def _end(environ: Mapping[str, str], timeout: float) -> float | None:
    """Return when the job ends, as a time of the epoch."""
    if environ.get("SLURM_JOB_ID"):
        return _end_in_slurm(environ, timeout)
    if environ.get("PBS_JOBID"):
        text = _answer(["qstat", "-f", environ["PBS_JOBID"]], timeout)
        return None if text is None else _end_in_pbs(text)
    if environ.get("FLUX_URI"):
        text = _answer(["flux", "job", "timeleft"], timeout)
        if text is not None and text.isdecimal() and int(text) < _FLUX_UNLIMITED:
            return time.time() + int(text)
    return None


def _answer(command: list[str], timeout: float) -> str | None:
    """Run a command of the scheduler; None where it is missing or fails."""
    answer = run_tool(command, timeout)
    return answer.text.strip() if answer.ok else None


def _end_in_slurm(environ: Mapping[str, str], timeout: float) -> float | None:
    """Return when a Slurm job ends: exported since 22.05; earlier versions are queried."""
    told = environ.get("SLURM_JOB_END_TIME", "")
    if told.isdecimal():
        return float(told)
    text = _answer(
        ["squeue", "--noheader", "--format=%L", "--job", environ["SLURM_JOB_ID"]], timeout
    )
    seconds = None if text is None else _seconds(text)
    return None if seconds is None else time.time() + seconds


def _end_in_pbs(text: str) -> float | None:
    """Return when a PBS job ends, from ``qstat -f``: its start and its limit."""
    fields = dict(re.findall(_PBS_FIELD, text, re.MULTILINE))
    limit = _seconds(fields.get("Resource_List.walltime", ""))
    try:
        start = time.mktime(time.strptime(fields.get("stime", ""), "%a %b %d %H:%M:%S %Y"))
    except ValueError:
        return None
    return None if limit is None else start + limit


def _seconds(text: str) -> float | None:
    """Read Slurm's ``days-hours:minutes:seconds``; None for ``UNLIMITED`` and the like."""
    days, _, rest = text.rpartition("-")
    parts = rest.split(":")
    if not all(part.isdecimal() for part in (*parts, days or "0")):
        return None
    seconds = 0
    for part in parts:
        seconds = 60 * seconds + int(part)
    return float(86400 * int(days or "0") + seconds)


_GOING_ON = (
    b"\npffbench: stopping when the repetition in hand is finished; Ctrl-C again ends at once\n"
)


class StopSignals:
    """Records SIGTERM, SIGUSR1 and SIGINT while the ``with`` block runs, instead of ending at them.

    A second SIGINT, which Ctrl-C sends, ends the block with `KeyboardInterrupt`.

    Attributes
    ----------
    asked : bool
        Whether a signal has arrived.
    when_asked : callable, optional
        Called at each signal, wherever the program is: it must return at once.
    """

    _SIGNALS = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)

    def __init__(self) -> None:
        self.asked = False
        self.when_asked: Callable[[], None] | None = None
        self._interrupted = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopSignals:
        self._before = {number: signal.getsignal(number) for number in self._SIGNALS}
        self.install()
        return self

    def install(self) -> None:
        """Install the handlers, again after MPI has started.

        MPICH takes SIGUSR1 for the word of its launcher that a rank has died, and asks the launcher
        which: a process that was started alone hangs there.
        """
        for number in self._SIGNALS:
            signal.signal(number, self._note)

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
