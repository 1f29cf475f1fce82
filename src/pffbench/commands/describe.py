"""Description of a record's fields in lines: name, allowed values, default."""

from __future__ import annotations

from collections.abc import Iterator
from types import NoneType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from pffbench.units import Size


def fields_of(kind: type[msgspec.Struct]) -> Iterator[str]:
    """Yield a line for each field of a record."""
    hints = get_type_hints(kind, include_extras=True)
    for field in msgspec.structs.fields(kind):
        default = "needed" if field.required else f"default {_text(field.default)}"
        yield f"{field.name:22} {_allowed(hints[field.name])} ({default})"


def _text(value: Any) -> str:
    if value is msgspec.NODEFAULT:
        return "empty"
    return "none" if value is None else str(value)


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
    if issubclass(kind, Size):
        return f"size up to {kind(kind.largest)}" if kind is not Size else "size"
    return {"Duration": "duration", "str": "text"}.get(kind.__name__, str(kind.__name__))
