"""A results directory, read: the repetitions that count, their totals, and the resolution.

Every reader of results begins here: the summary at the end of a run, `report`, `compare`, and
notebooks (`pffbench_analysis.Run`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Self

import msgspec
import numpy as np

from pffbench.errors import explained
from pffbench.parallel.clock import RESOLUTION
from pffbench.phases import totals_of
from pffbench.record.run_json import RunRecord, readable
from pffbench.record.samples import Sample, is_torn, read_samples, whole

#: Seconds of the repetitions of a case that count, by phase, totals included.
Seconds = Mapping[str, Mapping[int, float]]


class MeasuredRun(msgspec.Struct, frozen=True, dict=True):
    """A results directory.

    Parameters
    ----------
    directory : Path
        Its path.
    record : RunRecord
        Content of `run.json`.
    kept : tuple of Sample
        Rows of `samples.csv` of the completed repetitions, or completed stages of them, warm-ups
        included.
    gaps : tuple of str
        Rows and repetitions that are left out, in words.
    """

    directory: Path
    record: RunRecord
    kept: tuple[Sample, ...]
    gaps: tuple[str, ...] = ()

    @classmethod
    def load(cls, directory: str | Path) -> Self:
        """Read a results directory.

        Raises
        ------
        ValueError
            The directory holds no run that this version of pffbench can read.
        UserError
            It does, but its contents are not those that pffbench wrote.
        """
        record = RunRecord.load(directory)
        path = Path(directory) / "samples.csv"
        with explained(f"{path} cannot be read", ValueError):
            samples = read_samples(path)
        if unknown := {sample.case for sample in samples} - record.cases.keys():
            raise ValueError(f"{path} has rows of {min(unknown)}, which run.json does not know")
        with readable(directory):
            complete = whole(samples, record.last_written)
            finished = complete.finished
            kept, cut = [], set()
            for sample in samples:
                key = (sample.case, sample.repetition)
                # Of a million rows nearly all belong to completed repetitions: checked first.
                if key in finished or complete.holds(*key, sample.phase):
                    kept.append(sample)
                else:
                    cut.add(key)
            gaps = _gaps(path, len(cut - complete.written))
        return cls(Path(directory), record, tuple(kept), gaps)

    @cached_property
    def rows(self) -> dict[str, dict[str, list[Sample]]]:
        """Rows by case, in the order of `run.json`, and by phase, warm-ups included.

        Cases without a repetition that counts are left out.
        """
        by_case: dict[str, dict[str, list[Sample]]] = {name: {} for name in self.record.cases}
        counted = set()
        for sample in self.kept:
            by_case[sample.case].setdefault(sample.phase, []).append(sample)
            if not sample.warmup:
                counted.add(sample.case)
        return {name: rows for name, rows in by_case.items() if name in counted}

    @cached_property
    def seconds(self) -> Mapping[str, Seconds]:
        """Seconds of each case that counts, by phase or total, by repetition; no warm-ups."""
        found = {}
        for name, rows in self.rows.items():
            phases = {phase: _by_block(some) for phase, some in rows.items()}
            phases = {phase: by_block for phase, by_block in phases.items() if by_block}
            found[name] = phases | totals_of(phases)
        return found

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return self.record.ranks

    @property
    def nodes(self) -> int:
        """Number of nodes; 1 if not recorded."""
        return len(set(self.record.topology.get("nodes", [0])))

    @property
    def resolution(self) -> float:
        """Seconds below which the overhead of the harness matters.

        For a run in two stages the coarser clock of both jobs counts.
        """
        return resolution_of(self.record)


def resolution_of(record: RunRecord) -> float:
    """Return the resolution of the harness in seconds; see `MeasuredRun.resolution`."""
    floors = [record.floor, (record.reading or {}).get("floor") or {}]
    return RESOLUTION * max(f.get(key, 0.0) for f in floors for key in (record.clock, "tick"))


def _by_block(rows: Sequence[Sample]) -> dict[int, float]:
    """Return the seconds of the repetitions that count, as separate numbers.

    Numbers of the rows would keep the memory of a million rows, which is released with the rows.

    Times of a clock that ran backwards, which made the run INVALID, are left out. Those of rows
    that claim to be valid were rejected when the table was read.
    """
    counted = [(r.repetition, r.seconds) for r in rows if not r.warmup and 0 <= r.seconds < inf]
    numbers = np.array([number for number, _ in counted], dtype=np.int64)
    seconds = np.array([seconds for _, seconds in counted], dtype=np.float64)
    return dict(zip(numbers.tolist(), seconds.tolist(), strict=True))


def _gaps(path: Path, cut: int) -> tuple[str, ...]:
    """Describe the rows and the incomplete repetitions that are left out."""
    found = []
    if is_torn(path):
        found.append(f"{path.name} ends in the midst of a line, which is left out")
    if cut:
        are = "s were" if cut > 1 else " was"
        found.append(f"{cut} repetition{are} cut short: the rows are left out")
    return tuple(found)
