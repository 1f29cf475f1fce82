"""Running IOR, the C instrument, and reading its table."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from jobs import run_ranks

MISSING = "ior is not on PATH"
#: Warm-up accesses that are left out, as pffbench leaves its own out.
WARMUP = 1


def available() -> bool:
    """Whether there is an `ior`."""
    return shutil.which("ior") is not None


def seconds(
    ranks: int, options: Sequence[str], place: Path, repetitions: int
) -> dict[str, list[float]]:
    """Run IOR and return the seconds of each repetition's transfer, by access.

    Files are written, read and removed in every repetition, and barriers part open, transfer and
    close (``-g``). The times are those of the column ``wr/rd(s)``: from the first rank's start to
    the last rank's end. It is read from the printed table, which has microseconds; IOR's JSON has
    tenths of milliseconds.

    Parameters
    ----------
    ranks : int
        Number of ranks.
    options : sequence of str
        API, sizes and layout.
    place : Path
        Directory for the files.
    repetitions : int
        How many to return.
    """
    name = str(place / f"ior-{os.getpid()}")
    told = run_ranks(
        ranks,
        ["ior", *options, "-w", "-r", "-g", "-i", str(repetitions + WARMUP), "-o", name],
    )
    found: dict[str, list[float]] = {"write": [], "read": []}
    for access, time in read_table(told):
        found[access].append(time)
    if any(len(times) != repetitions + WARMUP for times in found.values()):
        raise RuntimeError(f"IOR printed another table than expected: {told[-2000:]}")
    return {access: times[WARMUP:] for access, times in found.items()}


def read_table(text: str) -> Iterator[tuple[str, float]]:
    """Yield access and seconds of the transfer of each line of IOR's table of results."""
    column: int | None = None
    for line in text.splitlines():
        cells = line.split()
        if cells[:1] == ["access"] and "wr/rd(s)" in cells:
            column = cells.index("wr/rd(s)")
        elif cells[:2] == ["Summary", "of"]:
            return
        elif column is not None and cells[:1] in (["write"], ["read"]):
            yield cells[0], float(cells[column])
