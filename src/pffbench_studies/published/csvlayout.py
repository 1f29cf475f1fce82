"""Times of a run in the file layout of study 1, for existing programs that read it."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from statistics import mean

from pffbench.errors import UserError
from pffbench.phases import in_common
from pffbench.regular_files import make_own_directory, replacing
from pffbench.summary.summary import CaseSummary, Summary
from pffbench_analysis.derived_files import slug
from pffbench_studies.published.counterparts import cases_like
from pffbench_studies.published.matchers.file_format_testing import (
    FORMATS,
    alternative_of,
    datasets_of_a_rank,
    variant_of,
)

_DIRECTORY = "published-csv"
#: Columns of study 1 after the format, and their phases.
_COLUMNS = {
    "Dataset Creation Time": "define",
    "Dataset Write Time": "write",
    "Dataset Open Time": "open_array",
    "Dataset Read Time": "read",
}


def write_study_csv(summary: Summary, directory: str | Path) -> Iterator[Path]:
    """Write the times per dataset in the layout of study 1 (file-format-testing).

    One file for each format and configuration, ``HDF5_2048_[128].csv``: a row for each repetition
    that counts (``Trial 1``) and their mean (``Average``), milliseconds per dataset: those of the
    slowest rank over the datasets that it works on. Each way of working (layout, settings …) has
    a directory of its own in `published-csv`.

    Yields
    ------
    Path
        Each file that was written.

    Raises
    ------
    UserError
        No case of the run is of the workload `datasets`.
    """
    cases = list(cases_like(summary, workload="datasets", backend=tuple(FORMATS)))
    if not cases:
        raise UserError(
            f"{directory}: no case is of the workload datasets in HDF5, netCDF4 or Zarr, of which "
            "alone there is such a layout (study file-format-testing)"
        )
    for c in cases:
        place = Path(directory) / _DIRECTORY
        make_own_directory(place)
        place /= slug(variant_of(c))
        make_own_directory(place)
        shape = [int(n) for n in c.parameters["shape"]]
        name = f"{alternative_of(c)}_{c.sample.arrays}_{shape}.csv".replace("/", "-")
        _write(c, summary.record.ranks, place / name)
        yield place / name


def _write(c: CaseSummary, ranks: int, path: Path) -> None:
    """Write the file of a case."""
    phases = _COLUMNS.values()
    numbers = [datasets_of_a_rank(phase, c, ranks) for phase in phases]
    trials = in_common([c.phases[phase].by_block for phase in phases]).values()
    times = [[1e3 * s / n for s, n in zip(trial, numbers, strict=True)] for trial in trials]
    with replacing(path, links=False) as file:
        writer = csv.writer(file)
        writer.writerow([alternative_of(c), *_COLUMNS])
        for number, row in enumerate(times, start=1):
            writer.writerow([f"Trial {number}", *row])
        if times:
            writer.writerow(["Average", *map(mean, zip(*times, strict=True))])
