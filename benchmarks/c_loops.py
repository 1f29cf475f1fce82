"""Many transfers against the same loops in C, with memory of its own for each transfer.

`against_ior` holds two things at once: what Python adds, and that IOR moves all transfers
through one buffer, which stays in the processor's cache. This tells them apart. `transfers.c` is
compiled with `h5pcc`; it writes and reads a block of 64 MiB with memory of its own for each
transfer, as pffbench does, and then through one, as IOR does. One rank, a file of its own.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
from collections.abc import Sequence
from pathlib import Path

from against_ior import BLOCK, LOW_LEVEL, REPETITIONS, Match, experiment
from jobs import run_pffbench
from rows import Given, Mark, Ratio, Row, not_measured

_MARK = Mark("at least", 0.90)
_MISSING = "h5pcc is not on PATH"
_ACCESSES = ("write", "read")
#: Bytes of a transfer, and what it is called.
_SIZES = {2**20: "1 MiB", 2**16: "64 KiB"}
_APIS = ("posix", "hdf5")
#: Median seconds of writing and of reading.
_Seconds = tuple[float, float]


def measure(given: Given) -> Sequence[Row]:
    """Return the rows."""
    cases = [(api, size) for size in _SIZES for api in _APIS]
    if shutil.which("h5pcc") is None:
        return [not_measured(_what(*case, "write"), "C", _MARK, _MISSING) for case in cases]
    with given.directory() as place:
        program = _compiled(place)
        pairs = [_pair(program, cases, place, number % 2) for number in range(given.pairs)]
    rows = []
    for number, case in enumerate(cases):
        for access, name in enumerate(_ACCESSES):
            our, own, one = zip(*(tuple(m[number][access] for m in p) for p in pairs), strict=True)
            told = f"C with memory of its own is at {_ratio(own, one)} of C through one buffer"
            rows.append(
                Row(_what(*case, name), "C", _MARK, _ratio(our, own), _rate(our), _rate(own), told)
            )
    return rows


def _pair(
    program: Path, cases: Sequence[tuple[str, int]], place: Path, turn: int
) -> tuple[list[_Seconds], list[_Seconds], list[_Seconds]]:
    """Measure ours, and C's with memory of its own and through one buffer, in turns."""
    found = {} if turn else {"ours": _ours(cases, place)}
    for memory in ("own", "one"):
        found[memory] = [_in_c(program, api, size, memory, place) for api, size in cases]
    if turn:
        found["ours"] = _ours(cases, place)
    return found["ours"], found["own"], found["one"]


def _ours(cases: Sequence[tuple[str, int]], place: Path) -> list[_Seconds]:
    matches = [Match("", _case(api, size), "", None) for api, size in cases]
    measured = run_pffbench(1, experiment(matches), place)
    return [
        (statistics.median(times["write"]), statistics.median(times["read"])) for times in measured
    ]


def _case(api: str, size: int) -> str:
    steps = f"steps: {BLOCK // size}, shape_per_rank: [{size // 4}]"
    options = f", {LOW_LEVEL}" if api == "hdf5" else ""
    return f"backend: {api}, files: per_rank, {steps}{options}"


def _in_c(program: Path, api: str, size: int, memory: str, place: Path) -> _Seconds:
    """Run the loop in C; the first repetition warms up."""
    numbers = [str(n) for n in (BLOCK, size, REPETITIONS + 1)]
    command = [program, api, place / "in-c", *numbers, memory]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    times = [[float(cell) for cell in line.split()] for line in told.splitlines()][1:]
    write, read = (statistics.median(column) for column in zip(*times, strict=True))
    return write, read


def _compiled(place: Path) -> Path:
    program = place / "transfers"
    source = Path(__file__).with_name("transfers.c")
    command = ["h5pcc", "-O2", "-shlib", "-o", program, source]
    # The compiler leaves its object file where it is run.
    subprocess.run(command, check=True, capture_output=True, cwd=place)
    return program


def _what(api: str, size: int, access: str) -> str:
    return f"{api} in transfers of {_SIZES[size]}, {access}, 1 rank"


def _ratio(seconds: Sequence[float], beside: Sequence[float]) -> Ratio:
    """Return the ratio of the rates of the first to the second."""
    return Ratio.of(zip(beside, seconds, strict=True))


def _rate(seconds: Sequence[float]) -> str:
    return f"{BLOCK / 2**20 / statistics.median(seconds):.0f} MiB/s"
