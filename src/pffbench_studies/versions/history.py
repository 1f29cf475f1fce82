"""The history of a table: the edits of each version, and the table after it.

No library or file is involved. Each version draws from its own generator, seeded with seed, rank
and number, so a history can be repeated at any time, to verify a store.

Five kinds were published with versioned-hdf5 (https://github.com/deshaw/versioned-hdf5, directory
`analysis`). Its text and its published runs differ: the runs switched nearly all changes off.
Numbers and probabilities are those of its program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

Shape = tuple[int, ...]
Values = npt.NDArray[Any]
#: A table: its columns by name, `key0`, `key1` (int64) and `val` (float64).
Table = Mapping[str, Values]
#: Whether changed values are assigned one by one, or as the range that holds them all.
Change = Literal["element", "batch"]

COLUMNS = ("key0", "key1", "val")
#: Keys are integers below this one.
_KEYS = 1_000_000
#: Exponent of the power law by which rows are chosen mostly near the end: density a x**(a - 1).
_RECENT = 20.0


class Edit(msgspec.Struct, frozen=True):
    """One assignment: a column is resized, then a box of it is written."""

    #: Name of the column.
    column: str
    #: Shape of the column from now on.
    shape: Shape
    #: First element of the box.
    start: Shape
    #: Data of the box; may be empty when only the shape changes.
    data: Values

    @property
    def slices(self) -> tuple[slice, ...]:
        """The box."""
        return tuple(slice(s, s + n) for s, n in zip(self.start, self.data.shape, strict=True))


class Rows(msgspec.Struct, frozen=True):
    """Changes to the rows of the table; with two axes, its columns are not counted."""

    #: Values that were changed, each counted once.
    changed: int = 0
    #: Rows.
    inserted: int = 0
    deleted: int = 0
    appended: int = 0

    @property
    def gained(self) -> int:
        """Rows by which the table grew."""
        return self.inserted - self.deleted + self.appended


class Version(msgspec.Struct, frozen=True):
    """A version: its edits and its table."""

    #: 0 is the initial table.
    number: int
    #: Edits of the version before, in order.
    edits: tuple[Edit, ...]
    #: Changes of the rows by the edits.
    rows: Rows
    #: The columns after the edits; not to be written to.
    table: Table

    @property
    def length(self) -> int:
        """Rows of the table."""
        return len(self.table["key0"])

    @property
    def edited_bytes(self) -> int:
        """Bytes of all data in the edits."""
        return sum(edit.data.nbytes for edit in self.edits)

    @property
    def nbytes(self) -> int:
        """Bytes of the table."""
        return sum(column.nbytes for column in self.table.values())


class History(msgspec.Struct, frozen=True):
    """A sequence of versions."""

    #: One of `KINDS`.
    kind: KindName
    #: Number of versions after the initial one.
    versions: int
    #: Source of the probabilities.
    probabilities: Probabilities = "as_published"
    #: Assignment of changed values; the table is the same.
    change: Change = "batch"
    #: Seed and rank of the generators.
    seed: int = 1
    rank: int = 0

    def __iter__(self) -> Iterator[Version]:
        """Yield the initial version and then all others."""
        table = self._initial()
        whole = [Edit(name, of.shape, (0,) * of.ndim, of) for name, of in table.items()]
        yield Version(0, tuple(whole), Rows(), table)
        for number in range(1, self.versions + 1):
            kind = kind_of(self.kind, self.probabilities)
            events = _Events(kind, dict(table), self._draw(number), self.change)
            events.happen(first=number == 1)
            table = events.table
            yield Version(number, tuple(events.edits), events.rows, table)

    def _draw(self, number: int) -> np.random.Generator:
        return np.random.Generator(np.random.PCG64([self.seed, self.rank, number]))

    def _initial(self) -> Table:
        """Make the initial table. The published keys are all 0: fractions, cut to integers."""
        kind, draw = KINDS[self.kind], self._draw(0)
        rows, labels = kind.start[0], kind.start[-1]
        most = 1 if self.probabilities == "as_published" else _KEYS
        key0, key1 = draw.integers(0, most, rows), draw.integers(0, most, labels)
        return {"key0": key0, "key1": key1, "val": draw.random(kind.start)}


@dataclass
class _Events:
    """Events of a table in one version; collects the edits, and makes them in the table."""

    kind: HistoryKind
    table: dict[str, Values]
    draw: np.random.Generator
    change: Change
    edits: list[Edit] = field(default_factory=list)
    rows: Rows = field(default_factory=Rows)

    def happen(self, *, first: bool) -> None:
        """Change values, then delete, insert and append rows, in the order of the study."""
        chances = self.kind.chances
        able = chances.in_first or not first
        changed = inserted = deleted = appended = 0
        if able and self.draw.random() < chances.change:
            changed = self._change_values()
        if able and self.draw.random() < chances.delete:
            deleted = self._along_axes(self.kind.deletes, self._without)
        if able and self.draw.random() < chances.insert:
            inserted = self._along_axes(self.kind.inserts, self._with_new)
        if self.kind.grows:
            appended = self._append()
        self.rows = Rows(changed, inserted, deleted, appended)

    def _change_values(self) -> int:
        """Replace random values; one that is drawn twice keeps the second."""
        old = self.table["val"]
        count = max(int(self.draw.standard_normal() + self.kind.changes), 0)
        if not (old.size and count):
            return 0
        places = tuple(self.draw.integers(0, n, count) for n in old.shape)
        given = self.draw.random(count)
        new = old.copy()
        new[places] = given
        self.table["val"] = new
        if self.change == "element":
            for values, *place in zip(given.reshape(-1, *(1,) * old.ndim), *places, strict=True):
                self.edits.append(Edit("val", old.shape, tuple(map(int, place)), values))
        else:
            first = tuple(int(of_axis.min()) for of_axis in places)
            last = tuple(int(of_axis.max()) for of_axis in places)
            box = tuple(slice(a, b + 1) for a, b in zip(first, last, strict=True))
            self.edits.append(Edit("val", old.shape, first, np.ascontiguousarray(new[box])))
        return len(np.unique(np.ravel_multi_index(places, old.shape)))

    def _recent(self, low: int, high: int, count: int) -> Values:
        """Draw indices from low to below high by the power law, mostly near the end."""
        drawn = low + (self.draw.random(count) ** (1 / _RECENT) * (high - low)).astype(np.int64)
        return np.minimum(drawn, max(high - 1, low))

    def _along_axes(
        self, amounts: tuple[int, ...], change: Callable[[str, Values, int], Values]
    ) -> int:
        """Change the columns along each axis of the keys; return the number of rows affected."""
        counts = []
        for axis, amount in enumerate(amounts):
            length = len(self.table[COLUMNS[axis]])
            count = max(int(self.draw.standard_normal() + amount), 1)
            places = np.unique(self._recent(0, length, count))
            for name, own in self._columns_along(axis) if length else ():
                self._rewrite(name, own, int(places[0]), change(name, places, own))
            counts.append(len(places) if length else 0)
        return counts[0]

    def _columns_along(self, axis: int) -> Iterator[tuple[str, int]]:
        """Yield the columns along an axis of the keys, each with the axis in the column."""
        if not self.kind.dense:
            yield from ((name, 0) for name in COLUMNS)
        else:
            yield COLUMNS[axis], 0
            yield "val", axis

    def _without(self, name: str, places: Values, axis: int) -> Values:
        return np.delete(self.table[name], places, axis)

    def _with_new(self, name: str, places: Values, axis: int) -> Values:
        old = self.table[name]
        shape = (*old.shape[:axis], len(places), *old.shape[axis + 1 :])
        return np.insert(old, places, self._fresh(name, shape), axis)

    def _append(self) -> int:
        count = int(self.kind.appended_sd * self.draw.standard_normal() + self.kind.appended)
        if count <= 0:
            return 0
        for name, own in self._columns_along(0):
            old = self.table[name]
            new = np.concatenate([old, self._fresh(name, (count, *old.shape[1:]))], axis=own)
            self._rewrite(name, own, len(old), new)
        return count

    def _fresh(self, name: str, shape: Shape) -> Values:
        if name == "val":
            return self.draw.random(shape)
        return self.draw.integers(0, _KEYS, shape)

    def _rewrite(self, name: str, axis: int, first: int, new: Values) -> None:
        """Record a column's change from an index of an axis on."""
        new = np.ascontiguousarray(new)
        start = tuple(first if a == axis else 0 for a in range(new.ndim))
        tail = new[(slice(None),) * axis + (slice(first, None),)]
        self.edits.append(Edit(name, new.shape, start, np.ascontiguousarray(tail)))
        self.table[name] = new


