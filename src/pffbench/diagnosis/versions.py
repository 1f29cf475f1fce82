"""Comparing versions."""

from __future__ import annotations

import re

Version = tuple[int, ...]


def numbers(text: str) -> Version:
    """Return the leading numbers of a version: ``1.14.4-3`` is (1, 14, 4)."""
    match = re.match(r"\d+(?:\.\d+)*", text.strip().removeprefix("v"))
    return tuple(int(part) for part in match[0].split(".")) if match else ()
