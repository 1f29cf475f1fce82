"""Descriptions of a record's fields, read from its docstring.

The docstring is where a field is explained. The JSON Schema, `pffbench keys` and the reference
pages of the documentation take the text from here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import cleandoc

_SECTION = r"(?sm)^(?:Parameters|Attributes)\n-+\n(.*?)(?=^\S[^\n]*\n-{3,}$|\Z)"
_ENTRY = r"(?m)^(\S[^:\n]*?) : [^\n]*\n((?:[ ]+[^\n]*\n?|\n)+)"


def field_descriptions(kind: type) -> dict[str, str]:
    """Return descriptions of fields from the numpydoc section ``Parameters`` or ``Attributes``.

    Parameters
    ----------
    kind : type
        A record; fields that it inherits are described by the class that declares them.

    Returns
    -------
    dict of str to str
        Name and description, a paragraph with code in single backticks as in Markdown.
    """
    described: dict[str, str] = {}
    for parent in reversed(kind.__mro__):
        described |= dict(_described(parent.__dict__.get("__doc__") or ""))
    return described


def _described(docstring: str) -> Iterator[tuple[str, str]]:
    section = re.search(_SECTION, cleandoc(docstring))
    for names, text in re.findall(_ENTRY, section[1] if section else ""):
        for name in names.split(","):
            yield name.strip(), " ".join(text.split()).replace("``", "`")


def first_line(kind: object) -> str:
    """Return the first line of a docstring, in which a class or function says what it is."""
    return cleandoc(kind.__doc__ or "").partition("\n")[0].replace("``", "`")
