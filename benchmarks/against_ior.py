"""Pairs of pffbench and IOR: the same bytes in the same pieces, in turns.

A pair is a job of pffbench and one of IOR, one behind the other, the first of the two in turn; each
gives the median of its repetitions. Both write a new file, read it back from the page cache and
remove it, in every repetition. IOR's time (``wr/rd(s)``) runs from the first rank's start to the
last one's end. Ours is the one that the tables have: that of the slowest rank where each rank has a
core, and else the time until all have ended, less what an empty phase takes.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import ior
import ours
from rows import Mark, Ratio, Row, not_measured
from script import Given

BLOCK = 64 * 2**20
#: Repetitions in each job, besides one that is left out.
REPETITIONS = 5
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
    """A case of pffbench and the options of IOR that do the same.

    Parameters
    ----------
    name : str
        What both do.
    case : str
        The case's own keys, as an experiment has them.
    options : str
        The options of IOR.
    mark : float or None
        The least ratio of the rates, None where it is only told.
    """

    name: str
    case: str
    options: str
    mark: float | None

    @property
    def phases(self) -> dict[str, tuple[str, ...]]:
        """The phases that IOR's transfer consists of."""
        return _WITH_DATASETS if "HDF5" in self.options else _PHASES


def experiment(matches: Sequence[Match]) -> str:
    """Return the experiment of all matches, a case each."""
    cases = "".join(f"  - {{{match.case}}}\n" for match in matches)
    return _EXPERIMENT.format(repetitions=REPETITIONS) + cases


def compare(given: Given, matches: Sequence[Match], *usual_ranks: int) -> list[Row]:
    """Measure all matches on each number of ranks."""
    rows: list[Row] = []
    for ranks in given.ranks_or(*usual_ranks):
        if ior.available():
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
    (found,) = ours.run(ranks, experiment([match]), place)
    return {
        access: statistics.median(ours.summed(found, phases))
        for access, phases in match.phases.items()
    }


def _iors(match: Match, ranks: int, place: Path) -> _Seconds:
    """Run IOR once and return the median seconds of a match's accesses."""
    times = ior.seconds(ranks, match.options.split(), place, REPETITIONS)
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
    return not_measured(what, f"ior {match.options}", _mark(match), ior.MISSING)


def _what(match: Match, access: str, ranks: int) -> str:
    return f"{match.name}, {access}, {ranks} rank{'s' if ranks > 1 else ''}"


def _mark(match: Match) -> Mark | None:
    return None if match.mark is None else Mark("at least", match.mark)


def _rate(seconds: float, ranks: int) -> str:
    return f"{ranks * BLOCK / 2**20 / seconds:.0f} MiB/s"
