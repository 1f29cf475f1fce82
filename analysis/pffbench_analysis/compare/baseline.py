"""The baseline of nightly runs: a directory of links to the first runs that did not fail."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pffbench.errors import INCONCLUSIVE, VALID, UserError, explained
from pffbench.results.summary import load
from pffbench.text import counted
from pffbench_analysis.compare.command import compare
from pffbench_analysis.compare.gate import Gate

#: Fewest runs at which a baseline is whole. If it grew for ever, it would follow a program that
#: becomes a bit slower each night.
_WHOLE = 7


def compare_with_baseline(baseline: str, runs: Sequence[str], gate: Gate, **shown: Any) -> int:
    """Judge the runs of a night by the runs of a baseline, and add them unless they fail.

    A night that is not decided is added too: a small baseline decides little.

    Parameters
    ----------
    baseline : str
        Directory of results directories, or of links to them. It is created for the first night.
    runs : sequence of str
        Results directories of the night, each a start of the program.
    gate : Gate
        What is allowed.
    **shown
        Options of `compare` for its tables.

    Returns
    -------
    int
        Exit status of the gate; 0 for the first night and for runs of the baseline.

    Raises
    ------
    UserError
        A new run is not finished and VALID, or a run of the baseline cannot be read.
    """
    for run in runs:
        record = load(run).record
        if (record.status, record.valid) != ("finished", True):
            raise UserError(
                f"{run}: only a run that is finished and VALID is compared with a baseline"
            )
    place = Path(baseline)
    kept = sorted(place.iterdir()) if place.exists() else []
    if {*map(os.path.realpath, runs)} & {*map(os.path.realpath, kept)}:
        print(f"{' '.join(runs)}: in the baseline {baseline} already")
        return VALID
    status = VALID
    if kept:
        status, _ = compare([kept, runs], gate=gate, **shown)
    else:
        print("the first night of a baseline is compared with nothing")
    if status in (VALID, INCONCLUSIVE) and len(kept) < _WHOLE:
        with explained(f"{baseline}: cannot be written to"):
            place.mkdir(parents=True, exist_ok=True)
            for run in runs:
                target = os.path.relpath(os.path.realpath(run), os.path.realpath(place))
                parts = [part for part in Path(target).parts if part != ".."]
                (place / "-".join(parts)).symlink_to(target)
        print(f"added to the baseline {baseline}: {counted(len(kept) + len(runs), 'run')}")
    return status
