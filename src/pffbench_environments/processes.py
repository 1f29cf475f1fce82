"""A command in a session of its own, whose output is heard and whose end is bounded.

Environments come from anywhere. A command may print without end, may never end, and may leave
children behind: what it prints is kept in bounded memory, and its whole session is ended with it.
"""

from __future__ import annotations

import os
import re
import select
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import msgspec
import psutil

from pffbench.errors import StoppedError
from pffbench.job.batch_job import StopSignals
from pffbench.text import one_line

#: Seconds between two looks at processes, and that they get to end when they must.
_LOOK, _GRACE = 0.05, 10.0
#: Lines of output that are kept to explain an end, characters of each, and bytes of a line that has
#: not ended, without a mark.
_LINES, _LINE, _LONGEST_LINE = 1000, 1024, 64 * 1024
#: Bytes of a line with a mark; the answer about 100 000 cases has a tenth of them.
_LONGEST_ANSWER = 2**29
#: States of a process that has ended, and is there until its parent knows.
_ENDED = (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
#: The last line of a traceback.
_ERROR = re.compile(r"[A-Za-z_.]*(?:Error|Exception): ")
#: Lines of pffbench around a traceback, which explains more than they do.
_AROUND = re.compile(r"rank \d+ met an unexpected error|nothing was recorded|go on with: ")


class Output:
    """The lines of a stream: those with a mark are handed on, of the others the last are kept.

    Parameters
    ----------
    mark : str
        Beginning of a message; other text may stand before it in the line.
    take : callable
        Receives what follows the mark.
    """

    def __init__(self, mark: str = "", take: Callable[[str], None] | None = None) -> None:
        self._mark, self._take = mark.encode(), take
        #: The line that has not ended yet.
        self._rest = bytearray()
        self._last: deque[str] = deque(maxlen=_LINES)

    def hear(self, data: bytes) -> None:
        """Take output as it comes, in pieces of any length."""
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._rest += line
            self._line()
        self._rest += rest
        if len(self._rest) > _LONGEST_ANSWER:
            self._rest.clear()
        elif len(self._rest) > _LONGEST_LINE and not self._is_marked():
            del self._rest[:-_LINE]

    def _is_marked(self) -> bool:
        """Return whether a long line has the mark, near its beginning."""
        return bool(self._mark) and self._mark in self._rest[:_LONGEST_LINE]

    def _line(self) -> None:
        line = self._rest.decode(errors="replace")
        self._rest.clear()
        _, found, text = line.partition(self._mark.decode()) if self._mark else ("", "", "")
        if found and self._take is not None:
            self._take(text)
            return
        self._last.append(line[:_LINE])

    @property
    def text(self) -> str:
        """The last lines."""
        self._line()
        return "\n".join(self._last)


class Processes:
    """A command and all processes of its session.

    Parameters
    ----------
    command : sequence of str
        The command.
    variables : mapping of str to str, optional
        Its environment variables; those of this process when not given.
    mark : str
        Beginning of the messages in its standard output.
    take : callable, optional
        Receives each message.
    listens : bool
        Whether it reads its standard input.
    """

    def __init__(
        self,
        command: Sequence[str],
        variables: Mapping[str, str] | None,
        *,
        mark: str = "",
        take: Callable[[str], None] | None = None,
        listens: bool = False,
    ) -> None:
        # A session of its own: Ctrl-C ends the run, and not these processes in a repetition.
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE if listens else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=variables,
            start_new_session=True,
            bufsize=0,
        )
        self._pipes = [pipe for pipe in (self._process.stdout, self._process.stderr) if pipe]
        self._outputs = Output(mark, take), Output()
        pairs = zip(self._pipes, self._outputs, strict=True)
        #: The outputs that have not ended, by their descriptors.
        self._streams = {pipe.fileno(): output for pipe, output in pairs}

    @property
    def text(self) -> str:
        """The part of its output and of its errors that explains its end."""
        return "\n".join(output.text for output in self._outputs)

    @property
    def has_ended(self) -> bool:
        """Whether the command has ended; its number stays its own until `end`."""
        if self._process.returncode is not None:
            return True
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self._process.pid, flags) is not None

    def wait(
        self,
        seconds: float,
        until: Callable[[], bool] = lambda: False,
        keep_going: Callable[[], None] = lambda: None,
    ) -> bool:
        """Hear its output until a condition holds or it has ended.

        Parameters
        ----------
        seconds : float
            Longest time to wait.
        until : callable
            The condition.
        keep_going : callable
            Called at each look; may raise.

        Returns
        -------
        bool
            Whether that happened in time.
        """
        end = time.monotonic() + seconds
        while not until():
            heard = self._hear()
            keep_going()
            # A process that it left behind may keep its output open.
            if not heard and self.has_ended:
                return True
            if time.monotonic() > end:
                return until()
        return True

    def _hear(self) -> bool:
        """Take output that is there; return whether there was any."""
        if not self._streams:
            time.sleep(_LOOK)
            return False
        ready, _, _ = select.select(list(self._streams), [], [], _LOOK)
        heard = False
        for stream in ready:
            data = os.read(stream, 65536)
            heard |= bool(data)
            if data:
                self._streams[stream].hear(data)
            else:
                del self._streams[stream]
        return heard

    def write(self, text: bytes) -> None:
        """Write to its standard input, if it still reads it."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(text)

    def close_input(self) -> None:
        """Tell it that nothing more is written to its standard input."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def end(self) -> int:
        """End all processes of the session, unless they have ended; return the exit status.

        They are asked first, which launchers pass on, and lose what they hold after some seconds.
        """
        self.close_input()
        if not self.has_ended:
            self._process.terminate()
            self.wait(_GRACE)
        # The command is not reaped yet, so that no other session can have its number.
        if self._process.returncode is None:
            _kill_session(self._process.pid)
        status = self._process.wait()
        # What has left the session may go on printing for ever.
        until = time.monotonic() + _GRACE
        while self._hear() and time.monotonic() < until:
            pass
        for pipe in self._pipes:
            pipe.close()
        self._streams = {}
        return status


