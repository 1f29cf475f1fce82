"""Axes of figures: where a number is drawn, and which numbers are written."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

#: Pixels of a character of a label in a wide font, and of a line of text.
CHARACTER, LINE = 7.2, 15
#: Pixels between two labels.
_APART = 12
#: Room at both ends, as a part of the axis.
_ROOM = 0.05
#: Ratio of the ends of a logarithmic axis below which its labels are evenly spaced numbers.
_NARROW = 4.0


class Axis(NamedTuple):
    """A quantity along an edge of a panel."""

    #: The quantity, and its unit where the numbers lack one.
    title: str
    #: Its ends.
    low: float
    high: float
    #: Formats a number.
    write: Callable[[float], str] = "{:g}".format
    #: Whether it is logarithmic.
    log: bool = True
    #: The numbers that have labels; by default round ones.
    numbers: Sequence[float] = ()

    def place(self, value: float) -> float:
        """Return where a number is, from 0 to 1; one beyond an end is at the end."""
        inside = min(max(value, self.low), self.high)
        if self.log:
            return math.log(inside / self.low) / math.log(self.high / self.low)
        return (inside - self.low) / (self.high - self.low)

    def labels(self, pixels: float, *, upwards: bool = False) -> list[tuple[float, str]]:
        """Return places and texts of labels that fit on so many pixels."""
        found: list[tuple[float, str]] = []
        for numbers in self._choices():
            texts = [(self.place(n), self.write(n)) for n in numbers if self.low <= n <= self.high]
            fitting = _apart(texts, pixels, upwards=upwards)
            if len(fitting) == len(texts) > 1:
                return fitting
            found = max(found, fitting, key=len)
        return found

    def _choices(self) -> Iterator[Sequence[float]]:
        """Yield sets of numbers, the largest first."""
        if self.numbers:
            yield self.numbers
            return
        if not self.log or self.high < _NARROW * self.low:
            yield from (_even(self.low, self.high, most) for most in (6, 4, 3, 2))
        if self.log:
            decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            for digits, step in (((1, 2, 5), 1), ((1, 3), 1), ((1,), 1), ((1,), 2), ((1,), 3)):
                yield [digit * 10.0**k for k in decades[::step] for digit in digits]


def axis_of(
    values: Iterable[float],
    title: str,
    write: Callable[[float], str] = "{:g}".format,
    *,
    log: bool = True,
    numbers: Sequence[float] = (),
) -> Axis:
    """Return an axis that holds some numbers; on a logarithmic one the positive ones.

    Parameters
    ----------
    values : iterable of float
        What is drawn.
    title, write, log, numbers
        As of `Axis`.
    """
    found = [v for v in (*values, *numbers) if math.isfinite(v) and (v > 0 or not log)] or [1.0]
    low, high = min(found), max(found)
    if log:
        more = max((high / low) ** _ROOM, 1.04)
        return Axis(title, low / more, high * more, write, log, numbers)
    more = _ROOM * (high - low) or 0.5
    return Axis(title, low - more, high + more, write, log, numbers)


def _even(low: float, high: float, most: int) -> list[float]:
    """Return at most so many round numbers, evenly spaced."""
    unit = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(unit * n for n in (1, 2, 5, 10, 20) if (high - low) / (unit * n) <= most)
    return [step * n for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _apart(
    texts: Sequence[tuple[float, str]], pixels: float, *, upwards: bool
) -> list[tuple[float, str]]:
    """Leave out labels that would touch the one before."""
    found: list[tuple[float, str]] = []
    end = -math.inf
    for place, text in texts:
        half = LINE / 2 if upwards else CHARACTER * len(text) / 2 + _APART / 2
        if place * pixels - half >= end:
            found.append((place, text))
            end = place * pixels + half
    return found
