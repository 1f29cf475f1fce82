"""The times of a run so far, by which rank 0 decides how it continues."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from pffbench.observe.clock import Clock, Floor
from pffbench.observe.machine import MemoryRates
from pffbench.record.repetitions import Repetition
from pffbench.record.run_json import FloorEntry


def floor_entry(floors: Sequence[Floor], rates: MemoryRates | None = None) -> FloorEntry:
    """Return the floor for `run.json`: median and range of all measurements."""
    middle = Floor.median_of(floors)
    synced = [floor.synced for floor in floors]
    return FloorEntry(
        middle.own,
        middle.synced,
        middle.tick,
        (min(synced), max(synced)),
        len(floors),
        **({} if rates is None else rates.entry),
    )


class Timings:
    """Seconds of repetitions, and the overhead of the harness.

    Parameters
    ----------
    clock : {"own", "synced"}
        The clock whose times count.
    floor : Floor
        Overhead of the harness as measured before the first round.
    known : sequence of Repetition
        Repetitions of a resumed run.
    """

    def __init__(self, clock: Clock, floor: Floor, known: Sequence[Repetition] = ()) -> None:
        self.clock = clock
        self._floors = [floor]
        self._rates: MemoryRates | None = None
        self._totals: dict[str, dict[str, dict[int, float]]] = defaultdict(
            lambda: defaultdict(dict)
        )
        self._first_reads: dict[str, float] = {}
        for repetition in known:
            self.note(repetition)

    def note(self, repetition: Repetition) -> None:
        """Add the totals of a repetition."""
        if repetition.read is not None and (reading := repetition.totals.get("read_total")):
            self._first_reads.setdefault(repetition.case, reading)
        if repetition.warmup:
            return
        for total, seconds in repetition.totals.items():
            self._totals[repetition.case][total][repetition.round] = seconds

    def note_floor(self, floor: Floor, rates: MemoryRates | None = None) -> FloorEntry:
        """Add the floor after a round, and rates of memory; return the entry for `run.json`."""
        self._floors.append(floor)
        self._rates = rates or self._rates
        return floor_entry(self._floors, self._rates)

    @property
    def empty_phase(self) -> float:
        """Seconds of an empty phase, as measured last."""
        return self._floors[-1].synced

    @property
    def resolution(self) -> float:
        """Resolution of the harness in seconds, by the median of the floors so far."""
        return Floor.median_of(self._floors).resolution(self.clock)

    def seconds(self, last: int) -> dict[str, dict[str, dict[int, float]]]:
        """Return, by case and total, the seconds of the repetitions that count, up to a round."""
        return {
            case: {
                total: {number: s for number, s in by_round.items() if number <= last}
                for total, by_round in by_total.items()
            }
            for case, by_total in self._totals.items()
        }

    def read_seconds(self, case: str) -> float | None:
        """Return the read time of the first repetition, including warm-up."""
        return self._first_reads.get(case)
