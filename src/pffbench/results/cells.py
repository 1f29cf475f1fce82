"""Cells: the times of one case in one total, with every key that describes it.

Everything that a run shows is made of cells: a comparison is between two that differ in a key, a
table has a cell in each place, and a price compares all cells of the same work.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from statistics import median
from typing import NamedTuple, TypeVar

from pffbench.case import Parameters, keys_that_are
from pffbench.phases import TOTALS
from pffbench.record.run import MeasuredRun
from pffbench.record.run_json import CaseEntry
from pffbench.results.judge import START, Seconds
from pffbench.text import value_text
from pffbench.workloads.registry import is_workload, workload

T = TypeVar("T")
#: Keys of a cell, with their values as text.
Keys = Mapping[str, str]
#: Ways to do the same work that are ways of every workload.
_WAYS = frozenset({"files", "arrays", "environment"})
#: Parameters that only say more about another one, whose value has them.
_OF_CODEC = ("level", "shuffle", "compressor")
_OF_OTHERS = frozenset({*_OF_CODEC, "arrays"})


#: Key of cells whose hints or stripes are not in force: which ones.
NOT_IN_FORCE = "not_in_force"


class Cell(NamedTuple):
    """The times of one case in one total, or in one phase."""

    #: Parameters, options, ``total``, ``run``, ``ranks`` and ``environment``, as text. ``work`` is
    #: equal for cells that move the same data, in whatever way.
    keys: Keys
    #: By round. Cells of one run share rounds; cells of two runs share none.
    seconds: Seconds
    #: Bytes of array data that all ranks move.
    nbytes: int
    #: Whether it moves raw bytes, without a format.
    raw: bool
    #: Name of the case in `run.json`.
    case: str
    #: Bytes on disk; 0 where they are not known.
    stored: int = 0
    #: Seconds of raw I/O of the same bytes, by round, for comparisons of runs; none if not used.
    control: Seconds | None = None

    @property
    def median(self) -> float:
        """Median seconds."""
        return median(self.seconds.values())

    def with_keys(self, **keys: str) -> Cell:
        """Return the cell with some keys added or changed."""
        return self._replace(keys={**self.keys, **keys})


def cells_of(run: MeasuredRun) -> list[Cell]:
    """Return the cells of a run: the totals of each case that counts."""
    return make_cells(
        run.record.cases,
        run.seconds,
        run.bytes_moved,
        restarted=bool(run.record.environments),
        ranks=str(run.ranks),
        run=str(run.directory),
    )


def make_cells(
    cases: Mapping[str, CaseEntry],
    seconds: Mapping[str, Mapping[str, Seconds]],
    nbytes: Callable[[str, str], int],
    *,
    restarted: bool = False,
    **where: str,
) -> list[Cell]:
    """Make the cells of some cases.

    Cases that failed, or read something wrong, have none.

    Parameters
    ----------
    cases : dict of str to CaseEntry
        Entries in `run.json`.
    seconds : dict of str to dict of str to Seconds
        By case and total; other phases are left out.
    nbytes : callable
        Returns the bytes that a case moves in a total.
    restarted : bool
        Whether the ranks start again in each round: each round is a start of the program.
    **where : str
        Further keys, such as the number of ranks.
    """
    found = []
    for case, by_total in seconds.items():
        entry = cases[case]
        if entry.excluded:
            continue
        keys = {**keys_of(entry), **where, "work": _work(entry)}
        if ignored := not_in_force(entry):
            keys[NOT_IN_FORCE] = ignored
        stored = entry.disk.stored if entry.disk else 0
        for total in TOTALS:
            if total in by_total:
                named = {**keys, "total": total.removesuffix("_total")}
                raw, moved = entry.raw, nbytes(case, total)
                times = of_starts(by_total[total]) if restarted else by_total[total]
                found.append(Cell(named, times, moved, raw, case, stored))
    return found


def not_in_force(entry: CaseEntry) -> str:
    """Return the hints and stripes of a case that were asked for and are not in force.

    As the file was written. Those that only the file opened for reading ignores follow.
    """
    facts = entry.transfer_facts
    reading = facts.get("not_in_force_reading")
    texts = [facts.get("not_in_force"), f"in reading: {reading}" if reading else None]
    return "; ".join(text for text in texts if text)


def of_starts(seconds: Seconds) -> Seconds:
    """Return times by round, where each round is a start of the program."""
    return {START * number: s for number, s in seconds.items()}


def cells_of_starts(runs: Iterable[MeasuredRun], first: int = 0) -> dict[tuple[str, str], Cell]:
    """Return the cells of several runs by case and total; each run is a start of the program.

    Parameters
    ----------
    runs : iterable of MeasuredRun
        The runs; one whose ranks start again in each round has several starts.
    first : int
        Number of the first start, for runs that are compared with others.
    """
    found: dict[tuple[str, str], Cell] = {}
    for run in runs:
        own = cells_of(run)
        for cell in own:
            key = cell.case, cell.keys["total"]
            before = found[key].seconds if key in found else {}
            shifted = {START * first + r: seconds for r, seconds in cell.seconds.items()}
            found[key] = cell._replace(seconds={**before, **shifted})
        first += 1 + max((r // START for cell in own for r in cell.seconds), default=0)
    return found


def starts_of(cells: Iterable[Cell]) -> int:
    """Return the number of starts of the program that some cells have."""
    return len({r // START for cell in cells for r in cell.seconds})


def keys_of(entry: CaseEntry) -> dict[str, str]:
    """Return the keys of a case, from its entry in `run.json`.

    Chunks and codec are those in the file where they were read from it. An option has the name of
    its backend in front: ``hdf5.alignment``.
    """
    p = entry.parameters
    keys = {key: value_text(v) for key, v in p.items() if v is not None and key not in _OF_OTHERS}
    if p.get("arrays") == "per_rank" and p["files"] != "per_rank":
        keys["files"] += " per_rank"
    if stored := entry.stored_as:
        keys["chunks"] = "contiguous" if stored.chunks is None else value_text(stored.chunks)
        keys["codec"] = stored.codec
    elif keys.get("codec", "auto") not in ("auto", "none"):
        more = (value_text(p[key]) for key in _OF_CODEC if p.get(key) is not None)
        keys["codec"] = " ".join([keys["codec"], *more])
    for key, value in entry.options.items():
        if value not in (None, {}):
            keys[f"{p['backend']}.{key}"] = value_text(value)
    return keys


def _work(entry: CaseEntry) -> str:
    """Return a name for what a case does, without the ways to do it."""
    p = entry.parameters
    name = p.get("workload", "")
    kind = workload(name).parameters_type if is_workload(name) else Parameters
    ways = {*keys_that_are(kind, "way"), *_WAYS}
    return json.dumps({k: v for k, v in p.items() if k not in ways}, sort_keys=True, default=str)


def grouped(items: Iterable[T], key: Callable[[T], Hashable]) -> dict[Hashable, list[T]]:
    """Return items by a key, in their order."""
    found: dict[Hashable, list[T]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


def varying(keys: Sequence[Keys], but: Collection[str] = ()) -> list[str]:
    """Return the keys in which some cells differ; an option, among the cells of its backend."""
    names = dict.fromkeys(key for one in keys for key in one if key not in but)
    return [k for k in names if len({one.get(k) for one in keys if _has_option(one, k)}) > 1]


def _has_option(keys: Keys, key: str) -> bool:
    backend, dot, _ = key.partition(".")
    return not dot or keys["backend"] == backend


def summed(cells: Sequence[Cell], weights: Mapping[str, float]) -> list[Cell]:
    """Return for each case the cell of a purpose: a weighted sum of its totals, in each round.

    Parameters
    ----------
    cells : sequence of Cell
        Cells of several totals.
    weights : dict of str to float
        Weight of each total, such as ``{"write": 1, "read": 1}``; cases that lack one of them are
        left out.
    """
    found = []
    for own in grouped(cells, lambda cell: (cell.case, cell.keys.get("run"))).values():
        parts = {cell.keys["total"]: cell for cell in own}
        if not weights.keys() <= parts.keys():
            continue
        rounds = set.intersection(*({*parts[total].seconds} for total in weights))
        seconds = {
            r: sum(weight * parts[total].seconds[r] for total, weight in weights.items())
            for r in sorted(rounds)
        }
        first = parts[next(iter(weights))]
        found.append(first.with_keys(total=" and ".join(weights))._replace(seconds=seconds))
    return found