KindName = Literal[
    "large_fraction_changes_sparse",
    "small_fraction_changes_sparse",
    "large_fraction_constant_sparse",
    "mostly_appends_sparse",
    "mostly_appends_dense",
]
#: Probabilities: those that the study describes, or those of its published numbers.
Probabilities = Literal["as_described", "as_published"]


class Chances(msgspec.Struct, frozen=True):
    """Probability of each kind of event in a version, 0 to 1."""

    #: Probabilities that values are changed, rows deleted, rows inserted.
    change: float
    delete: float
    insert: float
    #: Whether the first version after the initial one has events.
    in_first: bool


#: The published runs requested no events. The program draws one of 100 numbers and compares it with
#: the percentage including equality, so each event has one chance in a hundred all the same.
PUBLISHED = Chances(0.01, 0.01, 0.01, in_first=True)


class HistoryKind(msgspec.Struct, frozen=True):
    """A kind of history."""

    #: Rows of the initial table; with two axes, its rows and columns.
    start: tuple[int, ...]
    #: Mean and standard deviation of the rows that each version appends; none if the draw is not
    #: positive.
    appended: int
    appended_sd: int
    #: Values that a change writes.
    changes: int
    #: Rows, and with two axes also columns, that an event inserts or deletes.
    inserts: tuple[int, ...]
    deletes: tuple[int, ...]
    #: Probabilities of the events.
    chances: Chances
    #: Whether versions append rows.
    grows: bool = True

    @property
    def dense(self) -> bool:
        """Whether values form a matrix that two key columns label, instead of a third column."""
        return len(self.start) == 2


