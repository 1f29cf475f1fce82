"""Pairs of pffbench and IOR: the same bytes in the same pieces, in turns.

A pair is a job of pffbench and one of IOR, one behind the other, the first of the two in turn; each
gives the median of its repetitions. Both write a new file, read it back from the page cache and
remove it, in every repetition. IOR's time (``wr/rd(s)``) runs from the first rank's start to the
last one's end. Ours is the one that the tables have: that of the slowest rank where each rank has a
core, and else the time until all have ended, less what an empty phase takes.

Each rank moves 64 MiB: in one transfer, and in transfers of 1 MiB and 64 KiB. There a transfer of
HDF5 is one H5Dwrite with data spaces made before; IOR selects its hyperslab within the time.
"""

from __future__ import annotations

import os
import shutil
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jobs import run_pffbench, run_ranks, summed
from rows import Given, Mark, Ratio, Row, not_measured

BLOCK = 64 * 2**20
#: Repetitions in each job, besides one that is left out.
REPETITIONS = 5
_WARMUP = 1
_MISSING = "ior is not on PATH"
#: Seconds of each access.
_Seconds = dict[str, float]
_EXPERIMENT = """\
name: against-ior
repetitions: {repetitions}
warmup: 1
roofline: false
common:
  workload: hyperslab
  dtype: float32
  chunks: contiguous
  durability: close
cases:
"""
_PHASES: dict[str, tuple[str, ...]] = {"write": ("write",), "read": ("read",)}
#: IOR creates and opens datasets within its transfer, so ours count that too.
_WITH_DATASETS: dict[str, tuple[str, ...]] = {
    "write": ("define", "write"),
    "read": ("open_array", "read"),
}


@dataclass(frozen=True)
class Match:
    """A case of pffbench and the options of IOR that do the same."""

    #: What both do.
    name: str
    #: The case's own keys, as an experiment has them.
    case: str
    #: The options of IOR.
    options: str
    #: The least ratio of the rates, None where it is only told.
    mark: float | None

    @property
    def phases(self) -> dict[str, tuple[str, ...]]:
        """The phases that IOR's transfer consists of."""
        return _WITH_DATASETS if "HDF5" in self.options else _PHASES


_WHOLE = "shape_per_rank: [16777216]"
#: The calls of HDF5 that IOR and C make; h5py's slices have a cost of their own.
LOW_LEVEL = "hdf5: {api: low_level, collective_metadata: false}"
_HDF5 = f"backend: hdf5, {LOW_LEVEL}"
_SAME = "-a HDF5 -b 64m -t 64m --hdf5.noFill"
#: In one transfer.
WHOLE = (
    Match(
        "posix, file per process",
        f"backend: posix, files: per_rank, {_WHOLE}",
        "-a POSIX -F -b 64m -t 64m",
        0.97,
    ),
    Match(
        "mpiio, shared",
        f"backend: mpiio, files: one, arrays: shared, {_WHOLE}",
        "-a MPIIO -b 64m -t 64m",
        0.97,
    ),
    Match(
        "hdf5, shared independent",
        f"{_HDF5}, {_WHOLE}, files: one, arrays: shared, transfer: independent",
        _SAME,
        0.97,
    ),
    Match(
        "hdf5, shared collective",
        f"{_HDF5}, {_WHOLE}, files: one, arrays: shared, transfer: collective",
        f"{_SAME} -c",
        0.97,
    ),
    Match(
        "hdf5, file per process",
        f"{_HDF5}, {_WHOLE}, files: per_rank",
        f"{_SAME} -F",
        0.97,
    ),
)


def _in_steps(transfer: int, name: str) -> Iterator[Match]:
    steps = f"steps: {BLOCK // transfer}, shape_per_rank: [{transfer // 4}]"
    size, mark = f"-b 64m -t {name}", 0.90
    alone, own = f"files: per_rank, {steps}", f"files: one, arrays: per_rank, {steps}"
    theirs = f"-a HDF5 {size} --hdf5.noFill"
    yield Match(
        f"posix, file per process, {name}", f"backend: posix, {alone}", f"-a POSIX -F {size}", mark
    )
    yield Match(f"mpiio, shared, {name}", f"backend: mpiio, {own}", f"-a MPIIO {size}", mark)
    yield Match(f"hdf5, file per process, {name}", f"{_HDF5}, {alone}", f"{theirs} -F", mark)
    yield Match(f"hdf5, shared, {name}", f"{_HDF5}, {own}", theirs, mark)


