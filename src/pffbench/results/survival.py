"""What a run of the workload `survival` answers: the steps that each way keeps, and its price.

A price is an upper bound of the time to write with a flush after each step, over the time without.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from pffbench.backends.base import opens_by_mpi_io
from pffbench.backends.registry import backend_class
from pffbench.record.run import MeasuredRun
from pffbench.record.run_json import CaseEntry
from pffbench.results.cells import Cell
from pffbench.results.load import LoadSummary, busy
from pffbench.results.losses import prices_among
from pffbench.results.names import format_name
from pffbench.results.words import listed, percent
from pffbench.text import counted
from pffbench.workloads.survival import SurvivalParameters

#: Middles of the names of the counters, as `pffbench.workloads.killed_job` makes them.
_AFTER, _WITHIN = "_after_", "_within_"
#: How files open, in the order of `pffbench.workloads.survivors.WAYS`; the last is not at all.
_OPENS = ("yes", "swmr", "h5clear", "no")
#: What must be done before a file opens, or how it opens.
EXPLAINED = {
    "swmr": "swmr: only as h5py.File(…, swmr=True)",
    "h5clear": "h5clear: only after h5clear -s",
}
_COLUMNS = ("files", "flush", "kept", "opens", "synced", "price of flush")
_FILES = {"per_rank": "per rank", "one-shared": "one", "one-per_rank": "one, own"}


class Kill(NamedTuple):
    """A job that was killed."""

    #: Number of steps that it had finished.
    finished: int
    #: Number of steps that are right, and that the file has.
    kept: int
    shown: int
    #: Index in `_OPENS`.
    opens: int


class Survivor(NamedTuple):
    """A case, and its jobs that were killed."""

    #: Its format with its options.
    label: str
    #: Its parameters.
    parameters: SurvivalParameters
    #: The jobs that were killed between two steps, and at a random moment of a step.
    kills: tuple[Kill, ...]
    within: tuple[Kill, ...]
    #: Upper bound of its time to write over the time without flushes; infinite if unknown.
    price: float

    @property
    def keeps_all(self) -> bool:
        """Whether each file opens at once and has all finished steps."""
        every = (*self.kills, *self.within)
        return all(k.kept == k.finished and not k.opens for k in every)

    @property
    def opens(self) -> list[str]:
        """How its files open."""
        return list(dict.fromkeys(_OPENS[kill.opens] for kill in self.kills))

    @property
    def whole(self) -> int:
        """How many files of those killed within a step open as the others and have all steps."""
        worst = max(kill.opens for kill in self.kills)
        return sum(k.kept == k.finished and k.opens <= worst for k in self.within)


def kills_of(run: MeasuredRun) -> dict[str, tuple[Kill, ...]]:
    """Return the killed jobs of each case that has any and that counts."""
    found = {name: _kills(run, name, _AFTER) for name in run.by_case}
    return {n: kills for n, kills in found.items() if kills and not run.record.cases[n].excluded}


def _kills(run: MeasuredRun, name: str, when: str) -> tuple[Kill, ...]:
    numbers: dict[int, dict[str, int]] = {}
    for one in run.by_case[name]:
        for count in one.counts:
            what, found, number = count.name.partition(when)
            if found:
                numbers.setdefault(int(number), {})[what] = int(count.total)
    return tuple(Kill(**numbers[number]) for number in sorted(numbers))


def survivors_of(run: MeasuredRun, cells: Sequence[Cell], load: LoadSummary) -> list[Survivor]:
    """Return the cases of a run whose jobs were killed, in its order."""
    entries = run.record.cases
    prices = {} if any(busy(load)) else prices_among(cells, _but_for_flushes)
    return [
        Survivor(
            _label(entries[name]),
            msgspec.convert(entries[name].parameters, SurvivalParameters),
            kills,
            _kills(run, name, _WITHIN),
            prices.get(name, math.inf),
        )
        for name, kills in kills_of(run).items()
    ]


def _but_for_flushes(cell: Cell) -> Hashable:
    return frozenset(item for item in cell.keys.items() if item[0] != "flush")


def _label(entry: CaseEntry) -> str:
    """Return a format with its options, each in a word."""
    usual = msgspec.to_builtins(backend_class(entry.backend).options_type(), enc_hook=int)
    options = {key: value for key, value in entry.options.items() if value != usual.get(key)}
    values = (v if isinstance(v, str) else key for key, v in options.items())
    return " ".join([format_name(entry.backend), *values])


def rows(cases: Sequence[Survivor]) -> Iterator[tuple[str, ...]]:
    """Yield the row of each case in the table."""
    for case in cases:
        within = f"{case.whole} of {len(case.within)}" if case.within else ""
        yield (*_row(case), *([within] * _drawn(cases)))


def _drawn(cases: Sequence[Survivor]) -> bool:
    """Return whether any job was killed within a step."""
    return any(case.within for case in cases)


def _row(case: Survivor) -> tuple[str, ...]:
    p = case.parameters
    flushes = p.flush == "step"
    kept = "none"
    if any(kill.kept for kill in case.kills):
        every = all(kill.kept == kill.finished for kill in case.kills)
        kept = "all" if every else ", ".join(f"{kill.kept}" for kill in case.kills)
    # The flush of a file that ranks share by MPI-IO waits for the device.
    synced = "all" if flushes and opens_by_mpi_io(backend_class(p.backend), p) else "none"
    known = flushes and not math.isinf(case.price)
    price = f"at most {percent(case.price)}" if known else ""
    return (
        case.label, _FILES[p.files_word], p.flush, kept, ", ".join(case.opens), synced, price,
    )  # fmt: skip


def columns(cases: Sequence[Survivor]) -> tuple[str, ...]:
    """Return the headings of the table, without the first one."""
    return (*_COLUMNS, *(["within"] * _drawn(cases)))


def headline(cases: Sequence[Survivor]) -> str:
    """Return how many ways keep every finished step."""
    safe = sum(case.keeps_all for case in cases)
    return (
        f"{safe} of {counted(len(cases), 'way')} keep every finished step of a killed job, in "
        "files that open at once."
    )


def notes(cases: Sequence[Survivor], load: LoadSummary) -> Iterator[str]:
    """Yield what a reader needs below the table."""
    afters = listed([f"{kill.finished}" for kill in cases[0].kills])
    yield (
        "Kept: finished steps that h5py, netCDF4 or zarr read back right, in another process. Jobs "
        f"of {cases[0].parameters.steps} steps were killed by SIGKILL when {afters} were finished "
        "and the next one had begun."
    )
    if _drawn(cases):
        yield (
            "Within: of the jobs killed at a random moment of a random step, usually inside a "
            "call of the library, those with all finished steps in files that open as the others. "
            "Each run draws other moments."
        )
    found = {way for case in cases for way in case.opens}
    if explained := [text for way, text in EXPLAINED.items() if way in found]:
        yield f"Opens: {'; '.join(explained)}."
    more = {c.parameters.backend for c in cases for kill in c.kills if kill.shown > kill.finished}
    for backend in sorted(more):
        yield (
            f"{format_name(backend)} also shows the step that had begun, without its data: a "
            "reader must know how many steps are whole."
        )
    yield (
        "A killed process is not a loss of power: the system keeps what it was given. Synced: "
        "finished steps that were on the device before the kill, by what the libraries call, not "
        "measured. Only these survive a loss of power."
    )
    yield "Price of flush: how much more time writing needs than without flushes (95 %)."
    if disturbed := next(iter(busy(load)), None):
        yield f"No prices: {disturbed}."