_MOST = Chances(change=0.90, delete=0.01, insert=0.01, in_first=False)
_FEW = Chances(change=0.05, delete=0.01, insert=0.05, in_first=False)
_ONLY_CHANGES = Chances(change=1.0, delete=0.0, insert=0.0, in_first=True)

#: The kinds, with the probabilities that the study describes.
KINDS: dict[KindName, HistoryKind] = {
    "large_fraction_changes_sparse": HistoryKind((5000,), 10, 10, 1000, (10,), (10,), _MOST),
    "small_fraction_changes_sparse": HistoryKind((5000,), 10, 10, 10, (10,), (10,), _MOST),
    # Described as: 1000 values are changed in each version, no row is added or deleted.
    "large_fraction_constant_sparse": HistoryKind(
        (5000,), 0, 10, 1000, (10,), (10,), _ONLY_CHANGES, grows=False
    ),
    "mostly_appends_sparse": HistoryKind((1000,), 1000, 10, 10, (10,), (10,), _FEW),
    "mostly_appends_dense": HistoryKind((30, 30), 1, 1, 10, (1, 10), (1, 1), _FEW),
}


def kind_of(name: KindName, probabilities: Probabilities) -> HistoryKind:
    """Return a kind of history as the study describes it, or as its published runs had it.

    There the constant table grew too, although not intended to.
    """
    kind = KINDS[name]
    return kind if probabilities == "as_described" else replace(kind, chances=PUBLISHED, grows=True)
