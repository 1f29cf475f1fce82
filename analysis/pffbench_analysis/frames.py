"""Raw results as pandas frames, for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_type_hints

import numpy as np
from msgspec.structs import asdict, astuple

from pffbench.record.counters import COLUMNS as COUNT_COLUMNS
from pffbench.record.counters import read_counts
from pffbench.record.ranks_reader import NAME, names_of_cases, read_times
from pffbench.record.samples import COLUMNS, Sample

if TYPE_CHECKING:
    import pandas as pd


def frame_of(samples: Sequence[Sample]) -> pd.DataFrame:
    """Return rows of `samples.csv` as a frame; see `pffbench_analysis.Run.samples`."""
    import pandas as pd

    columns = zip(*map(astuple, samples), strict=True) if samples else ([] for _ in COLUMNS)
    frame = pd.DataFrame(dict(zip(COLUMNS, columns, strict=True)))
    frame["started"] = pd.to_datetime(frame["started"], utc=True)
    kinds = {int | None: "Int64", float | None: "float64"}
    hints = get_type_hints(Sample)
    return frame.astype({n: kinds[hints[n]] for n in COLUMNS if hints[n] in kinds})


def load_counts(run: str | Path) -> pd.DataFrame:
    """Read `counters.csv` of a results directory.

    Returns
    -------
    DataFrame
        One row for each case, repetition, phase and counter, warm-ups included, with the columns
        of the file; without rows where nothing was counted.

    Raises
    ------
    ValueError
        The file is not a table of counts.
    """
    import pandas as pd

    rows = [asdict(row) for row in read_counts(run)]
    return pd.DataFrame(rows, columns=list(COUNT_COLUMNS))


def load_ranks(run: str | Path, case: str) -> pd.DataFrame:
    """Read every rank's times of one case from `ranks.h5`.

    Parameters
    ----------
    run : str or Path
        Results directory.
    case : str
        Name of the case, as in the column ``case`` of `samples.csv`.

    Returns
    -------
    DataFrame
        One row for each repetition, phase and rank with the columns ``repetition``, ``phase``,
        ``rank``, ``host``, ``own`` and ``synced`` (seconds), ``bytes`` (that this rank moved)
        and ``peak_memory`` (bytes, over the whole repetition). Warm-ups are included: their
        numbers are below ``experiment.warmup`` of `run.json`. Of a repetition that a resumed
        run did again only the last is kept.

    Raises
    ------
    ValueError
        The file cannot be read, or there is no such case in it.
    """
    import pandas as pd

    path = Path(run) / NAME
    hosts, times = read_times(path, {case: None}, ("own", "synced", "bytes", "peak_memory"))
    found = next(times, None)
    if found is None:
        known = ", ".join(names_of_cases(path))
        raise ValueError(f"{path} has no case {case!r} (it has: {known})")
    arrays, shape = found.arrays, found.arrays["own"].shape
    index = pd.MultiIndex.from_product(
        [found.repetition, found.phases, range(shape[2])], names=["repetition", "phase", "rank"]
    )
    try:
        memory = np.broadcast_to(arrays["peak_memory"][:, np.newaxis, :], shape)
        columns = {
            "host": np.broadcast_to(np.array(hosts, dtype=object), shape),
            **{name: arrays[name] for name in ("own", "synced", "bytes")},
            "peak_memory": memory,
        }
        columns = {name: values.ravel() for name, values in columns.items()}
        return pd.DataFrame(columns, index=index).reset_index()
    except ValueError as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
