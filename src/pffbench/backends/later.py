"""Arrays of a store that are put into objects of ours off the timer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

from pffbench.backends.base import Array


class Later(Mapping[str, Array]):
    """Arrays by name, made when the first of them is asked for: after the phase that opened them.

    For stores in which an array is nothing but a place in a file, so that opening thousands of
    them takes as long as it does in a program that knows the places.

    Parameters
    ----------
    make : callable
        Makes the arrays; calls no library, since nobody times it.
    """

    def __init__(self, make: Callable[[], Mapping[str, Array]]) -> None:
        self._make = make

    @cached_property
    def _made(self) -> Mapping[str, Array]:
        return self._make()

    def __getitem__(self, name: str) -> Array:
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)
