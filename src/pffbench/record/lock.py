"""The lock of a results directory: one run writes there, and no other.

The lock is a file that is made only if it is not there (``O_EXCL``), which every file system does
for all nodes at once; locks of flock(2) and fcntl(2) do not reach beyond a node on some. So a run
that is killed leaves its lock behind. The next one takes it over when the process that the lock
names is known to have ended, and says which file to remove when that cannot be known.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pffbench.errors import UserError
from pffbench.storage.ownership import OwnerProcess, read_facts

NAME = "run.lock"
#: Held for a moment while a lock is taken over, so that of two who do so one is the first.
_TAKING = "run.lock.taking"


class RunLock:
    """The lock of this process on a results directory, which it may hold or not."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._token = os.urandom(16).hex()

    def take(self, directory: str | Path, option: str) -> None:
        """Take the lock of a directory that exists.

        Parameters
        ----------
        directory : path
            The results directory.
        option : str
            What the user named it by, for messages, such as ``--out DIR``.

        Raises
        ------
        UserError
            Another run has the lock, or may have it; or it cannot be made.
        """
        path = Path(directory) / NAME
        try:
            if not self._made(path):
                self._taken_over(path, option)
        except OSError as error:
            raise UserError(f"{option}: {path} cannot be made: {error.strerror}") from None
        self._path = path

    def release(self) -> None:
        """Remove the lock, if this process holds it."""
        if self._path is None:
            return
        with suppress(OSError):
            if read_facts(self._path).get("token") == self._token:
                self._path.unlink()
        self._path = None

    def _made(self, path: Path) -> bool:
        """Make the lock; return False when there is one."""
        try:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
        except FileExistsError:
            return False
        try:
            with os.fdopen(file, "w", encoding="utf-8") as stream:
                self._write(stream)
        except OSError:  # the device is full: leave no lock that says nothing
            path.unlink()
            raise
        return True

    def _write(self, stream: Any) -> None:
        stream.write(json.dumps({**OwnerProcess.me().facts(), "token": self._token}) + "\n")
        stream.flush()
        os.fsync(stream.fileno())

    def _taken_over(self, path: Path, option: str) -> None:
        """Put this process's lock in the place of one whose holder has ended."""
        with _taking(path, option):
            try:
                _refuse_living(path, option)
            except FileNotFoundError:  # its holder came to its end in this moment
                if self._made(path):
                    return
                raise UserError(f"{option}: another run has just begun there") from None
            new = path.with_name(f"{NAME}.{self._token}")
            with new.open("x", encoding="utf-8") as stream:
                self._write(stream)
            new.replace(path)


@contextmanager
def _taking(path: Path, option: str) -> Iterator[None]:
    """Be the only one that takes over a lock.

    While one does, the lock is there all the time, so nobody can make a new one.
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
    """Refuse a lock whose holder runs, or may run.

    Raises
    ------
    UserError
        With who holds it and what to do.
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
    fate = holder.fate()
    if fate.state == "runs":
        raise UserError(f"{option}: another run writes there ({holder}): {fate.why}")
    if fate.state == "unknown":
        raise UserError(
            f"{option}: another run may still write there ({holder}): {fate.why}; if it has "
            f"ended, remove {path}"
        )
