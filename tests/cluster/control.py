"""Talking to process 1 of a machine, through a socket in the cluster's directory.

The kernel tells who listens at the other end, in our own numbering, so no file with a process id
is needed, which may outlive the process and then name another.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
from collections.abc import Callable
from pathlib import Path

from cluster.settings import ClusterError

_CREDENTIALS = struct.Struct("3i")  # process, user, group
_LONGEST = 200


def connect(path: Path) -> socket.socket:
    """Connect to the machine that listens here.

    Raises
    ------
    ClusterError
        No one listens.
    """
    link = socket.socket(socket.AF_UNIX)
    link.settimeout(30)
    try:
        link.connect(str(path))
    except OSError:
        link.close()
        raise ClusterError(f"{path.stem} of {path.parents[1]} is not running") from None
    return link


def listener(path: Path) -> int:
    """Return the process that listens here, as it is numbered where this is called."""
    with connect(path) as link:
        told = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(told)[0])


def ask(path: Path, *words: str) -> None:
    """Ask a machine for something and wait until it is done.

    Raises
    ------
    ClusterError
        It cannot, for the reason that it gave.
    """
    with connect(path) as link:
        link.sendall(" ".join(words).encode())
        link.shutdown(socket.SHUT_WR)
        if refusal := link.recv(_LONGEST).decode():
            raise ClusterError(refusal)


def end(path: Path, *words: str, patience: float = 20) -> None:
    """Ask a machine to end, wait for it, and end it with force when it does not."""
    process = os.pidfd_open(listener(path))
    try:
        with contextlib.suppress(OSError):  # it may end before it has answered
            ask(path, *words)
        waiting = select.poll()
        waiting.register(process, select.POLLIN)
        if not waiting.poll(1000 * patience):
            signal.pidfd_send_signal(process, signal.SIGKILL)
            waiting.poll(1000 * patience)
    finally:
        os.close(process)


class Requests:
    """The other side: process 1 answers what it is asked."""

    def __init__(self, path: Path, answer: Callable[[list[str]], None]) -> None:
        path.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen()
        self._answer = answer

    def fileno(self) -> int:
        """Return what to wait for: it is readable when someone asks."""
        return self._socket.fileno()

    def serve(self) -> None:
        """Answer one request: nothing when it was done, else why not."""
        link, _ = self._socket.accept()
        with link, contextlib.suppress(OSError):  # an asker that went away needs no answer
            link.settimeout(5)
            words = link.recv(_LONGEST).decode().split()
            if not words:  # someone only wanted to know who we are
                return
            try:
                self._answer(words)
            except ClusterError as error:
                link.sendall(str(error).encode()[:_LONGEST])
