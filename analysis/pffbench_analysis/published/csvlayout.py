"""Times of a run in the file layout of study 1, for existing programs that read it."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean

from pffbench.errors import UserError
from pffbench.regular_files import make_own_directory, replacing
from pffbench.summary.summary import CaseSummary, Summary
from pffbench_analysis.derived_files import slug
from pffbench_analysis.published.matchers.file_format_testing import (
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
    entries = summary.record.cases
    cases = [
        case
        for case in summary.cases
        if case.sample.workload == "datasets" and case.sample.backend in FORMATS
    ]
    if not cases:
        raise UserError(
            f"{directory}: no case is of the workload datasets in HDF5, netCDF4 or Zarr, of which "
            "alone there is such a layout (study file-format-testing)"
        )
    for case in cases:
        entry = entries[case.sample.case]
        parameters = entry["parameters"]
        place = Path(directory) / _DIRECTORY
        make_own_directory(place)
        place /= slug(variant_of(parameters))
        make_own_directory(place)
        name = alternative_of(case)
        shape = [int(n) for n in parameters["shape"]]
        path = place / f"{name}_{case.sample.arrays}_{shape}.csv".replace("/", "-")
        numbers = [
            datasets_of_a_rank(phase, entry, case.sample.arrays, summary.record.ranks)
            for phase in _COLUMNS.values()
        ]
        _write(case, name, numbers, path)
        yield path


def _write(case: CaseSummary, name: str, datasets: Sequence[int], path: Path) -> None:
    """Write a file; `datasets` are those of a rank in each phase."""
    phases = [case.phases[phase].by_block for phase in _COLUMNS.values()]
    trials = sorted(set.intersection(*(set(by_block) for by_block in phases)))
    times = [
        [1e3 * by_block[trial] / number for by_block, number in zip(phases, datasets, strict=True)]
        for trial in trials
    ]
    with replacing(path, links=False) as file:
        writer = csv.writer(file)
        writer.writerow([name, *_COLUMNS])
        for number, row in enumerate(times, start=1):
            writer.writerow([f"Trial {number}", *row])
        if times:
            writer.writerow(["Average", *map(mean, zip(*times, strict=True))])
