"""Text from elsewhere, made safe for where it goes: a terminal, Markdown, a file in UTF-8.

Experiments, results directories, markers and environment variables can hold anything: bytes that
are no UTF-8, sequences that steer a terminal, tags. Such characters are written as backslash
escapes, so nothing is lost and nothing acts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

#: Controls of C0 and C1 except tab and newline, marks that turn the direction of text, separators
#: of lines and paragraphs, and halves of surrogate pairs, which stand for bytes that are no UTF-8.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
#: The same in the bytes of a JSON file, where most of them stand as escapes; may find too much.
_UNSAFE_IN_JSON = re.compile(
    rb"\\u(?:00[0189]|007f|061c|20[0-2]|206|d[89a-f])|\\[bfr]|[\x7f]|\xc2[\x80-\x9f]|\xd8\x9c"
    rb"|\xe2(?:\x80[\x8e\x8f\xa8-\xae]|\x81[\xa6-\xa9])|\xed[\xa0-\xbf]",
    re.IGNORECASE,
)
#: What ends a table cell, begins emphasis or code, or makes a link or an image of brackets.
_MARKDOWN = re.compile(r"([|*`])|(?<=\])([(:])")
#: What makes a heading, a quotation or a list of a line that begins so.
_BLOCK = re.compile(r"^(\s*)([#>+-]|\d+(?=[.)]))")


def escape_controls(text: str) -> str:
    """Write characters that steer a terminal, and bytes that are no UTF-8, as backslash escapes.

    Tabs and newlines stay.
    """
    return _UNSAFE.sub(_escaped, text)


def has_controls(text: str) -> bool:
    """Whether `escape_controls` would change a text."""
    return _UNSAFE.search(text) is not None


def one_line(text: str, longest: int | None = None) -> str:
    """Return a text as one line of a terminal shows it.

    Parameters
    ----------
    text : str
        The text.
    longest : int, optional
        Characters that are shown; of a longer text the rest is cut off.
    """
    line = escape_controls(" ".join(text.split("\n")).replace("\t", " "))
    return line if longest is None or len(line) <= longest else f"{line[:longest]}…"


def escape_markdown(text: str) -> str:
    """Return a text as Markdown that shows it as it is, in one line.

    No tag, no table cell, no link, no image and no heading comes out of it.
    """
    return _BLOCK.sub(r"\1\\\2", _inline(text))


def markdown_row(cells: Iterable[str]) -> str:
    """Return a row of a Markdown table that shows these texts."""
    return f"| {' | '.join(map(_inline, cells))} |"


def _inline(text: str) -> str:
    return _MARKDOWN.sub(lambda match: f"\\{match[0]}", one_line(text).replace("<", "&lt;"))


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
    return _UNSAFE_IN_JSON.search(data) is not None


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:  # how Python keeps a byte that is no UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
