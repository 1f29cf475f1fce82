"""A results directory, read: the repetitions that count, their totals, and the resolution.

Every reader of results begins here: the summary at the end of a run, `report`, `compare`, and
notebooks (`pffbench_analysis.Run`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Self

import msgspec

from pffbench.errors import explained
from pffbench.observe.clock import RESOLUTION
from pffbench.phases import TOTALS
from pffbench.record.repetitions import FILE, Repetition, is_torn, merged, read_repetitions
from pffbench.record.run_json import RunRecord

#: Seconds of the repetitions of a case that count, by phase or total, by round.
Seconds = Mapping[str, Mapping[int, float]]


class MeasuredRun(msgspec.Struct, frozen=True, dict=True):
    """A results directory."""

    #: Its path.
    directory: Path
    #: Content of `run.json`.
    record: RunRecord
    #: The repetitions, warm-ups included; both jobs of a run in two stages joined.
    repetitions: tuple[Repetition, ...]
    #: Lines that are left out, in words.
    gaps: tuple[str, ...] = ()

    @classmethod
    def load(cls, directory: str | Path) -> Self:
        """Read a results directory.

        Raises
        ------
        ValueError
            The directory holds no run that this version of pffbench can read.
        """
        record = RunRecord.load(directory)
        path = Path(directory) / FILE
        with explained(f"{path} cannot be read", ValueError):
            repetitions = merged(read_repetitions(directory))
            torn = is_torn(directory)
        if unknown := {one.case for one in repetitions} - record.cases.keys():
            raise ValueError(f"{path} has repetitions of {min(unknown)}, which run.json lacks")
        gaps = (f"{FILE} ends in the middle of a line, which is left out",) if torn else ()
        return cls(Path(directory), record, tuple(repetitions), gaps)

    @cached_property
    def by_case(self) -> dict[str, list[Repetition]]:
        """Repetitions by case, in the order of `run.json`, warm-ups included.

        Cases without a repetition that counts are left out.
        """
        found: dict[str, list[Repetition]] = {name: [] for name in self.record.cases}
        for one in self.repetitions:
            found[one.case].append(one)
        return {n: some for n, some in found.items() if any(not one.warmup for one in some)}

    @cached_property
    def seconds(self) -> Mapping[str, Seconds]:
        """Seconds of each case that counts, by phase or total, by round; no warm-ups.

        Times of a clock that ran backwards, which made the run INVALID, are left out.
        """
        found: dict[str, dict[str, dict[int, float]]] = {}
        for name, some in self.by_case.items():
            own = found[name] = {}
            for one in some:
                for phase, seconds in one.seconds.items():
                    if not one.warmup and 0 <= seconds < math.inf:
                        own.setdefault(phase, {})[one.round] = seconds
        return found

    def bytes_moved(self, case: str, total: str) -> int:
        """Return the bytes of array data that all ranks move in a total, or a phase, of a case."""
        phases = self.by_case[case][-1].by_phase
        parts = TOTALS.get(total, (total,))
        return max((phases[part].bytes for part in parts if part in phases), default=0)

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return self.record.ranks

    @property
    def nodes(self) -> int:
        """Number of nodes; 1 if not recorded."""
        return len(set(self.record.topology.nodes)) or 1

    @property
    def resolution(self) -> float:
        """Seconds below which the overhead of the harness matters.

        For a run in two stages the coarser clock of both jobs counts.
        """
        return resolution_of(self.record)


def resolution_of(record: RunRecord) -> float:
    """Return the resolution of the harness in seconds; see `MeasuredRun.resolution`."""
    floors = [record.floor, *([record.reading.floor] if record.reading else [])]
    own = record.clock == "own"
    return RESOLUTION * max(max(f.own if own else f.synced, f.tick) for f in floors)
