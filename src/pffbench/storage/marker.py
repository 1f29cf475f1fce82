"""The marker by which a run knows its own scratch directory, and finds what runs left behind."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pffbench.storage.holder import Holder, read_facts

MARKER = ".pffbench-run"
PREFIX = "pffbench-"
#: The job scripts make a directory of this name for each job, and the runs of the job theirs in it.
JOB_PREFIX = "pffbench-job-"
OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class Leftover:
    """A scratch directory of some run, with what its marker says.

    Parameters
    ----------
    path : str
        The directory.
    run_id : str
        The run.
    holder : Holder
        The process that made it, or went on with the run there last.
    kept_for : str
        The results directory of a run whose files another job is still to read; else empty.
    """

    path: str
    run_id: str
    holder: Holder
    kept_for: str


def mark(directory: Path, run_id: str, kept_for: str = "") -> None:
    """Put the marker of a run into a new directory, or remove the directory again."""
    try:
        _write_marker(directory / MARKER, run_id, kept_for)
    except OSError:  # the device is full: leave no directory that nobody may remove
        shutil.rmtree(directory, ignore_errors=True)
        raise


def mark_again(directory: Path, run_id: str, kept_for: str = "") -> None:
    """Put this process's name into the marker of a run that goes on: it holds the directory now."""
    new = directory / f"{MARKER}.new"
    new.unlink(missing_ok=True)
    _write_marker(new, run_id, kept_for)
    new.replace(directory / MARKER)


def _write_marker(path: Path, run_id: str, kept_for: str) -> None:
    facts = {"run_id": run_id, **Holder.me().facts(), "kept_for": kept_for}
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        json.dump(facts, file)
        file.flush()
        os.fsync(fd)


def read_marker(directory_fd: int) -> dict[str, object]:
    """Return what the marker says; empty when there is none, or none that can be read."""
    try:
        return read_facts(MARKER, dir_fd=directory_fd)
    except OSError:
        return {}


def find_leftovers(parent: str) -> list[Leftover]:
    """List the marked directories of runs, also in directories of jobs, sorted by path.

    Symbolic links and directories that cannot be read are passed over.

    Raises
    ------
    OSError
        The parent cannot be read.
    """
    found = []
    for path in _candidates(os.path.realpath(parent)):
        here = leftover_at(path)
        if not here and Path(path).name.startswith(JOB_PREFIX):
            try:
                inside = list(_candidates(path))
            except OSError:  # of another user
                continue
            here = [leftover for below in inside for leftover in leftover_at(below)]
        found += here
    return sorted(found, key=lambda leftover: leftover.path)


def _candidates(parent: str) -> Iterator[str]:
    with os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False):
                yield entry.path


def leftover_at(path: str) -> list[Leftover]:
    """Return what the marker of a directory says; nothing without a marker."""
    try:
        fd = os.open(path, OPEN_DIRECTORY)
    except OSError:
        return []
    try:
        marker = read_marker(fd)
        run_id, kept_for = str(marker["run_id"]), str(marker.get("kept_for", ""))
        return [Leftover(path, run_id, Holder.of(marker), kept_for)]
    except (KeyError, ValueError):
        return []
    finally:
        os.close(fd)
