"""Who holds a directory: a process that can be recognised later, also when it has ended.

A killed run leaves its lock and its scratch directory behind. Both name the process, so that the
next one can find out whether it may take them over. Only what is *known* to have ended counts as
ended: a process of this machine by its number and start time, a job by what Slurm says of it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pffbench.programs import ask
from pffbench.storage.regular_files import read_regular
from pffbench.text import one_line

#: Seconds that Slurm may take to answer.
_ANSWER = 10.0
#: Bytes of a file in which a process is written down; it is a line.
_LONGEST = 2**14
_LONGEST_FACT = 200
#: The largest number that Linux gives a process (PID_MAX_LIMIT).
_LARGEST_PID = 2**22
#: What can name a job, and is no option of a program that is asked about it.
_JOB = re.compile(r"([0-9A-Za-z][0-9A-Za-z_.+\[\]-]{0,63})?")


@dataclass(frozen=True)
class Fate:
    """What became of a process.

    Parameters
    ----------
    state : {"ended", "runs", "unknown"}
        Whether it is known to have ended, or to run.
    why : str
        How that is known, or why it is not.
    """

    state: Literal["ended", "runs", "unknown"]
    why: str


@dataclass(frozen=True)
class Holder:
    """A process, as it writes itself down.

    Parameters
    ----------
    host, user : str
        Where it runs, and for whom.
    pid : int
        Its number.
    date : str
        When it wrote this, in UTC.
    boot, namespace, started : str
        The start of its machine, the set of process numbers that its own is from, and when it
        began in the kernel's ticks: with the number they name it once and for all. Empty when
        unknown.
    job, restart : str
        Its batch job, and how often that had been started before; empty outside of one.
    """

    host: str
    user: str
    pid: int
    date: str
    boot: str = ""
    namespace: str = ""
    started: str = ""
    job: str = ""
    restart: str = ""

    @classmethod
    def me(cls) -> Holder:
        """Return this process."""
        return cls(
            host=socket.gethostname(),
            user=_user(),
            pid=os.getpid(),
            date=datetime.now(UTC).isoformat(timespec="seconds"),
            boot=_boot(),
            namespace=_namespace(),
            started=_started(os.getpid()),
            job=os.environ.get("SLURM_JOB_ID", ""),
            restart=os.environ.get("SLURM_RESTART_COUNT", "0"),
        )

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Holder:
        """Return a process that wrote these facts down; other facts are passed over.

        Raises
        ------
        ValueError
            They do not name a process.
        """
        try:
            named = {name: str(facts.get(name, "")) for name in cls.__dataclass_fields__}
            required = {name: str(facts[name]) for name in ("host", "user", "date")}
            pid = int(str(facts["pid"]))
        except (KeyError, ValueError) as error:
            raise ValueError(f"it does not name a process: {error!r}") from None
        texts = {name: one_line(text, _LONGEST_FACT) for name, text in (named | required).items()}
        if not 0 < pid <= _LARGEST_PID or not _JOB.fullmatch(texts["job"]):
            raise ValueError("it does not name a process: number or job is none")
        return cls(**{**texts, "pid": pid})  # type: ignore[arg-type]

    def facts(self) -> dict[str, Any]:
        """Return what is to be written down."""
        return asdict(self)

    def __str__(self) -> str:
        job = f", job {self.job}" if self.job else ""
        return f"process {self.pid} on {self.host} of {self.user}{job}, since {self.date}"

    def fate(self) -> Fate:
        """Find out what became of the process."""
        here = bool(self.boot) and self.boot == _boot()
        if here and self.namespace == _namespace():
            return self._fate_here()
        if self.job:
            return self._fate_of_job()
        if here:
            return Fate("unknown", "it is in another container of this machine")
        if self.boot and self.host == socket.gethostname():
            return Fate("ended", f"{self.host} has been started anew since")
        return Fate("unknown", f"it ran on {self.host}, which cannot be asked from here")

    def _fate_here(self) -> Fate:
        if not self.started or _started(self.pid) == self.started:
            return Fate("runs", "its process is there")
        return Fate("ended", "its process is gone")

    def _fate_of_job(self) -> Fate:
        """Ask Slurm; of one's own job an earlier start has ended."""
        if self.job == os.environ.get("SLURM_JOB_ID"):
            restart = os.environ.get("SLURM_RESTART_COUNT", "0")
            if restart != self.restart:
                return Fate("ended", f"job {self.job} has been started anew since")
            return Fate("unknown", f"it was started by this job too, on {self.host}")
        program = shutil.which("squeue")
        if program is None:
            return Fate("unknown", f"it is of job {self.job}, and there is no squeue here to ask")
        answer = ask([program, "--noheader", "--format=%T", "--jobs", self.job], _ANSWER)
        if not answer.ok and "Invalid job id" not in answer.text:
            return Fate("unknown", f"squeue does not tell about job {self.job}")
        states = set(answer.text.split()) if answer.ok else set()
        if states <= {"PENDING"}:
            return Fate("ended", f"job {self.job} does not run any more")
        return Fate("runs", f"job {self.job} is {'/'.join(sorted(states)).lower()}")


def read_facts(path: str | Path, *, dir_fd: int | None = None) -> dict[str, Any]:
    """Return what is written down in a file by which a process holds something.

    Parameters
    ----------
    path : str or Path
        The file; a symbolic link is none.
    dir_fd : int, optional
        An open directory that a relative path is in.

    Returns
    -------
    dict
        Empty where it is not what a process writes.

    Raises
    ------
    OSError
        The file cannot be read, or is no regular file.
    """
    data = read_regular(path, _LONGEST, links=False, dir_fd=dir_fd)
    try:
        facts = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return facts if isinstance(facts, dict) else {}


def _user() -> str:
    import getpass  # which brings the terminal's settings; only who marks a directory asks

    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without an account, as in some containers
        return str(os.getuid())


def _boot() -> str:
    return _read("/proc/sys/kernel/random/boot_id")


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")  # noqa: PTH115 -- a link of /proc
    except OSError:
        return ""


def _started(pid: int) -> str:
    """Return field 22 of /proc/PID/stat (proc(5)): when the process began, in ticks."""
    fields = _read(f"/proc/{pid}/stat").rpartition(") ")[2].split()
    if len(fields) < 20 or fields[0] == "Z":  # it has ended; only its parent has not noticed
        return ""
    return fields[19]


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace").strip()
    except OSError:
        return ""
