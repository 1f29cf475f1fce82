"""A table and every way to show it."""

from __future__ import annotations

import csv
import io
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pffbench.text import markdown_row, one_line
from pffbench.units import significant

#: A number as text, with separators of thousands, or as a factor.
_NUMBER = re.compile(r"[\d,]+(\.\d+)?×?")
#: Spaces between two columns of text.
_GAP = "  "


class Table(NamedTuple):
    """Rows of text and numbers. The first column names the rows."""

    #: What the rows are.
    title: str
    #: Headings.
    columns: Sequence[str]
    #: Text, numbers, or None for an empty place.
    rows: Sequence[Sequence[Any]]
    #: Sentences that a reader needs below it.
    notes: Sequence[str] = ()

    def lines(self, width: int | None = None) -> Iterator[str]:
        """Yield the lines for a terminal: text to the left, numbers to the right.

        Parameters
        ----------
        width : int, optional
            Most characters of a line. In a table that is wider names stand above their rows, and
            the columns that do not fit follow below all rows.
        """
        if self.title:
            yield from [self.title] if width is None else textwrap.wrap(self.title, width)
        rows = [[_text(value) for value in row] for row in self.rows]
        widths = [max(map(len, column)) for column in zip(self.columns, *rows, strict=True)]
        places = range(len(self.columns))
        if width is None or _width(widths) <= width:
            for row in (self.columns, *rows):
                yield self._line(row, widths, places)
        else:
            for some in _fitting(widths, width):
                yield _GAP + self._line(self.columns, widths, some)
                for row, before in zip(rows, [None, *rows], strict=False):
                    if before is None or row[0] != before[0]:
                        yield from textwrap.wrap(row[0], width)
                    yield _GAP + self._line(row, widths, some)
        yield from self.notes

    def _line(self, row: Sequence[str], widths: Sequence[int], places: Iterable[int]) -> str:
        cells = ((row[i], widths[i], self._is_number(i)) for i in places)
        return _GAP.join(f"{c:>{w}}" if right else f"{c:<{w}}" for c, w, right in cells).rstrip()

    def markdown(self) -> Iterator[str]:
        """Yield the lines of a Markdown table, with its title in front and its notes below."""
        if self.title:
            yield from (self.title, "")
        yield markdown_row(self.columns)
        numbers = map(self._is_number, range(len(self.columns)))
        yield markdown_row("---:" if number else "---" for number in numbers)
        for row in self.rows:
            yield markdown_row(map(_text, row))
        for note in self.notes:
            yield from ("", note)

    def csv(self) -> str:
        """Return it for spreadsheets, with all digits."""
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([self.columns, *self.rows])
        return text.getvalue()

    def data(self) -> dict[str, Any]:
        """Return it as plain data, for JSON."""
        return {
            "title": self.title,
            "columns": list(self.columns),
            "rows": [list(row) for row in self.rows],
            "notes": list(self.notes),
        }

    def _is_number(self, place: int) -> bool:
        values = [row[place] for row in self.rows if row[place] not in (None, "")]
        return bool(values) and all(
            isinstance(value, int | float) or _NUMBER.fullmatch(value) for value in values
        )


def _width(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


def _fitting(widths: Sequence[int], width: int) -> Iterator[Sequence[int]]:
    """Yield the columns, without names, in parts that fit into lines after a gap."""
    some: list[int] = []
    for place in range(1, len(widths)):
        if some and len(_GAP) + _width([widths[i] for i in (*some, place)]) > width:
            yield some
            some = []
        some.append(place)
    yield some


def _text(value: Any) -> str:
    if value is None:
        return ""
    return significant(value) if isinstance(value, float) else one_line(str(value))
