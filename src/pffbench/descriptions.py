"""Descriptions of a record's fields, read from the comments above them.

The comment ``#:`` above a field explains it, and nothing else does. The JSON Schema,
`pffbench keys` and the reference pages of the documentation have the text from here.
"""

from __future__ import annotations

import inspect
import re
from functools import cache
from textwrap import dedent

#: A comment in the body of a class, and the lines below it up to the next comment or empty line.
_COMMENT = re.compile(r"(?m)^((?:    #:.*\n)+)((?:    (?!#:).+\n)+)")
_FIELD = re.compile(r"(?m)^    (\w+): (?!ClassVar\b)")


def field_descriptions(kind: type) -> dict[str, str]:
    """Return descriptions of the fields of a record.

    Parameters
    ----------
    kind : type
        A record; fields that it inherits are described by the class that declares them.

    Returns
    -------
    dict of str to str
        Name and description, a paragraph with code in single backticks as in Markdown. Fields
        on successive lines below one comment share it.
    """
    described: dict[str, str] = {}
    for parent in reversed(kind.__mro__):
        described |= _declared(parent)
    return described


@cache
def _declared(kind: type) -> dict[str, str]:
    """Return descriptions of the fields that a class declares itself."""
    return {
        field: " ".join(comment.replace("#:", "").split()).replace("``", "`")
        for comment, fields in _COMMENT.findall(_source(kind))
        for field in _FIELD.findall(fields)
    }


def _source(kind: type) -> str:
    try:
        return dedent(inspect.getsource(kind))
    except (OSError, TypeError):  # a class in C
        return ""


def first_line(kind: object) -> str:
    """Return the first line of a docstring, in which a class or function says what it is."""
    return inspect.cleandoc(kind.__doc__ or "").partition("\n")[0].replace("``", "`")
