"""The baseline of nightly runs: a directory of links to the first runs that the gate let pass."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pffbench.errors import INCONCLUSIVE, VALID, UserError, explained
from pffbench_analysis.compare.command import compare
from pffbench_analysis.compare.gate import Gate
from pffbench_analysis.runs import Run

#: Runs of a baseline. If it grew for ever, it would follow a program that becomes a bit slower
#: each night.
_NIGHTS = 7


def compare_with_baseline(baseline: str, run: str, gate: Gate, **shown: Any) -> int:
    """Judge a run by the runs of a baseline, and add it to them if it passes.

    Parameters
    ----------
    baseline : str
        Directory of results directories, or of links to them. It is created for the first run.
    run : str
        Results directory of the new run.
    gate : Gate
        What is allowed.
    **shown
        Options of `compare` for its tables.

    Returns
    -------
    int
        Exit status of the gate; that of success for the first run and for a run of the baseline.

    Raises
    ------
    UserError
        The new run is not finished and VALID, or a run of the baseline cannot be read.
    """
    record = Run.load(run).record
    if (record.status, record.valid) != ("finished", True):
        raise UserError(f"{run}: only a run that is finished and VALID is compared with a baseline")
    place = Path(baseline)
    nights = sorted(place.iterdir()) if place.exists() else []
    if os.path.realpath(run) in map(os.path.realpath, nights):
        print(f"{run} is in the baseline {baseline} already")
        return VALID
    status = VALID
    if nights:
        status, _ = compare([nights, [run]], gate=gate, **shown)
    else:
        print("the first run of a baseline is compared with nothing")
    if status in (VALID, INCONCLUSIVE) and len(nights) < _NIGHTS:
        with explained(f"{baseline}: cannot be written to"):
            place.mkdir(parents=True, exist_ok=True)
            target = os.path.relpath(os.path.realpath(run), os.path.realpath(place))
            (place / Path(target).name).symlink_to(target)
        print(f"added to the baseline {baseline}: run {len(nights) + 1} of at most {_NIGHTS}")
    return status
