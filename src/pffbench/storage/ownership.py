"""Ownership of a scratch directory: its marker file and the process that created it.

A killed run leaves its lock and its scratch directory. Both record the process, so that the next
run can determine whether it may take them over. Only a process that is *known* to have ended counts
as ended: a process of this machine by its number and start time, a job by its scheduler's records.
Elsewhere, numbers and host names prove nothing: containers and copies of a machine have the same.
There the age of the file decides, because the watchdog of a living run touches it every minute.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec

from pffbench.job.batch_job import SCHEDULERS, Fate
from pffbench.proc import PROC, kernel_text, process_fields
from pffbench.regular_files import read_regular
from pffbench.text import one_line
from pffbench.units import duration_text

#: Maximum bytes of a file that records a process; it is a line.
_LONGEST = 2**14
_LONGEST_FACT = 200
#: Seconds without a touch after which a run of another machine does not live any more: 60 touches
#: are missing then.
SILENCE = 3600.0


class ProcessStatus(msgspec.Struct, frozen=True):
    """Whether a process has ended."""

    #: ``ended`` and ``runs`` only where that is known ({"ended", "runs", "unknown"}).
    state: Fate
    #: How the state is known, or why it is not.
    why: str


class OwnerProcess(msgspec.Struct, frozen=True):
    """A process, identified so that it is recognisable also after it has ended."""

    host: str
    user: str
    #: Its number, up to the largest one of Linux (PID_MAX_LIMIT).
    pid: Annotated[int, msgspec.Meta(gt=0, le=2**22)]
    #: When this record was written, in UTC.
    date: str
    #: The boot of its machine, its namespace of process numbers, and its start in the kernel's
    #: ticks: with the number they identify it uniquely. Empty when unknown.
    boot: str = ""
    namespace: str = ""
    started: str = ""
    #: Its batch job (a name that cannot be mistaken for an option of a command), and the number of
    #: restarts of the job; empty outside of one.
    job: Annotated[str, msgspec.Meta(pattern=r"^([0-9A-Za-z][0-9A-Za-z_.+\[\]-]{0,63})?$")] = ""
    restart: str = ""
    #: What knows the job: slurm, pbs or flux.
    scheduler: str = "slurm"

    @classmethod
    def me(cls) -> OwnerProcess:
        """Return this process."""
        return cls(
            host=os.uname().nodename,
            user=_user(),
            pid=os.getpid(),
            date=datetime.now(UTC).isoformat(timespec="seconds"),
            boot=_boot(),
            namespace=_namespace(),
            started=_started(os.getpid()),
            **_batch_job(),
        )

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> OwnerProcess:
        """Return the process that these facts record; other facts are ignored.

        Raises
        ------
        ValueError
            They do not name a process.
        """
        plain = {
            name: one_line(fact, _LONGEST_FACT) if isinstance(fact, str) else fact
            for name, fact in facts.items()
        }
        try:
            return msgspec.convert(plain, cls)
        except msgspec.ValidationError as error:
            raise ValueError(f"it does not name a process: {error}") from None

    def facts(self) -> dict[str, Any]:
        """Return the facts to be recorded."""
        return msgspec.structs.asdict(self)

    def __str__(self) -> str:
        job = f", job {self.job}" if self.job else ""
        return f"process {self.pid} on {self.host} of {self.user}{job}, since {self.date}"

    def fate(self, silent: float | None = None) -> ProcessStatus:
        """Determine whether the process has ended.

        Parameters
        ----------
        silent : float, optional
            Seconds since its file was touched, see `seconds_since_touch`.
        """
        here = bool(self.boot) and self.boot == _boot()
        if here and self.namespace == _namespace():
            if not self.started or _started(self.pid) == self.started:
                return ProcessStatus("runs", "its process is there")
            return ProcessStatus("ended", "its process is gone")
        where = f"it ran on {self.host}, which cannot be asked from here"
        if self.job:
            of_job = self._fate_of_job()
            if of_job.state != "unknown":
                return of_job
            where = of_job.why
        elif here:
            where = "it is in another container of this machine"
        elif self.boot and self.host == os.uname().nodename:
            where = f"it ran on another machine called {self.host}, or before that was restarted"
        if silent is None:
            return ProcessStatus("unknown", where)
        touched = f"{where}, and touched its file {duration_text(max(silent, 0.0))} ago"
        return ProcessStatus("unknown" if silent < SILENCE else "ended", touched)

    def _fate_of_job(self) -> ProcessStatus:
        """Query the scheduler; an earlier start of the present job has ended."""
        mine = _batch_job()
        if (self.scheduler, self.job) == (mine["scheduler"], mine["job"]):
            if mine["restart"] != self.restart:
                return ProcessStatus("ended", f"job {self.job} has been started anew since")
            return ProcessStatus("unknown", f"it was started by this job too, on {self.host}")
        for scheduler in SCHEDULERS:
            if scheduler.name == self.scheduler:
                return ProcessStatus(*scheduler.fate_of(self.job))
        return ProcessStatus("unknown", f"it is of job {self.job} of an unknown scheduler")


def _batch_job() -> dict[str, str]:
    """Return scheduler, number and restarts of this job; the number is empty outside of one."""
    for one in SCHEDULERS:
        if job := os.environ.get(one.job):
            restart = os.environ.get(one.restarts, "0")
            return {"scheduler": one.name, "job": job, "restart": restart}
    return {"scheduler": "slurm", "job": "", "restart": "0"}


def seconds_since_touch(path: str | Path, now: float | None = None) -> float | None:
    """Return the seconds since a marker or a lock was touched; None where it cannot be read.

    Parameters
    ----------
    path : path
        The marker or lock.
    now : float, optional
        The time by the clock of the file system, which counts before anything is removed
        (`clock_of`); by that of this machine if not given.
    """
    try:
        touched = Path(path).lstat().st_mtime
    except OSError:
        return None
    return (time.time() if now is None else now) - touched


def clock_of(directory: str | Path) -> float:
    """Return the time by the clock of a file system, in a directory that can be written to."""
    import tempfile  # one rank needs it

    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            return os.fstat(file.fileno()).st_mtime
    except OSError:
        return time.time()


def read_facts(path: str | Path, *, dir_fd: int | None = None) -> dict[str, Any]:
    """Return the record of the process that owns a file, such as a lock or a marker.

    Parameters
    ----------
    path : str or Path
        The file; a symbolic link is none.
    dir_fd : int, optional
        An open directory that a relative path is in.

    Returns
    -------
    dict
        Empty where the file holds no such record.

    Raises
    ------
    OSError
        The file cannot be read, or is no regular file.
    """
    import json  # few ranks read or write records

    data = read_regular(path, _LONGEST, links=False, dir_fd=dir_fd)
    try:
        facts = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def _user() -> str:
    import getpass  # which loads the terminal's settings; only the marking of a directory needs it

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without an account, as in some containers
        return str(os.getuid())


def _boot() -> str:
    return kernel_text(PROC / "sys/kernel/random/boot_id") or ""


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")  # noqa: PTH115 -- a link of /proc
    except OSError:
        return ""


def _started(pid: int) -> str:
    """Return field 22 of /proc/PID/stat (proc(5)): the start of the process, in ticks."""
    fields = process_fields(pid)
    if len(fields) < 20 or fields[0] == "Z":  # it has ended; its parent has not waited for it yet
        return ""
    return fields[19]


MARKER = ".pffbench-run"
PREFIX = "pffbench-"
OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Leftover(msgspec.Struct, frozen=True):
    """A scratch directory of some run, with the contents of its marker."""

    #: The directory.
    path: str
    #: The run.
    run_id: str
    #: The process that created it, or that last resumed the run there.
    holder: OwnerProcess
    #: The results directory of a run whose files another job will read; else empty.
    kept_for: str
    #: When the marker was last touched, by the clock of the file system.
    touched: float = 0.0


def mark(directory: Path, run_id: str, kept_for: str = "") -> None:
    """Write the marker of a run into a new directory, or remove the directory again."""
    try:
        write_facts(directory / MARKER, 0o600, run_id=run_id, kept_for=kept_for)
    except OSError:  # the device is full: leave no directory that nobody may remove
        shutil.rmtree(directory, ignore_errors=True)
        raise


def mark_again(directory: Path, run_id: str, kept_for: str = "") -> None:
    """Write this process into the marker of a resumed run: it owns the directory now."""
    new = directory / f"{MARKER}.new"
    new.unlink(missing_ok=True)
    write_facts(new, 0o600, run_id=run_id, kept_for=kept_for)
    new.replace(directory / MARKER)


def write_facts(path: Path, mode: int = 0o644, **facts: str) -> None:
    """Record this process and some facts in a new file, or leave none.

    Raises
    ------
    FileExistsError
        There is a file, or a symbolic link.
    OSError
        It cannot be written.
    """
    import json

    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(path, flags, mode)
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            json.dump(OwnerProcess.me().facts() | facts, file)
            file.flush()
            os.fsync(fd)
    except OSError:  # the device is full
        path.unlink()
        raise


def read_marker(directory_fd: int) -> dict[str, object]:
    """Return the contents of the marker; empty when there is none, or none that can be read."""
    try:
        return read_facts(MARKER, dir_fd=directory_fd)
    except OSError:
        return {}


def find_leftovers(parent: str) -> list[Leftover]:
    """List the marked directories of runs, sorted by path.

    Symbolic links and directories that cannot be read are skipped.

    Raises
    ------
    OSError
        The parent cannot be read.
    """
    with os.scandir(os.path.realpath(parent)) as entries:
        paths = [
            entry.path
            for entry in entries
            if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False)
        ]
    return [leftover for path in sorted(paths) for leftover in leftover_at(path)]


def leftover_at(path: str) -> list[Leftover]:
    """Return the contents of a directory's marker; nothing without one, or with another run's.

    A copy of the directory under another name is its owner's.
    """
    try:
        fd = os.open(path, OPEN_DIRECTORY)
    except OSError:
        return []
    try:
        marker = read_marker(fd)
        run_id, kept_for = str(marker["run_id"]), str(marker.get("kept_for", ""))
        if Path(path).name != PREFIX + run_id:
            return []
        touched = os.stat(MARKER, dir_fd=fd, follow_symlinks=False).st_mtime
        return [Leftover(path, run_id, OwnerProcess.of(marker), kept_for, touched)]
    except (KeyError, ValueError, OSError):
        return []
    finally:
        os.close(fd)
