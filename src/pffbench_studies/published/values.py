"""Published numbers: the tables of the package, as values or as a frame."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

import msgspec

if TYPE_CHECKING:
    import pandas as pd

K = TypeVar("K", bound=Hashable)


class Study(NamedTuple):
    """A study whose numbers are kept."""

    #: Value of the key ``study`` of an experiment; its table has the same name.
    name: str
    #: Title and address.
    title: str
    url: str


def table(name: str) -> list[dict[str, str]]:
    """Return the rows of a table of the package."""
    with (files(__package__) / "data" / f"{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file, strict=True))


STUDIES = {row["name"]: Study(**row) for row in table("studies")}


class PublishedValue(msgspec.Struct, frozen=True):
    """A row of a study's table."""

    #: Name of the study, place of the number in it, and its address.
    study: str
    source: str
    url: str
    #: Whether the number is printed there, read off a curve, or computed from raw results.
    reading: Literal["printed", "figure", "computed"]
    #: Statistic over the repetitions; empty if not stated.
    statistic: str
    #: Measured quantity; the unit of a ratio or a count is empty.
    quantity: str
    unit: str
    #: The number; NaN where only a range is given.
    value: float
    #: The range; NaN where none is given.
    low: float
    high: float
    #: Standard deviation over the repetitions; NaN if not stated.
    sd: float
    #: Words by which its authors equate it with other numbers, such as ``comparable reads``; mostly
    #: empty.
    alike: str
    #: Whether it is rounded by its authors, given as approximate, or read off a figure.
    approximate: bool
    #: Remark on the number.
    note: str
    #: Columns specific to the study: format, operation, shape, codec and so on.
    parameters: dict[str, str]

    def differs_from(self, other: PublishedValue) -> bool:
        """Whether the study distinguishes the two numbers.

        It does not where their ranges of one standard deviation meet, or where its authors call
        them alike. A missing standard deviation counts as zero.
        """
        if self.alike and self.alike == other.alike:
            return False
        reach = sum(0.0 if math.isnan(sd) else sd for sd in (self.sd, other.sd))
        return abs(self.value - other.value) > reach


#: First columns of every table; the following ones are parameters of the study.
COLUMNS = PublishedValue.__struct_fields__[:-1]
_NUMBERS = ("value", "low", "high", "sd")


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
    """
    return tuple(map(_value, table(STUDIES[study].name)))


def _value(row: Mapping[str, str]) -> PublishedValue:
    parameters = {key: cell for key, cell in row.items() if key not in COLUMNS}
    numbers = {key: row[key] or "nan" for key in _NUMBERS}
    return msgspec.convert(
        {**row, **numbers, "parameters": parameters}, PublishedValue, strict=False
    )


def indexed(
    values: Iterable[PublishedValue], key: Callable[[PublishedValue], K | None]
) -> dict[K, PublishedValue]:
    """Return numbers by a key of each; the first of a key counts, None leaves a number out."""
    found: dict[K, PublishedValue] = {}
    for value in values:
        own = key(value)
        if own is not None:
            found.setdefault(own, value)
    return found


def claims_of(study: str) -> list[str]:
    """Return statements of a study's text, with what its own numbers say of them."""
    return [row["claim"] for row in table("claims") if row["study"] == study]


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

    rows = [msgspec.structs.asdict(v) | v.parameters for v in published_values(study)]
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
