"""Measurements of a run that enter a comparison, and obstacles to one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pffbench.parallel.clock import RESOLUTION
from pffbench.phases import TOTALS
from pffbench.summary.headline import takes_part
from pffbench.summary.rank_test import FEWEST
from pffbench_analysis.compare.estimate import NOTHING, MeasuredPhase
from pffbench_analysis.runs import Run

if TYPE_CHECKING:
    import pandas as pd

#: Phases that depend on the state of the page cache.
_READING = frozenset({*TOTALS["read_total"], "read_total"})
#: Quantities that must be equal in both runs for equal work.
_SIZE = ("ranks", "nodes", "bytes", "arrays")


@dataclass(frozen=True, eq=False)
class Measured:
    """Measurements of a run.

    Parameters
    ----------
    run : Run
        The run.
    which : str
        Name of the run.
    phases : dict
        Phases by name, by case.
    unproved : frozenset of str
        Cases with a read whose page-cache state was not verified.
    resolution : float
        Seconds below which the overhead of the harness matters.
    invalid : frozenset of str
        Cases that failed or read wrong data.
    """

    run: Run
    which: str
    phases: Mapping[str, Mapping[str, MeasuredPhase]]
    unproved: frozenset[str]
    resolution: float
    invalid: frozenset[str] = frozenset()

    def phase(self, case: str, phase: str) -> MeasuredPhase:
        """Return the repetitions of a case in a phase, which may be none."""
        return self.phases.get(case, {}).get(phase, NOTHING)

    @property
    def tables(self) -> list[dict[str, dict[int, float]]]:
        """Seconds by repetition of the cases of each group, for each sum of phases."""
        found: dict[tuple[str, str], dict[str, dict[int, float]]] = defaultdict(dict)
        for case, phases in self.phases.items():
            group = str(self.run.record.cases[case].get("group", ""))
            for name in TOTALS:
                if case not in self.invalid and name in phases:
                    phase = phases[name]
                    times = dict(zip(phase.repetitions, phase.seconds.tolist(), strict=True))
                    found[group, name][case] = times
        return list(found.values())


def measured(run: Run, which: str) -> Measured:
    """Collect the measurements of a run."""
    rows = run.counted
    unproved = {
        str(case)
        for case in rows.loc[rows["cache"] == "unproved", "case"].unique()
        if run.record.cases[str(case)].get("verified", True)
    }
    # For a run in two stages the coarser clock of both jobs counts.
    floors = [run.record.floor, (run.record.reading or {}).get("floor") or {}]
    floor = max(told.get(key, 0.0) for told in floors for key in (run.record.clock, "tick"))
    invalid = {name for name, entry in run.record.cases.items() if not takes_part(entry)}
    return Measured(
        run, which, _phases(rows), frozenset(unproved), RESOLUTION * floor, frozenset(invalid)
    )


def _phases(counted: pd.DataFrame) -> dict[str, dict[str, MeasuredPhase]]:
    rows = _with_totals(counted).sort_values("repetition", kind="stable")
    found: dict[str, dict[str, MeasuredPhase]] = defaultdict(dict)
    for (case, phase), part in rows.groupby(["case", "phase"], sort=False):
        size = {key: int(part[key].iloc[0]) for key in _SIZE}
        numbers = tuple(int(n) for n in part["repetition"])
        seconds = part["seconds"].to_numpy(dtype=np.float64)
        found[str(case)][str(phase)] = MeasuredPhase(seconds, numbers, size)
    return dict(found)


def _with_totals(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the sums of phases as phases of their own."""
    import pandas as pd

    kept = rows[["case", "phase", "repetition", *_SIZE, "seconds"]]
    parts = [kept]
    for total, names in TOTALS.items():
        of = kept[kept["phase"].isin(names)].drop(columns="phase")
        by = of.groupby(["case", "repetition"], sort=False)
        sums = by[["seconds", "bytes"]].sum().join(by[["ranks", "nodes", "arrays"]].first())
        parts.append(sums.reset_index().assign(phase=total))
    return pd.concat(parts, ignore_index=True)


def unfit(side: Measured) -> Iterator[str]:
    """Yield the reasons why a run cannot be compared."""
    record = side.run.record
    if record.status != "finished":
        yield f"the {side.which} run is not finished ({record.status})"
    elif record.valid is not True and not (record.imported and not record.reasons):
        yield f"the {side.which} run is not valid: {record.objection or 'see its run.json'}"


def obstacle(phase: str, case: tuple[str, str], base: Measured, new: Measured) -> str:
    """Return why a case cannot be compared in a phase, whatever the repetitions.

    Empty if it can; `too_few` checks the number of repetitions.

    Parameters
    ----------
    phase : str
        The phase, or sum of phases.
    case : (str, str)
        Names of the case in both runs.
    base, new : Measured
        The runs.
    """
    sides = [(base, case[0]), (new, case[1])]
    if wrong := [side.which for side, name in sides if name in side.invalid]:
        return f"failed, or read wrong data, in the {' and the '.join(wrong)} run"
    one, other = (side.phase(name, phase) for side, name in sides)
    if not one.n or not other.n:
        lacking = new if one.n else base
        return f"the {lacking.which} run has no finished repetition with it"
    unequal = [k for k in _SIZE if one.size[k] != other.size[k]]
    if unequal:
        return ", ".join(f"{one.size[k]} and {other.size[k]} {k}" for k in unequal)
    doubtful = [side.which for side, name in sides if name in side.unproved]
    if phase in _READING and doubtful:
        return f"state of the page cache not proved in the {' and the '.join(doubtful)} run"
    short = [
        side.which
        for (side, _), there in zip(sides, (one, other), strict=True)
        if there.median < side.resolution or there.seconds.min() <= 0
    ]
    return f"below resolution in the {' and the '.join(short)} run" if short else ""


def too_few(base: MeasuredPhase, new: MeasuredPhase) -> str:
    """Return why a case has too few repetitions in a phase; empty if it has enough."""
    if min(base.n, new.n) >= FEWEST:
        return ""
    return f"too few repetitions: {base.n} and {new.n}, {FEWEST} of each are needed"
