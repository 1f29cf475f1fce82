"""The kinds of histories: how large a table begins, and what happens to it in each version.

Five kinds were published with versioned-hdf5 (https://github.com/deshaw/versioned-hdf5, directory
`analysis`). What its text describes and what its published runs did differ: these switched nearly
all changes off. Numbers and chances are those of its program, re-stated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

KindName = Literal[
    "large_fraction_changes_sparse",
    "small_fraction_changes_sparse",
    "large_fraction_constant_sparse",
    "mostly_appends_sparse",
    "mostly_appends_dense",
]
#: Whose chances hold: those that the study describes, or those with which its numbers were made.
Probabilities = Literal["as_described", "as_published"]
#: Whether changed values are at even odds anywhere in the table or, like those deleted and
#: inserted, mostly near its end.
Placement = Literal["uniform", "recent"]


@dataclass(frozen=True)
class Chances:
    """How likely each kind of event is in a version, 0 to 1.

    Parameters
    ----------
    change, delete, insert : float
        That values are changed, rows deleted, rows inserted.
    in_first : bool
        Whether this holds for the first version after the initial one too; else it has no event.
    """

    change: float
    delete: float
    insert: float
    in_first: bool


#: The published runs asked for no events. The program draws one of 100 numbers and compares it with
#: the percentage including equality, so each event has one chance in a hundred all the same.
PUBLISHED = Chances(0.01, 0.01, 0.01, in_first=True)


@dataclass(frozen=True)
class Kind:
    """A kind of history.

    Parameters
    ----------
    start : tuple of int
        Rows of the initial table; with two axes, its rows and columns.
    appended, appended_sd : int
        Mean and standard deviation of the rows that each version appends; where the draw is not
        positive none are.
    changes : int
        Values that a change writes.
    inserts, deletes : tuple of int
        Rows, and with two axes also columns, that an event inserts or deletes.
    described : Chances
        Chances as the study describes them.
    grows_as_described : bool
        Whether the described table grows. The constant one was not meant to, and did.
    """

    start: tuple[int, ...]
    appended: int
    appended_sd: int
    changes: int
    inserts: tuple[int, ...]
    deletes: tuple[int, ...]
    described: Chances
    grows_as_described: bool = True

    @property
    def dense(self) -> bool:
        """Whether values form a matrix that two key columns label, instead of a third column."""
        return len(self.start) == 2

    def chances(self, probabilities: Probabilities) -> Chances:
        """Return the chances of events."""
        return PUBLISHED if probabilities == "as_published" else self.described

    def grows(self, probabilities: Probabilities) -> bool:
        """Whether versions append rows."""
        return probabilities == "as_published" or self.grows_as_described


_MOST = Chances(change=0.90, delete=0.01, insert=0.01, in_first=False)
_FEW = Chances(change=0.05, delete=0.01, insert=0.05, in_first=False)
_ONLY_CHANGES = Chances(change=1.0, delete=0.0, insert=0.0, in_first=True)

KINDS: dict[KindName, Kind] = {
    "large_fraction_changes_sparse": Kind((5000,), 10, 10, 1000, (10,), (10,), _MOST),
    "small_fraction_changes_sparse": Kind((5000,), 10, 10, 10, (10,), (10,), _MOST),
    # Described as: 1000 values are changed in each version, no row is added or deleted.
    "large_fraction_constant_sparse": Kind(
        (5000,), 0, 10, 1000, (10,), (10,), _ONLY_CHANGES, grows_as_described=False
    ),
    "mostly_appends_sparse": Kind((1000,), 1000, 10, 10, (10,), (10,), _FEW),
    "mostly_appends_dense": Kind((30, 30), 1, 1, 10, (1, 10), (1, 1), _FEW),
}
