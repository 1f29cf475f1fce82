"""Conversion of plain data to typed records; errors name the file, the key and allowed values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from pffbench.errors import UserError
from pffbench.text import similar_word
from pffbench.units import Duration, Size

S = TypeVar("S", bound=msgspec.Struct)
#: Maximum characters of user input that a message repeats.
_LONGEST = 200
_MISSING = re.compile("Object missing required field `([^`]*)`")
_WRONG_WORD = re.compile(r"Invalid enum value .*")
_WRONG_KIND = re.compile("Expected `([^`]*)`, got `[^`]*`")
#: Kinds of values in the words of an experiment.
_KINDS = {
    "array": "a list", "object": "a mapping", "int": "a whole number", "float": "a number",
    "str": "text", "bool": "true or false",
}  # fmt: skip
_UNKNOWN = re.compile("Object contains unknown field `([^`]*)`")
_PATH = re.compile(r"(?P<what>.*?)(?: - at `\$?(?P<path>[^`]*)`)?", re.DOTALL)


def to_struct(data: dict[str, Any], kind: type[S], where: str) -> S:
    """Convert plain data to a typed record.

    Parameters
    ----------
    data : dict
        Data of an experiment.
    kind : type
        The record.
    where : str
        File and key of the data, such as ``exp.yaml: cases[2]``.

    Raises
    ------
    UserError
        A key is unknown, or a value has the wrong type or is not allowed.
    """
    check_keys(data, kind.__struct_fields__, where, tag=kind.__struct_config__.tag_field)
    return converted(data, kind, where)


def converted(data: dict[str, Any], kind: type[S], where: str) -> S:
    """Convert plain data whose keys are known to exist to a typed record, as `to_struct`."""
    try:
        return msgspec.convert(data, kind, dec_hook=_decode)
    except msgspec.ValidationError as error:
        raise UserError(_explained(str(error), kind, where, data)) from None


def check_keys(
    data: dict[str, Any], allowed: Iterable[str], where: str, tag: str | None = None
) -> None:
    """Refuse unknown keys, and list the known ones.

    Raises
    ------
    UserError
        A key is unknown.
    """
    names = [*([tag] if tag else []), *allowed]
    for key in data:
        if key not in names:
            word = short(str(key))
            raise UserError(f"{join(where, word)}: unknown key ({allowed_instead(word, names)})")


def allowed_instead(word: str, names: Sequence[str]) -> str:
    """Return the names that are allowed, after the one that a word was probably meant to be."""
    near = similar_word(word, names)
    return f"{f'did you mean {near!r}? ' if near else ''}allowed: {', '.join(names)}"


def join(where: str, key: str) -> str:
    """Return the place of a key inside another place."""
    return f"{where} {key}" if where.endswith(":") else f"{where}.{key}"


def shown(value: Any) -> str:
    """Return a value in the form of a message: at most one line."""
    return short(repr(value))


def short(text: str) -> str:
    """Return a text in the form of a message: shortened to one line."""
    printable = text if text.isprintable() else " ".join(repr(text)[1:-1].split())
    return printable if len(printable) <= _LONGEST else f"{printable[:_LONGEST]}…"


def allowed_words(kind: Any) -> tuple[str, ...]:
    """Return the words that a type allows: those of the Literal types in it."""
    if get_origin(kind) is Literal:
        return tuple(str(word) for word in get_args(kind))
    return tuple(word for part in get_args(kind) for word in allowed_words(part))


def _allows_int(kind: Any) -> bool:
    """Whether a type allows integers, among other values."""
    return kind is int or any(
        _allows_int(part) for part in get_args(kind) if get_origin(kind) is not Literal
    )


def _explained(message: str, kind: type[msgspec.Struct], where: str, data: dict[str, Any]) -> str:
    match = _PATH.fullmatch(message)
    assert match is not None
    path = (match["path"] or "").lstrip(".")
    what = short(match["what"])
    if missing := _MISSING.fullmatch(what):
        place = join(where, path) if path else where
        return f"{join(place, missing[1])} is missing{_required(kind) if not path else ''}"
    hint, value, whole = _at(kind, data, path)
    words = [*allowed_words(hint), *(["whole numbers"] if _allows_int(hint) else [])]
    allowed = f" (allowed: {', '.join(words)})" if allowed_words(hint) else ""
    if _UNKNOWN.fullmatch(what) and (fields := _fields_of(hint)):
        allowed = f" (allowed: {', '.join(fields)})"
    if whole and _WRONG_WORD.fullmatch(what):
        return f"{join(where, path)}: {shown(value)} is not allowed{allowed}"
    # Our own conversions of sizes and durations have named the value.
    given = shown(value) if path else ""
    given = "" if given in what else f"; it is {given}"
    place = join(where, path) if path else where
    return f"{place}: {_describe_error(what)}{given}{allowed}"


def _at(kind: Any, data: Any, path: str) -> tuple[Any, Any, bool]:
    """Return type and value at a path, and whether it leads so far; else those on the way."""
    for step in re.findall(r"[^.\[\]]+", path):
        if isinstance(data, list) and step.isdigit():
            data = data[int(step)]
            continue
        record = _record_in(kind)
        if record is None or not isinstance(data, dict) or step not in data:
            return kind, data, False
        kind, data = get_type_hints(record, include_extras=True).get(step), data[step]
    return kind, data, bool(path)


def _describe_error(what: str) -> str:
    """Return an error of msgspec with the words of an experiment for kinds of values."""
    match = _WRONG_KIND.fullmatch(what)
    if match is None:
        return what.replace("`", "")
    kinds = (_KINDS.get(kind, kind) for kind in match[1].split(" | "))
    return f"it must be {' or '.join(kinds)}"


def _fields_of(kind: Any) -> tuple[str, ...]:
    """Return the fields of the record in a type; empty where none is."""
    record = _record_in(kind)
    return () if record is None else record.__struct_fields__


def _record_in(kind: Any) -> type[msgspec.Struct] | None:
    """Return the record in a type, or None."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return kind
    return next(filter(None, map(_record_in, get_args(kind))), None)


def _required(kind: type[msgspec.Struct]) -> str:
    names = [field.name for field in msgspec.structs.fields(kind) if field.required]
    return f" (required: {', '.join(names)})"


def _decode(kind: type, value: Any) -> Any:
    if issubclass(kind, Size | Duration):
        try:
            return kind.parse(value)
        except UserError as error:
            raise ValueError(str(error)) from None  # msgspec adds the place to a ValueError
    raise NotImplementedError(kind)
