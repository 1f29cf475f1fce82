"""Raw results as pandas frames, for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np
from msgspec.structs import asdict, astuple

from pffbench.record.counters import COLUMNS as COUNT_COLUMNS
from pffbench.record.counters import read_counts
from pffbench.record.ranks_reader import NAME, CaseTimes, names_of_cases, read_times
from pffbench.record.run_json import RunRecord
from pffbench.record.samples import COLUMNS, Sample, read_samples

if TYPE_CHECKING:
    import pandas as pd


def load_samples(run: str | Path) -> pd.DataFrame:
    """Read `samples.csv` of a results directory.

    Parameters
    ----------
    run : str or Path
        Results directory.

    Returns
    -------
    DataFrame
        One row for each case, repetition and phase, warm-ups included (select them away with
        ``frame[~frame.warmup]``). The columns are those of `samples.csv`, times in seconds;
        ``started`` is a time stamp, ``resident``, ``disk_bytes`` and ``disk_files`` are missing
        (``NaN``, ``NA``) where they do not apply.

    Raises
    ------
    ValueError
        The directory holds no run that this version of pffbench can read.
    """
    RunRecord.load(run)
    try:
        samples = read_samples(Path(run) / "samples.csv")
    except OSError as error:
        raise ValueError(f"{error.filename} cannot be read: {error.strerror}") from None
    return frame_of(samples)


def frame_of(samples: Sequence[Sample]) -> pd.DataFrame:
    """Return rows of `samples.csv` as a frame; see `load_samples`."""
    import pandas as pd

    columns = zip(*map(astuple, samples), strict=True) if samples else ([] for _ in COLUMNS)
    frame = pd.DataFrame(dict(zip(COLUMNS, columns, strict=True)))
    frame["started"] = pd.to_datetime(frame["started"], utc=True)
    # Tables of an earlier version lack the job time, which was then the largest own time.
    frame["seconds"] = frame["seconds"].astype("float64").fillna(frame["own_max"])
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
    try:
        return pd.DataFrame(_columns(found, hosts))
    except ValueError as error:
        raise ValueError(f"{path} cannot be read: {error}") from None


def _columns(found: CaseTimes, hosts: list[str]) -> dict[str, np.ndarray[Any, Any]]:
    own, synced = found.arrays["own"], found.arrays["synced"]
    shape = own.shape

    def along(values: Any, axis: int) -> np.ndarray[Any, Any]:
        """Repeat values that belong to one axis over the others."""
        at = [1, 1, 1]
        at[axis] = -1
        return np.broadcast_to(np.asarray(values).reshape(at), shape).ravel()

    memory = found.arrays["peak_memory"][:, np.newaxis, :]
    return {
        "repetition": along(found.repetition, 0),
        "phase": along(np.array(found.phases, dtype=object), 1),
        "rank": along(np.arange(shape[2]), 2),
        "host": along(np.array(hosts, dtype=object), 2),
        "own": own.ravel(),
        "synced": synced.ravel(),
        "bytes": found.arrays["bytes"].ravel(),
        "peak_memory": np.broadcast_to(memory, shape).ravel(),
    }