def _kill_session(number: int) -> None:
    """Kill the processes of a session, and wait until they are gone."""
    end = time.monotonic() + _GRACE
    while left := [process for process in psutil.process_iter() if _is_of(process, number)]:
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        if time.monotonic() > end:  # in a call of a device that does not return
            return
        time.sleep(_LOOK / 5)


def _is_of(process: psutil.Process, session: int) -> bool:
    """Return whether a process that has not ended is of a session."""
    try:
        return os.getsid(process.pid) == session and process.status() not in _ENDED
    except (OSError, psutil.Error):
        return False


class Finished(msgspec.Struct, frozen=True):
    """Outcome of a command that has ended."""

    #: Exit status; None if it took too long.
    status: int | None
    #: What followed the mark in its standard output.
    messages: list[str]
    #: The part of its output that explains its end.
    text: str


def run_bounded(
    command: Sequence[str],
    seconds: float,
    keep_going: Callable[[], None],
    mark: str = "",
    variables: Mapping[str, str] | None = None,
) -> Finished:
    """Run a command to its end, or end it with all its children.

    Parameters
    ----------
    command, mark, variables
        As of `Processes`.
    seconds : float
        Longest time that it may take.
    keep_going : callable
        Called while it runs; may raise, which ends it too.
    """
    messages: list[str] = []
    processes = Processes(command, variables, mark=mark, take=messages.append)
    in_time = False
    try:
        in_time = processes.wait(seconds, keep_going=keep_going)
    finally:
        status = processes.end()
    return Finished(status if in_time else None, messages, processes.text)


def stop_before_start(stop: StopSignals) -> Callable[[], None]:
    """Return the function that ends the checks of a run, which has not begun, at a signal.

    Parameters
    ----------
    stop : StopSignals
        Tells that the run is to end.
    """

    def check() -> None:
        if stop.asked:
            raise StoppedError("a signal asked the run to end before it began; nothing was made")

    return check


def last_line(text: str) -> str:
    """Return the line that explains a failed program: that of pffbench, an error, or the last."""
    lines = [line.strip() for line in text.splitlines() if line.strip(" -=")]
    own = [line.removeprefix("pffbench: ") for line in lines if line.startswith("pffbench: ")]
    own = [line for line in own if not _AROUND.match(line)]
    errors = [line for line in lines if _ERROR.match(line)]
    return one_line(next(iter([*own[:1], *errors[-1:], *lines[-1:]]), "it said nothing"), 400)
