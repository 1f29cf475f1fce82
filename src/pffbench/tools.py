"""Running other programs with a time limit, without failing with them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class ToolOutput(NamedTuple):
    """Output of a program."""

    #: Whether it ended well in time.
    ok: bool
    #: Its standard output; or ``unknown: …`` with the reason of the failure.
    text: str


def run_tool(command: Sequence[str], timeout: float) -> ToolOutput:
    """Run a program and return its output.

    Parameters
    ----------
    command : sequence of str
        The program and its arguments.
    timeout : float
        Seconds after which it is ended.
    """
    import subprocess  # few ranks ever run a program

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
        return ToolOutput(False, f"unknown: {name} gave no answer within {timeout:g} s")
    except FileNotFoundError:
        return ToolOutput(False, f"unknown: {name} not found")
    except OSError as error:
        return ToolOutput(False, f"unknown: {name}: {error.strerror}")
    if done.returncode:
        return ToolOutput(False, f"unknown: {name} failed: {done.stderr.strip()}")
    return ToolOutput(True, done.stdout.strip())
