"""The keys of a record: name, meaning, allowed values, default."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterator
from types import NoneType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from pffbench.descriptions import field_descriptions
from pffbench.units import Size

_WIDTH = 80


class Key(msgspec.Struct, frozen=True):
    """A key of an experiment."""

    #: The key.
    name: str
    #: What it does, in a sentence or two.
    meaning: str
    #: The allowed values, in the words of an experiment file.
    allowed: str
    #: The value when it is not given; None for a key that must be given.
    default: str | None


def keys_of(kind: type[msgspec.Struct]) -> Iterator[Key]:
    """Yield the keys that a record defines, inherited ones first."""
    hints = get_type_hints(kind, include_extras=True)
    meanings = field_descriptions(kind)
    for field in msgspec.structs.fields(kind):
        default = None if field.required else _default(field)
        yield Key(field.name, meanings.get(field.name, ""), _allowed(hints[field.name]), default)


def key_lines(
    kind: type[msgspec.Struct], prefix: str = "", but: Collection[str] = ()
) -> Iterator[str]:
    """Yield lines that describe the keys of a record, in the width of a terminal.

    Parameters
    ----------
    kind : type
        The record.
    prefix : str
        Text before each name.
    but : collection of str
        Keys to leave out.
    """
    for key in keys_of(kind):
        if key.name not in but:
            default = "needed" if key.default is None else f"default {key.default}"
            yield from wrapped(f"{prefix}{key.name}: {key.allowed} ({default})", "  ", "      ")
            yield from wrapped(key.meaning, "      ", "      ")


def wrapped(text: str, first: str, others: str) -> list[str]:
    """Return text in lines of a terminal, with what stands before the first and the others."""
    return textwrap.wrap(
        text, _WIDTH, initial_indent=first, subsequent_indent=others, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.default_factory is not msgspec.NODEFAULT:
        return _text(field.default_factory())
    return _text(field.default)


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    return "empty" if value in ("", {}) else str(value)


def _allowed(kind: Any) -> str:
    """Return the values that a type allows, in the words of an experiment file."""
    if get_origin(kind) is Annotated:
        return _allowed(get_args(kind)[0])
    if get_origin(kind) is Literal:
        return " | ".join(str(word) for word in get_args(kind))
    if get_origin(kind) is tuple:
        return f"list of {_allowed(get_args(kind)[0])}"
    if get_origin(kind) is dict:
        key, value = get_args(kind)
        return f"mapping of {_allowed(key)} to {_allowed(value)}"
    if kind is NoneType:
        return ""
    if get_origin(kind) is Union or hasattr(kind, "__args__"):
        return " | ".join(part for arg in get_args(kind) if (part := _allowed(arg)))
    if issubclass(kind, msgspec.Struct):
        return f"mapping of {', '.join(kind.__struct_fields__)}"
    if issubclass(kind, Size):
        return f"size up to {kind(kind.largest)}" if kind is not Size else "size"
    names = {"Duration": "duration", "str": "text", "bool": "true | false", "Any": "anything"}
    return names.get(kind.__name__, str(kind.__name__))
