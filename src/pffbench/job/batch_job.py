"""The batch job of Slurm, PBS or Flux: what each scheduler tells, and the signals of its end."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import FrameType
from typing import Any, Literal

import msgspec

from pffbench.job.launcher import speaks_for_all
from pffbench.tools import run_tool

#: Reserve for the work after the last repetition: removing files, the summary, the script.
_RESERVE = 60.0
#: Largest part of a short job that is reserved.
_RESERVE_PART = 0.1
#: What Flux reports of a job without a time limit, in seconds.
_FLUX_UNLIMITED = 2**32 - 1
_PBS_FIELD = r"^ +([\w.]+) = (.*)$"


def _left_in_slurm(text: str) -> float | None:
    """Read Slurm's ``days-hours:minutes:seconds``; None for ``UNLIMITED`` and the like."""
    days, _, rest = text.rpartition("-")
    parts = rest.split(":")
    if not all(part.isdecimal() for part in (*parts, days or "0")):
        return None
    seconds = 0
    for part in parts:
        seconds = 60 * seconds + int(part)
    return float(86400 * int(days or "0") + seconds)


def _left_in_pbs(text: str) -> float | None:
    """Read the start and the limit of a job from ``qstat -f``."""
    fields = dict(re.findall(_PBS_FIELD, text, re.MULTILINE))
    limit = _left_in_slurm(fields.get("Resource_List.walltime", ""))
    try:
        start = time.mktime(time.strptime(fields.get("stime", ""), "%a %b %d %H:%M:%S %Y"))
    except ValueError:
        return None
    return None if limit is None else start + limit - time.time()


def _left_in_flux(text: str) -> float | None:
    return float(text) if text.isdecimal() and int(text) < _FLUX_UNLIMITED else None


#: What may be known of a process or a job.
Fate = Literal["ended", "runs", "unknown"]


class Scheduler(msgspec.Struct, frozen=True):
    """What a scheduler tells a job, and others about it."""

    name: str
    #: Variable in every process of a job.
    inside: str
    #: Variable with the number of the job, which others can ask for.
    job: str
    #: Command that tells how long a job goes on; the value of `job` takes the place of ``{}``.
    time_left: tuple[str, ...]
    #: Reads the seconds from its output.
    seconds: Callable[[str], float | None]
    #: Command that tells the state of a job.
    state: tuple[str, ...]
    #: Pattern of a state in its output.
    states: str
    #: States in which no process of the job runs.
    idle: frozenset[str]
    #: What the command says of a job that it does not remember.
    gone: tuple[str, ...]
    #: Command by which a job queues itself again, where users may.
    requeue: tuple[str, ...] = ()
    #: Variable that counts the restarts of a job, where there is one.
    restarts: str = ""
    #: Variable with the end of the job, as a time of the epoch, where there is one.
    end: str = ""

    def fate_of(self, job: str) -> tuple[Fate, str]:
        """Ask whether a job has ended; return the answer, and how it is known or why it is not."""
        tool = self.state[0]
        answer = run_tool([word.format(job) for word in self.state], _ANSWER)
        is_known = answer.ok or any(words in answer.text for words in self.gone)
        if not is_known or answer.text == f"unknown: {tool} not found":  # the command is not here
            return "unknown", f"{tool} does not tell about job {job}"
        states = set(re.findall(self.states, answer.text, re.MULTILINE)) if answer.ok else set()
        if states <= self.idle:
            return "ended", f"job {job} does not run any more"
        return "runs", f"job {job} is {'/'.join(sorted(states)).lower()}"


#: Time limit of commands that tell the state of a job, in seconds.
_ANSWER = 10.0
#: A rank under Flux is told the number of its step. That of the job, which others can ask for, is
#: in the environment if the job script put it there (docs/slurm.md).
SCHEDULERS = (
    Scheduler(
        "slurm", "SLURM_JOB_ID", "SLURM_JOB_ID",
        ("squeue", "--noheader", "--format=%L", "--job", "{}"), _left_in_slurm,
        ("squeue", "--noheader", "--format=%T", "--jobs", "{}"), r"\S+",
        frozenset({"PENDING"}), ("Invalid job id",), ("scontrol", "requeue", "{}"),
        restarts="SLURM_RESTART_COUNT", end="SLURM_JOB_END_TIME",  # exported since 22.05
    ),
    Scheduler(
        "pbs", "PBS_JOBID", "PBS_JOBID",
        ("qstat", "-f", "{}"), _left_in_pbs,
        ("qstat", "-f", "-x", "{}"), r"^ *job_state = (\w)$",
        frozenset("QHWFX"), ("Unknown Job",),
    ),
    Scheduler(
        "flux", "FLUX_URI", "PFFBENCH_FLUX_JOB",
        ("flux", "job", "timeleft"), _left_in_flux,
        ("flux", "jobs", "--no-header", "--format={{state}}", "{}"), r"\S+",
        frozenset({"DEPEND", "PRIORITY", "SCHED", "INACTIVE"}), ("not found", "No such"),
    ),
)  # fmt: skip


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
    inside = (one for one in SCHEDULERS if environ.get(one.inside))
    left = next((_left(one, environ, timeout) for one in inside), None)
    return None if left is None else left - min(_RESERVE, _RESERVE_PART * max(left, 0.0))


def _left(scheduler: Scheduler, environ: Mapping[str, str], timeout: float) -> float | None:
    told = environ.get(scheduler.end, "")
    if told.isdecimal():
        return float(told) - time.time()
    command = [word.format(environ.get(scheduler.job)) for word in scheduler.time_left]
    answer = run_tool(command, timeout)
    return scheduler.seconds(answer.text.strip()) if answer.ok else None


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
