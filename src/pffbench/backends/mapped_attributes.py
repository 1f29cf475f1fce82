"""Attributes that a library has in a mapping, as h5py and zarr-python do."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from pffbench.backends.base import Array, Call


class MappedAttributes:
    """The trait `HasAttributes` of a store whose arrays have such mappings."""

    def attribute_writers(self, values: Sequence[tuple[Array, str, int]]) -> list[Call]:
        """Prepare to set attributes, each by a call of its own."""
        return [partial(_mapping(array).__setitem__, name, n) for array, name, n in values]

    def attribute_readers(self, names: Sequence[tuple[Array, str]]) -> list[Call]:
        """Prepare to read attributes, each by a call of its own."""
        return [partial(_mapping(array).__getitem__, name) for array, name in names]


def _mapping(array: Any) -> Any:
    return array.attributes
