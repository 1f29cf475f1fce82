"""Asking another program something, without ever waiting long for it or failing with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Answer:
    """What a program said.

    Parameters
    ----------
    ok : bool
        Whether it ended well in time.
    text : str
        Its standard output; or ``unknown: …`` with the reason when it did not.
    """

    ok: bool
    text: str


def ask(command: Sequence[str], timeout: float) -> Answer:
    """Run a program and return what it says.

    Parameters
    ----------
    command : sequence of str
        The program and its arguments.
    timeout : float
        Seconds after which it is ended.
    """
    import subprocess  # few ranks ever ask a program

    name = Path(command[0]).name
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Answer(False, f"unknown: {name} gave no answer within {timeout:g} s")
    except OSError as error:
        return Answer(False, f"unknown: {name}: {error.strerror}")
    if done.returncode:
        return Answer(False, f"unknown: {name} failed: {done.stderr.strip()}")
    return Answer(True, done.stdout.strip())
