"""Escaping of untrusted text for a terminal, Markdown or a file in UTF-8.

Experiments, results directories, markers and environment variables can hold anything: invalid
UTF-8, terminal control sequences, tags. Such characters are written as backslash escapes, so
nothing is lost and nothing takes effect.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

# Patterns are compiled where they are first used: all ranks import this, and most need none.
#: Controls of C0 and C1 except tab and newline, marks that change the direction of text, separators
#: of lines and paragraphs, and halves of surrogate pairs, which stand for bytes of invalid UTF-8.
_UNSAFE = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
#: The same in the bytes of a JSON file, where most of them stand as escapes; may find too much.
_UNSAFE_IN_JSON = (
    rb"\\u(?:00[0189]|007f|061c|20[0-2]|206|d[89a-f])|\\[bfr]|[\x7f]|\xc2[\x80-\x9f]|\xd8\x9c"
    rb"|\xe2(?:\x80[\x8e\x8f\xa8-\xae]|\x81[\xa6-\xa9])|\xed[\xa0-\xbf]"
)
#: Characters that end a table cell, begin emphasis or code, or make a link or an image.
_MARKDOWN = r"([|*`])|(?<=\])([(:])|(?<![^\W_])_|_(?![^\W_])"
#: Characters that begin a heading, a quotation or a list.
_BLOCK = r"^(\s*)([#>+-]|\d+(?=[.)]))"
#: Hexadecimal digits that names of cases end in: two of 100 000 cases share twelve once in 50 000
#: times (n² / 2 / 16¹²), and eight two times in three.
DIGITS = 12
#: A name of a case that is no part of a path.
_NAME_WITH_DIGEST = (
    rf"(?<![\w/.-])([\w-]+(?:\.[\w-]+)*\.(?:matched|defaults))\.[0-9a-f]{{{DIGITS}}}\b(?!/)"
)


def escape_controls(text: str) -> str:
    """Write terminal control characters and invalid UTF-8 as backslash escapes.

    Tabs and newlines stay.
    """
    return re.sub(_UNSAFE, _escaped, text)


def has_controls(text: str) -> bool:
    """Whether `escape_controls` would change a text."""
    return re.search(_UNSAFE, text) is not None


def one_line(text: str, longest: int | None = None) -> str:
    """Return a text as one line of a terminal shows it.

    Parameters
    ----------
    text : str
        The text.
    longest : int, optional
        Most characters; longer text is truncated.
    """
    line = escape_controls(" ".join(text.split("\n")).replace("\t", " "))
    return line if longest is None or len(line) <= longest else f"{line[:longest]}…"


def escape_markdown(text: str) -> str:
    """Return a text as Markdown that shows it verbatim, in one line.

    The result contains no tag, table cell, link, image or heading.
    """
    return re.sub(_BLOCK, r"\1\\\2", _inline(text))


def markdown_row(cells: Iterable[str]) -> str:
    """Return a row of a Markdown table that shows these texts."""
    return f"| {' | '.join(map(_inline, cells))} |"


def markdown_table(
    headings: Iterable[str], rows: Iterable[Iterable[str]], words: Collection[str] | None = None
) -> Iterator[str]:
    """Yield the lines of a Markdown table that shows these texts.

    Parameters
    ----------
    headings : iterable of str
        Names of the columns.
    rows : iterable of iterable of str
        Cells.
    words : collection of str, optional
        Columns of words, which stand to the left; the others hold numbers. By default all.
    """
    names = list(headings)
    yield markdown_row(names)
    yield markdown_row("---" if words is None or name in words else "---:" for name in names)
    yield from map(markdown_row, rows)


def make_table() -> Table:
    """Return a table for a terminal, with a line below its headings and no other."""
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))


def fits(table: Table, console: Console) -> bool:
    """Return whether a table is no wider than a terminal."""
    unlimited = console.options.update(width=1000)
    return console.measure(table, options=unlimited).maximum <= console.width


def _inline(text: str) -> str:
    text = re.sub(r"&(?=#?\w+;)", "&amp;", one_line(text)).replace("<", "&lt;")
    return re.sub(_MARKDOWN, lambda match: f"\\{match[0]}", text)


def without_digests(text: str) -> str:
    """Return a text for people: names of cases lose their digest, which paths keep."""
    return re.sub(_NAME_WITH_DIGEST, r"\1", text)


def plain_name(text: str) -> str:
    """Return a text as a name of an experiment, which also names a directory; may be empty."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).lstrip("._-")[:64]


def value_text(value: object) -> str:
    """Return the value of a parameter as text; of a shape such as ``621×4991×2600``."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{k}: {v}' for k, v in sorted(value.items()) if v is not None)}}}"
    return "×".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def escaped(value: Any) -> Any:
    """Return plain data with `escape_controls` applied to all text in it, keys included."""
    if isinstance(value, str):
        return escape_controls(value)
    if isinstance(value, dict):
        return {escaped(key): escaped(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [escaped(item) for item in value]
    return value


def json_needs_escaping(data: bytes) -> bool:
    """Whether text in a JSON file may need `escaped`; quick, since most files need it not."""
    return re.search(_UNSAFE_IN_JSON, data, re.IGNORECASE) is not None


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:  # Python's escape of an invalid UTF-8 byte
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


#: How alike two words must be, from 0 to 1, for one to be meant by the other.
_NEAR = 0.7


def similar_word(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that was probably meant; None without a similar one."""
    from difflib import get_close_matches  # for errors only, which ranks seldom make

    return next(iter(get_close_matches(word, list(known), n=1, cutoff=_NEAR)), None)


def perhaps_meant(word: str, known: Iterable[str]) -> str:
    """Return the question whether another word was meant; empty if none is similar."""
    near = similar_word(word, known)
    return f"; did you mean {near!r}?" if near else ""


def counted(number: int, noun: str) -> str:
    """Return a number of things in words, such as ``1 rank`` and ``2 ranks``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def abridged(texts: Collection[str], most: int, separator: str = "; ") -> str:
    """Return the first of some texts, and how many more there are.

    Parameters
    ----------
    texts : collection of str
        The texts.
    most : int
        Largest number of them that are named.
    separator : str
        What stands between two of them.
    """
    more = [f"and {len(texts) - most} more"] if len(texts) > most else []
    return separator.join([*list(texts)[:most], *more])
