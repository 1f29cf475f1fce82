"""Python's stacks of other processes of a node: asking for them, reading and telling them."""

from __future__ import annotations

import faulthandler
import os
import re
import signal
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pffbench.parallel.leases import Lease

#: The signal that makes a rank write down its stacks, in C and without Python's lock.
ASK = signal.SIGUSR2
#: Most lines of a stack that are told.
_MOST_LINES = 60
_ADDRESS = re.compile(r"0x[0-9a-f]+ ")


def write_stacks_when_asked() -> int:
    """Prepare this process to write down its stacks; return the descriptor that they go to.

    They go to memory that has a name only in this process, so nothing is left of them.
    """
    descriptor = os.memfd_create("pffbench-stacks")
    faulthandler.register(ASK, file=descriptor, all_threads=True)
    return descriptor


def ask_no_more(descriptor: int) -> None:
    """Undo what `write_stacks_when_asked` has done."""
    faulthandler.unregister(ASK)
    os.close(descriptor)


def stack_of(lease: Lease) -> str:
    """Return the stacks that a rank has written, or why there are none."""
    try:
        text = Path(f"/proc/{lease.pid}/fd/{lease.stacks}").read_text(errors="replace")
    except OSError as error:
        text = f"(not to be read: {error.strerror})"
    lines = [_ADDRESS.sub("", line) for line in text.splitlines()] or ["(it wrote none)"]
    if len(lines) > _MOST_LINES:
        lines[_MOST_LINES:] = [f"… {len(lines) - _MOST_LINES} more lines"]
    return "\n".join([f"process in state {state_of(lease.pid)}", *lines])


def state_of(pid: int) -> str:
    """Return the state of a process as proc(5) has it, such as ``D`` in a call to a device."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(") ")[2][:1]
    except OSError:
        return "gone"


def moved_by(pid: int) -> str:
    """Return how much a process has read and written, and what it was given of memory, as text."""
    told = []
    for name, lines in (("io", slice(4)), ("stat", slice(None))):
        try:
            told.append(Path(f"/proc/{pid}/{name}").read_text(errors="replace").split("\n")[lines])
        except OSError:
            told.append([])
    counters, status = told
    faults = "".join(status).rpartition(") ")[2].split()[7:11]  # fields 10 to 13 of proc(5)
    return " ".join([*counters, *faults])


def grouped(stacks: Iterable[tuple[int, str]]) -> list[str]:
    """Return a paragraph for each different stack, with the ranks that have it."""
    ranks: dict[str, list[int]] = defaultdict(list)
    for rank, stack in stacks:
        ranks[stack].append(rank)
    return [f"{numbers(found)}: {stack}" for stack, found in ranks.items()]


def numbers(ranks: Iterable[int]) -> str:
    """Write ranks in few words: ``ranks 0-3, 8``."""
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][1] + 1:
            runs[-1][1] = rank
        else:
            runs.append([rank, rank])
    text = ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs)
    return f"rank {text}" if text.isdecimal() else f"ranks {text}"
