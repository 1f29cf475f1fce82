"""The lock of a results directory, which one run at a time may write to.

The lock is a file created with ``O_EXCL``, which every file system supports across nodes; locks of
flock(2) and fcntl(2) are local to a node on some. A killed run leaves its lock behind. The next run
takes it over if the process named in it is known to have ended; if that is unknown, its message
names the file to remove.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pffbench.errors import UserError, explained
from pffbench.storage.ownership import (
    OwnerProcess,
    clock_of,
    read_facts,
    seconds_since_touch,
    write_facts,
)

NAME = "run.lock"
#: Held briefly during a takeover, so that only one of two concurrent runs succeeds.
_TAKING = "run.lock.taking"


class RunLock:
    """Lock of the process on a results directory, held or not."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._token = os.urandom(16).hex()

    def take(self, directory: str | Path, option: str) -> None:
        """Acquire the lock of an existing directory.

        Parameters
        ----------
        directory : path
            The results directory.
        option : str
            The user's option for the directory, for messages, such as ``--out DIR``.

        Raises
        ------
        UserError
            Another run holds the lock, or may hold it; or the lock cannot be created.
        """
        path = Path(directory) / NAME
        with explained(f"{option}: {path} cannot be made"):
            if not self._made(path):
                self._taken_over(path, option)
        self._path = path

    def release(self) -> None:
        """Remove the lock if this process holds it."""
        if self._path is None:
            return
        with suppress(OSError):
            if read_facts(self._path).get("token") == self._token:
                self._path.unlink()
        self._path = None

    def _made(self, path: Path) -> bool:
        """Create the lock; return False if one exists."""
        try:
            write_facts(path, token=self._token)
        except FileExistsError:
            return False
        return True

    def _taken_over(self, path: Path, option: str) -> None:
        """Replace a lock whose holder has ended by this process's."""
        with _taking(path, option):
            try:
                _refuse_living(path, option)
            except FileNotFoundError:  # its holder has just released it
                if self._made(path):
                    return
                raise UserError(f"{option}: another run has just begun there") from None
            new = path.with_name(f"{NAME}.{self._token}")
            write_facts(new, token=self._token)
            new.replace(path)


def killed(directory: str | Path) -> str:
    """Return how it is known that the run that holds a directory's lock was killed, or nothing.

    A run releases its lock at its end, whatever ends it but a kill.
    """
    try:
        path = Path(directory) / NAME
        fate = OwnerProcess.of(read_facts(path)).fate(seconds_since_touch(path))
    except (OSError, ValueError):  # no lock, or none that names a process
        return ""
    return fate.why if fate.state == "ended" else ""


@contextmanager
def _taking(path: Path, option: str) -> Iterator[None]:
    """Exclude other processes from taking over a lock.

    The lock itself exists throughout, so that no process can create a new one.
    """
    guard = path.with_name(_TAKING)
    try:
        os.close(os.open(guard, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
    except FileExistsError:
        raise UserError(
            f"{option}: another run is beginning there; if none is, remove {guard}"
        ) from None
    try:
        yield
    finally:
        with suppress(OSError):
            guard.unlink()


def _refuse_living(path: Path, option: str) -> None:
    """Reject a lock whose holder runs, or may run.

    Raises
    ------
    UserError
        Names the holder and the remedy.
    """
    try:
        holder = OwnerProcess.of(read_facts(path))
    except FileNotFoundError:
        raise
    except (ValueError, OSError) as error:
        why = error.strerror if isinstance(error, OSError) else None
        raise UserError(
            f"{option}: {path} is there and does not say which run made it; if none writes there "
            f"any more, remove it{f' ({why})' if why else ''}"
        ) from None
    fate = holder.fate(seconds_since_touch(path, clock_of(path.parent)))
    if fate.state == "runs":
        raise UserError(f"{option}: another run writes there ({holder}): {fate.why}")
    if fate.state == "unknown":
        raise UserError(
            f"{option}: another run may still write there ({holder}): {fate.why}; if it has "
            f"ended, remove {path}"
        )