#: In transfers of 1 MiB and 64 KiB.
IN_STEPS = (*_in_steps(2**20, "1m"), *_in_steps(2**16, "64k"))


def measure(given: Given) -> Sequence[Row]:
    """Return the rows."""
    return [*_compare(given, WHOLE, 1, 2, 4), *_compare(given, IN_STEPS, 1, 4)]


def experiment(matches: Sequence[Match]) -> str:
    """Return the experiment of all matches, a case each."""
    cases = "".join(f"  - {{{match.case}}}\n" for match in matches)
    return _EXPERIMENT.format(repetitions=REPETITIONS) + cases


def _compare(given: Given, matches: Sequence[Match], *usual_ranks: int) -> list[Row]:
    """Measure all matches on each number of ranks."""
    rows: list[Row] = []
    for ranks in given.ranks_or(*usual_ranks):
        if _is_there():
            rows += _rows(given, matches, ranks)
        else:
            rows += [_missing(match, access, ranks) for match in matches for access in _PHASES]
    return rows


def _rows(given: Given, matches: Sequence[Match], ranks: int) -> Iterator[Row]:
    pairs: dict[Match, list[tuple[_Seconds, _Seconds]]] = {match: [] for match in matches}
    with given.directory() as place:
        for number in range(given.pairs):
            # A machine may change its speed within seconds, so the two of a pair are neighbours.
            for match in matches:
                if number % 2:
                    our = _ours(match, ranks, place)
                    pairs[match].append((our, _iors(match, ranks, place)))
                else:
                    their = _iors(match, ranks, place)
                    pairs[match].append((_ours(match, ranks, place), their))
    for match, found in pairs.items():
        for access in _PHASES:
            yield _row(match, access, ranks, [(our[access], their[access]) for our, their in found])


def _ours(match: Match, ranks: int, place: Path) -> _Seconds:
    """Run pffbench once and return the median seconds of a match's accesses."""
    (found,) = run_pffbench(ranks, experiment([match]), place)
    return {
        access: statistics.median(summed(found, phases)) for access, phases in match.phases.items()
    }


def _iors(match: Match, ranks: int, place: Path) -> _Seconds:
    """Run IOR once and return the median seconds of a match's accesses."""
    times = _seconds(ranks, match.options.split(), place, REPETITIONS)
    return {access: statistics.median(these) for access, these in times.items()}


def _row(match: Match, access: str, ranks: int, pairs: Sequence[tuple[float, float]]) -> Row:
    return Row(
        _what(match, access, ranks),
        f"ior {match.options}",
        _mark(match),
        Ratio.of((their, our) for our, their in pairs),
        _rate(statistics.median(our for our, _ in pairs), ranks),
        _rate(statistics.median(their for _, their in pairs), ranks),
    )


def _missing(match: Match, access: str, ranks: int) -> Row:
    what = _what(match, access, ranks)
    return not_measured(what, f"ior {match.options}", _mark(match), _MISSING)


def _what(match: Match, access: str, ranks: int) -> str:
    return f"{match.name}, {access}, {ranks} rank{'s' if ranks > 1 else ''}"


def _mark(match: Match) -> Mark | None:
    return None if match.mark is None else Mark("at least", match.mark)


def _rate(seconds: float, ranks: int) -> str:
    return f"{ranks * BLOCK / 2**20 / seconds:.0f} MiB/s"


def _is_there() -> bool:
    """Whether there is an `ior`."""
    return shutil.which("ior") is not None


def _seconds(
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
        ["ior", *options, "-w", "-r", "-g", "-i", str(repetitions + _WARMUP), "-o", name],
    )
    found: dict[str, list[float]] = {"write": [], "read": []}
    for access, time in read_table(told):
        found[access].append(time)
    if any(len(times) != repetitions + _WARMUP for times in found.values()):
        raise RuntimeError(f"IOR printed another table than expected: {told[-2000:]}")
    return {access: times[_WARMUP:] for access, times in found.items()}


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
