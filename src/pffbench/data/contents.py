"""What a reader finds in a user's file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

#: Errors that the libraries raise for an invalid file.
FAILURES = (
    OSError, ValueError, LookupError, TypeError, RuntimeError, AttributeError, ArithmeticError
)  # fmt: skip

#: Most arrays of a file that are looked at, and listed together with one more.
MOST_NAMES = 10_000

Format = Literal["npy", "hdf5", "classic", "zarr"]


def _no_attribute(name: str) -> Any:
    raise KeyError(name)


class Contents(msgspec.Struct, frozen=True):
    """The arrays of a file.

    One member that cannot be read does not keep the others from being used.
    """

    #: Format of the file.
    kind: Format
    #: Objects of the file's library, by name; an array without a name has the empty one.
    arrays: dict[str, Any] = {}
    #: Why other members cannot be read, by name.
    unreadable: dict[str, str] = {}
    #: Returns an attribute of the file; raises KeyError or AttributeError without one.
    attribute: Callable[[str], Any] = _no_attribute


def reason_of(error: Exception) -> str:
    """Return the message of a library's error in one line."""
    return " ".join(str(error).split()) or type(error).__name__


def shown_name(name: bytes) -> str:
    r"""Return a name in a file as text; bytes that are not UTF-8 as escapes such as ``\xe9``."""
    return name.decode("utf-8", "backslashreplace")
