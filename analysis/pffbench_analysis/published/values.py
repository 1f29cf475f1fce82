"""Published numbers: the tables of the package, as values or as a frame."""

from __future__ import annotations

import csv
import math
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from pffbench_analysis.published.counterparts import PublishedValue, Study

if TYPE_CHECKING:
    import pandas as pd

STUDIES = {
    study.name: study
    for study in (
        Study(
            "file-format-testing",
            "Ambatipudi and Byna: HDF5, Zarr and netCDF4 in common operations",
            "https://arxiv.org/abs/2207.09503",
        ),
        Study(
            "hdf5-compression-tuning",
            "The HDF Group: reading compressed HDF5 datasets",
            "https://www.hdfgroup.org/2017/05/"
            "hdf5-data-compression-demystified-2-performance-tuning/",
        ),
        Study(
            "chunking-vs-memmap",
            "Joe Kington: chunked HDF5 and memory-mapped arrays",
            "http://geology.beer/2015/02/10/hdf-for-large-arrays/",
        ),
        Study(
            "zarr-benchmarks",
            "HEFTIE: Zarr libraries and compressors",
            "https://github.com/HEFTIEProject/zarr-benchmarks",
        ),
        Study(
            "versioned-hdf5",
            "Quansight and D. E. Shaw: versioned HDF5",
            "https://labs.quansight.org/blog/2020/09/versioned-hdf5-performance",
        ),
    )
}

#: First columns of every table; the following ones are parameters of the study.
COLUMNS = (
    "study", "source", "url", "reading", "statistic", "quantity", "unit", "value", "low", "high",
    "sd", "alike", "approximate", "note",
)  # fmt: skip
_NUMBERS = ("value", "low", "high", "sd")
_READINGS = ("printed", "figure", "computed")


@cache
def published_values(study: str) -> tuple[PublishedValue, ...]:
    """Return all numbers of a study, in the order of its table.

    Parameters
    ----------
    study : str
        Its name, one of `STUDIES`.

    Raises
    ------
    KeyError
        There is no such study.
    ValueError
        Its table is broken.
    """
    name = f"{STUDIES[study].name}.csv"
    text = (files(__package__) / "data" / name).read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines(), strict=True)
    if tuple(rows.fieldnames or ())[: len(COLUMNS)] != COLUMNS:
        raise ValueError(f"{name} does not begin with the columns {', '.join(COLUMNS)}")
    return tuple(_value(row, f"{name}, line {rows.line_num}") for row in rows)


def _value(row: dict[str, str], where: str) -> PublishedValue:
    if None in row or None in row.values():
        raise ValueError(f"{where}: not as many cells as columns")
    if row["reading"] not in _READINGS:
        raise ValueError(f"{where}: reading is {row['reading']!r}, not {' or '.join(_READINGS)}")
    try:
        value, low, high, sd = (float(row[key] or "nan") for key in _NUMBERS)
        approximate = {"true": True, "false": False}[row["approximate"]]
    except (ValueError, KeyError) as error:
        raise ValueError(f"{where}: not a number or truth value: {error}") from None
    return PublishedValue(
        study=row["study"],
        source=row["source"],
        url=row["url"],
        reading=row["reading"],
        statistic=row["statistic"],
        quantity=row["quantity"],
        unit=row["unit"],
        value=value,
        low=low,
        high=high,
        sd=sd,
        alike=row["alike"],
        approximate=approximate,
        note=row["note"],
        parameters={key: cell for key, cell in row.items() if key not in COLUMNS},
    )


def published_frame(study: str) -> pd.DataFrame:
    """Return all numbers of a study as a frame, for notebooks.

    Parameters
    ----------
    study : str
        Its name, one of `STUDIES`.

    Returns
    -------
    DataFrame
        One row for each number with the columns of its table; ``value``, ``low``, ``high`` and
        ``sd`` are numbers (NaN where not given), ``approximate`` a truth value, all else text.
    """
    import pandas as pd

    rows = [vars(v) | dict(v.parameters) for v in published_values(study)]
    return pd.DataFrame(rows).drop(columns="parameters")


def given(value: PublishedValue) -> str:
    """Format a published number as given: ≈ if not exact, with its range or deviation."""
    if math.isnan(value.value):
        low, high = value.low, value.high
        text = f"< {high:g}" if math.isnan(low) else f"{low:g}–{high:g}"
    else:
        text = f"{value.value:g}"
        if not math.isnan(value.sd):
            text += f" ± {value.sd:.2g}"
    return f"≈ {text}" if value.approximate else text
