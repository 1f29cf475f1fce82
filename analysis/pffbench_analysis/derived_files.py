"""Files derived from results, which can be made again: CSV tables, names and errors."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pffbench.errors import UserError
from pffbench.regular_files import replacing
from pffbench.units import Estimate

_LONGEST_NAME = 60


@contextmanager
def writing(directory: str | Path) -> Iterator[None]:
    """Report what cannot be written below a directory in one sentence.

    Raises
    ------
    UserError
        In place of an OSError.
    """
    try:
        yield
    except OSError as error:
        where = error.filename or directory
        raise UserError(f"{where} cannot be written: {error.strerror}") from None


def write_csv(
    path: Path, rows: Iterable[Mapping[str, object]], columns: Iterable[str] | None = None
) -> None:
    """Write a table: truth values in small letters, nothing where a number is missing.

    Parameters
    ----------
    path : Path
        The file.
    rows : iterable of mapping
        Values by column.
    columns : iterable of str, optional
        Names of the columns; by default those of the rows.
    """
    table = list(rows)
    names = list(columns or dict.fromkeys(name for row in table for name in row))
    with replacing(path) as file:
        writer = csv.DictWriter(file, names, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _cell(value) for name, value in row.items()} for row in table)


def known(value: float | None) -> float | None:
    """Return a number, or None where there is none: NaN or infinite."""
    return None if value is None or not math.isfinite(value) else value


def bounded(names: str, found: Estimate | None, factor: float = 1.0) -> dict[str, float | None]:
    """Return an estimate, times a factor, as cells of a row; None where there is no number.

    Parameters
    ----------
    names : str
        Columns of the value and, if there are three, of the bounds.
    found : Estimate, optional
        The estimate.
    factor : float
        Changes its unit.
    """
    cells = (None, None, None) if found is None else found.scaled(factor)
    return {name: known(cell) for name, cell in zip(names.split(), cells, strict=False)}


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if isinstance(value, float) and math.isnan(value) else value


def slug(text: str) -> str:
    """Return text as part of a file name."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text.replace("×", "x"))[:_LONGEST_NAME].strip("-.")
