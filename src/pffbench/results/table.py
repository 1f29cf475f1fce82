"""A table and every way to show it."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pffbench.text import markdown_row, one_line
from pffbench.units import significant

#: A number as text, with separators of thousands, or as a factor.
_NUMBER = re.compile(r"[\d,]+(\.\d+)?×?")
#: Spaces between two columns of text.
_GAP = "  "


class Table(NamedTuple):
    """Rows of text and numbers. The first column names the rows.

    Parameters
    ----------
    title : str
        What the rows are.
    columns : sequence of str
        Headings.
    rows : sequence of sequence
        Text, numbers, or None for an empty place.
    notes : sequence of str
        Sentences that a reader needs below it.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    notes: Sequence[str] = ()

    def lines(self, *, title: bool = True) -> Iterator[str]:
        """Yield the lines for a terminal: text to the left, numbers to the right."""
        rows = [[_text(value) for value in row] for row in self.rows]
        widths = [max(map(len, column)) for column in zip(self.columns, *rows, strict=True)]
        right = [self._is_number(place) for place in range(len(self.columns))]
        if title and self.title:
            yield self.title
        for row in (self.columns, *rows):
            cells = zip(row, widths, right, strict=True)
            yield _GAP.join(f"{c:>{w}}" if r else f"{c:<{w}}" for c, w, r in cells).rstrip()
        yield from self.notes

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


def _text(value: Any) -> str:
    if value is None:
        return ""
    return significant(value) if isinstance(value, float) else one_line(str(value))
