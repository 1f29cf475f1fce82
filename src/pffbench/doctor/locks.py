"""Locks on files of the scratch directory: seen by other nodes, by one node only, or refused.

HDF5 locks a file that one process opens, by ``flock``; MPI-IO locks parts of shared files, by
``fcntl``. A file system may refuse either, or keep it to the node.
"""

from __future__ import annotations

import fcntl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pffbench.doctor.finding import Findings, ok, warning

if TYPE_CHECKING:
    from pffbench.doctor.subject import Subject

#: What takes a lock, by its name.
KINDS: dict[str, Callable[[IO[Any], int], object]] = {"flock": fcntl.flock, "fcntl": fcntl.lockf}
_REMEDIES = {
    "flock": "export HDF5_USE_FILE_LOCKING=FALSE, also in jobs; on Lustre the mount option flock",
    "fcntl": "hints={romio_ds_write: disable} for MPI-IO, which locks to write with gaps",
}

#: Of a try: the lock was seen, it was not, or the system's reason to refuse locks.
SEEN, UNSEEN = "seen", "unseen"


@contextmanager
def held(directory: str) -> Iterator[dict[str, str]]:
    """Hold a lock of each kind on a file of its own; yield the reasons of those refused."""
    refused: dict[str, str] = {}
    with ExitStack() as files:
        for kind, lock in KINDS.items():
            file = files.enter_context(Path(directory, f"lock-{kind}").open("w+b"))
            try:
                lock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                refused[kind] = str(error.strerror or error)
        yield refused


def tried(directory: str) -> dict[str, str]:
    """Try to share the locks that another process holds, and return the result of each kind."""
    results = {}
    for kind, lock in KINDS.items():
        try:
            with Path(directory, f"lock-{kind}").open("r+b") as file:
                lock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            results[kind] = UNSEEN
        except (BlockingIOError, PermissionError):  # EAGAIN or EACCES
            results[kind] = SEEN
        except OSError as error:
            results[kind] = str(error.strerror or error)
    return results


def tried_by_another_process(directory: str) -> dict[str, str]:
    """Let a new process of this node try."""
    command = [sys.executable, "-P", "-m", __name__, directory]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return dict(line.split("\t", 1) for line in done.stdout.splitlines())


def check_locks(subject: Subject) -> Findings:
    """Which processes see a lock of each kind on a file of the scratch directory."""
    for kind in KINDS if subject.tries else ():
        name = f"locks by {kind} on a file"
        met = [(far, result[kind]) for far, result in subject.tries]
        reasons = [result for _, result in met if result not in (SEEN, UNSEEN)]
        if reason := subject.refused.get(kind) or next(iter(reasons), None):
            yield warning(f"{name}: refused ({reason})", _REMEDIES[kind])
        elif any(result == UNSEEN for far, result in met if not far):
            yield warning(f"{name}: not seen by other processes", _REMEDIES[kind])
        elif any(result == UNSEEN for _, result in met):
            yield warning(f"{name}: seen on one node only", _REMEDIES[kind])
        elif any(far for far, _ in met):
            yield ok(f"{name}: seen by other nodes")
        else:
            yield ok(f"{name}: seen by other processes of this node")


if __name__ == "__main__":  # see `tried_by_another_process`
    for result in tried(sys.argv[1]).items():
        print(*result, sep="\t")
