"""The marker by which a run knows its own scratch directory, and finds what runs left behind."""

from __future__ import annotations

import getpass
import json
import os
import shutil
import socket
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

MARKER = ".pffbench-run"
PREFIX = "pffbench-"
OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class Leftover:
    """A scratch directory that some run left behind, with what its marker says."""

    path: str
    run_id: str
    host: str
    user: str
    pid: int
    date: str


def mark(directory: Path, run_id: str) -> None:
    """Put the marker of a run into a new directory, or remove the directory again."""
    try:
        _write_marker(directory, run_id)
    except OSError:  # the device is full: leave no directory that nobody may remove
        shutil.rmtree(directory, ignore_errors=True)
        raise


def _write_marker(directory: Path, run_id: str) -> None:
    facts = {
        "run_id": run_id,
        "host": socket.gethostname(),
        "user": _user(),
        "pid": os.getpid(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    fd = os.open(directory / MARKER, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        json.dump(facts, file)
        file.flush()
        os.fsync(fd)


def read_marker(directory_fd: int) -> dict[str, object]:
    """Return what the marker says; empty when there is none, or none that can be read."""
    try:
        fd = os.open(MARKER, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory_fd)
        with os.fdopen(fd, encoding="utf-8") as file:
            facts = json.load(file)
    except (OSError, ValueError):
        return {}
    return facts if isinstance(facts, dict) else {}


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without an account, as in some containers
        return str(os.getuid())


def find_leftovers(parent: str) -> list[Leftover]:
    """List the marked directories of other or earlier runs, sorted by path.

    Symbolic links and directories that cannot be read are passed over.

    Raises
    ------
    OSError
        The parent cannot be read.
    """
    found = []
    with os.scandir(Path(parent).resolve()) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False):
                found += _leftover_at(entry.path)
    return sorted(found, key=lambda leftover: leftover.path)


def _leftover_at(path: str) -> list[Leftover]:
    try:
        fd = os.open(path, OPEN_DIRECTORY)
    except OSError:
        return []
    try:
        marker = read_marker(fd)
        return [
            Leftover(
                path,
                str(marker["run_id"]),
                str(marker["host"]),
                str(marker["user"]),
                int(str(marker["pid"])),
                str(marker["date"]),
            )
        ]
    except (KeyError, ValueError):
        return []
    finally:
        os.close(fd)
