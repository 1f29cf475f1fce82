"""A run as pandas frames, for notebooks; needs pandas, which the extra ``analysis`` brings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pffbench.record.repetitions import PhaseTimes, Repetition
from pffbench.results.cells import keys_of

if TYPE_CHECKING:
    import pandas as pd

    from pffbench.results.summary import Summary

#: Columns of `samples.csv`: first those of a repetition, then those of a phase.
SAMPLES = (
    "case", "round", "warmup", "valid", "position", "phase", "seconds", "own_max", "own_median",
    "own_min", "synced_max", "bytes", "operations", "slowest_rank", "cpu_seconds",
)  # fmt: skip
_OF_PHASE = tuple(name for name in SAMPLES if name in PhaseTimes.__struct_fields__)


def samples_of(one: Repetition) -> list[list[object]]:
    """Return a row for each phase, then for each total, which has its seconds alone."""
    first = [one.case, one.round, one.warmup, one.valid, one.position]
    phases = [[*first, *(getattr(times, name) for name in _OF_PHASE)] for times in one.phases]
    nothing = [None] * (len(_OF_PHASE) - 2)
    return phases + [[*first, total, s, *nothing] for total, s in one.totals.items()]


def frame_of(summary: Summary) -> pd.DataFrame:
    """Return the rows of `samples.csv` with the parameters and options of their cases."""
    import pandas as pd

    rows = [row for one in summary.run.repetitions for row in samples_of(one)]
    frame = pd.DataFrame(rows, columns=list(SAMPLES))
    keys = {name: keys_of(entry) for name, entry in summary.record.cases.items()}
    return frame.join(pd.DataFrame.from_dict(keys, orient="index"), on="case")


def counts_of(summary: Summary) -> pd.DataFrame:
    """Return the counters: a row for each case, round, phase and counter."""
    import pandas as pd

    columns = ["case", "round", "warmup", "phase", "counter", "total", "largest"]
    rows = [
        [one.case, one.round, one.warmup, count.phase, count.name, count.total, count.largest]
        for one in summary.run.repetitions
        for count in one.counts
    ]
    return pd.DataFrame(rows, columns=columns)
