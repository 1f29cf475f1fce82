"""The record of who could read whose files, in a run of several environments."""

from __future__ import annotations

from typing import Literal

import msgspec


class CrossRead(msgspec.Struct, frozen=True):
    """Whether an environment could read the files of another one, or its own.

    Parameters
    ----------
    case : str
        The case.
    backend : str
        Its backend.
    writer, reader : str
        The environments.
    result : {"VALID", "FAILED", "LEFT_OUT"}
        ``VALID``: every byte was verified. ``LEFT_OUT``: one of them has no such case.
    error : str
        Why not; else empty.
    """

    case: str
    backend: str
    writer: str
    reader: str
    result: Literal["VALID", "FAILED", "LEFT_OUT"]
    error: str = ""
