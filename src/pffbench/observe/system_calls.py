"""System calls of this process on the files of a run, by phase, as strace(1) sees them."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TextIO

from pffbench.observe.process_counters import Meter, Reading
from pffbench.proc import kernel_text

#: By phase and counter: ``call_NAME`` is a number of calls, ``bytes_NAME`` what they moved;
#: ``call_NAME_O_CREAT`` are those of them that may make a file; ``raced_NAME`` are further calls,
#: whose number depends on timing.
CallCounts = Counter[tuple[str, str]]

#: Paths that name no file; asking for one marks the begin or the end of a phase in the trace.
_BEGIN, _END = "pffbench-phase-begins:", "pffbench-phase-ends"
#: Path that is asked for at the end: it is missing in a trace that could not be written.
_LAST = "pffbench-trace-ends"
_MARK = re.compile(rf'"(?:{_BEGIN}([^"]*)|{_END})"')
#: Thread and name of a call. What it returned is in another line if a thread called in between.
_CALL = re.compile(r"(\d+) +(<\.\.\. )?(\w+)(?:\(| resumed>)")
_RETURNED = re.compile(r" = (\d+|-1 (E\w+))(?: \([^()]*\))?\n?$")
_PATH = re.compile(r'"([^"]*)"')
#: Calls that return the bytes that they moved.
_MOVING = re.compile(r"p?(?:read|write)(?:64|v|v2)?$")
#: prctl(2): which process may trace this one; any, since strace is a child.
_PR_SET_PTRACER, _ANY = 0x59616D61, -1
#: Seconds until strace is attached, or has left, at most.
_PATIENCE = 30.0
#: Bytes at the end of a trace that contain its last mark.
_LAST_BYTES = 2**20


class TracingMeter(Meter):
    """A meter that has the system calls of each phase counted too.

    Every call stops the thread twice, so that the times of a traced phase mean nothing.

    Parameters
    ----------
    directory : str
        The scratch directory: calls on files of other directories are not counted.
    """

    def __init__(self, directory: str) -> None:
        super().__init__(io=True)
        # Its name is unique and has plain letters only, where strace may escape those before it.
        self._directory = f"/{Path(directory).name}"
        self._strace: subprocess.Popen[bytes] | None = None
        self._place: tempfile.TemporaryDirectory[str] | None = None

    def start(self) -> None:
        """Begin to trace this process.

        Raises
        ------
        OSError
            strace is missing, or the kernel lets no process trace this one.
        """
        strace = shutil.which("strace")
        if strace is None:
            raise FileNotFoundError("counters: calls needs strace, which is not installed here")
        self._place = tempfile.TemporaryDirectory(prefix="pffbench-calls-")
        trace, said = (Path(self._place.name, name) for name in ("trace", "said"))
        with suppress(OSError, AttributeError):  # needed where Yama restricts tracing
            ctypes.CDLL(None).prctl(_PR_SET_PTRACER, _ANY, 0, 0, 0)
        command = [
            strace, "-f", "-y", "-qq", "-s", "0", "-e", "trace=%file,%desc", "-e", "signal=none",
            "-o", str(trace), "-p", str(os.getpid()),
        ]  # fmt: skip
        with said.open("wb") as errors:
            self._strace = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=errors)
        end = time.monotonic() + _PATIENCE
        while not _all_traced():
            if self._strace.poll() is not None or time.monotonic() > end:
                told = said.read_text(errors="replace").strip()
                with suppress(ChildProcessError):
                    self.stop()
                raise PermissionError(f"counters: calls: strace cannot trace this process: {told}")
            time.sleep(0.001)

    def begin(self, phase: str = "") -> Reading:
        """Return the counters, and mark the begin of a phase."""
        reading = super().begin()
        os.access(_BEGIN + phase, os.F_OK)
        return reading

    def since(self, before: Reading) -> Reading:
        """Return the amounts counted since `begin` returned, and mark the end of the phase."""
        os.access(_END, os.F_OK)
        return super().since(before)

    def stop(self) -> CallCounts:
        """End the tracing; return what was counted since `start`, nothing if it did not begin.

        Raises
        ------
        ChildProcessError
            strace has ended before, or could not write all calls, so that some are missing.
        """
        counts: CallCounts = Counter()
        is_whole = self._place is None
        died = self._strace is not None and self._strace.poll() is not None
        if self._strace is not None:
            os.access(_LAST, os.F_OK)
            self._strace.terminate()  # lets go of this process, which goes on
            try:
                self._strace.wait(_PATIENCE)
            except subprocess.TimeoutExpired:  # a rank that fails alone would end the job
                self._strace.kill()
                self._strace.wait()
            self._strace = None
        if self._place is not None:
            with (
                suppress(FileNotFoundError),
                Path(self._place.name, "trace").open(errors="replace") as trace,
            ):
                counts = count_calls(trace, self._directory)
                is_whole = any(_LAST in line for line in _last_lines(trace))
            self._place.cleanup()
            self._place = None
        if died:
            raise ChildProcessError("strace ended during the repetition, so calls are missing")
        if not is_whole:
            place = tempfile.gettempdir()
            raise ChildProcessError(f"strace could not write all calls; is {place} full?")
        return counts


def _last_lines(trace: TextIO) -> TextIO:
    """Return a trace at a place near its end: threads may make calls after the mark."""
    trace.seek(max(0, os.fstat(trace.fileno()).st_size - _LAST_BYTES))
    return trace


def _all_traced() -> bool:
    """Whether every thread of this process has a tracer."""
    threads = Path("/proc/self/task").iterdir()
    told = [kernel_text(thread / "status") for thread in threads]
    return all("\nTracerPid:\t0\n" not in text for text in told if text)


class _Call(NamedTuple):
    """A call on the files of a run: its phase, its name and the path that it is given."""

    phase: str
    name: str
    path: str

    @property
    def makes_directory(self) -> bool:
        """Whether it is to make a directory."""
        return self.name.startswith("mkdir")


class _Race:
    """Finds the calls of a thread that it made only because it lost a race for a directory.

    The thread finds that a directory is missing, is told that it exists when it makes it, and uses
    it. Had the other thread or rank been earlier, these three calls would not be there.
    """

    def __init__(self) -> None:
        #: By missing directory the call that said so.
        self._missing: dict[str, _Call] = {}
        self._lost = ""

    def lost_by(self, call: _Call, error: str | None) -> Sequence[_Call]:
        """Return the calls of a race that is known to be lost by this call."""
        if call.path and call.path == self._lost:
            self._lost = ""
            return (call,)
        if not call.makes_directory:
            if error == "ENOENT":
                self._missing[call.path] = call
            return ()
        self._lost = ""
        first = self._missing.pop(call.path, None)
        if error == "ENOENT":
            self._missing[call.path.rpartition("/")[0]] = call
        elif error == "EEXIST" and first is not None:
            self._lost = call.path
            return (first, call)
        return ()


def count_calls(trace: TextIO | Iterable[str], directory: str) -> CallCounts:
    """Count the calls of a trace that concern files below a directory, in marked phases.

    Parameters
    ----------
    trace : iterable of str
        Lines of ``strace -f -y``.
    directory : str
        Part of the paths that count.
    """
    counts: CallCounts = Counter()
    races: defaultdict[str, _Race] = defaultdict(_Race)
    for thread, call, error in _calls(trace, directory, counts):
        for one in races[thread].lost_by(call, error):
            counts[one.phase, f"call_{one.name}"] -= 1
            counts[one.phase, f"raced_{one.name}"] += 1
    return +counts


def _calls(
    trace: Iterable[str], directory: str, counts: CallCounts
) -> Iterator[tuple[str, _Call, str | None]]:
    """Count calls and bytes; yield each call that has returned, with its thread and its error."""
    phase: str | None = None
    waiting: dict[str, _Call] = {}  # the call of a thread that has not returned
    for line in trace:
        if mark := _MARK.search(line):
            phase = mark[1]
            continue
        begun = _CALL.match(line)
        if begun is None:
            continue
        thread, resumed, name = begun.groups()
        call = waiting.pop(thread, None)
        if not resumed:
            if phase is None or directory not in line:
                continue
            path = _PATH.search(line)
            call = _Call(phase, name, path[1] if path else "")
            counts[phase, f"call_{name}"] += 1
            if "O_CREAT" in line:
                counts[phase, f"call_{name}_O_CREAT"] += 1
            if line.rstrip().endswith("<unfinished ...>"):
                waiting[thread] = call
                continue
        if call is None:
            continue
        returned = _RETURNED.search(line)
        error = returned[2] if returned else None
        if returned and not error and _MOVING.match(name):
            counts[call.phase, f"bytes_{name}"] += int(returned[1])
        yield thread, call, error
