"""Sizes and durations with units, ``64 MiB`` or ``90 s``, and how output writes numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from pffbench.errors import UserError

if TYPE_CHECKING:
    from fractions import Fraction

_BINARY = {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50}
_DECIMAL = {"KB": 10**3, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "PB": 10**15}
_MILLISECONDS = {"": 1000, "ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000}
# Bounded, since 1e999999999 is a short text for a number that fills memory.
# A text: all ranks import this, and few need the compiled pattern.
_QUANTITY = r"\s*([0-9]{1,30}(?:\.[0-9]{1,30})?(?:[eE][0-9]{1,2})?)\s*([A-Za-z]{0,10})\s*"


class Size(int):
    """A number of bytes; in an experiment an integer or text such as ``64 MiB`` or ``1.5 GB``."""

    __slots__ = ()
    #: Largest number of bytes; a kind of size may have a smaller limit.
    largest: ClassVar[int] = 2**63 - 1

    @classmethod
    def parse(cls, value: object) -> Size:
        """Read a size.

        Parameters
        ----------
        value : object
            A non-negative integer (bytes) or text with one of the units B, KiB … PiB, kB … PB.

        Raises
        ------
        UserError
            The text is not a size, the unit is unknown, or the size is not whole bytes or above the
            limit.
        """
        # A size of another kind too, whose text is rounded; not a bool, which is an int.
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= cls.largest:
            return cls(value)
        units = _BINARY | _DECIMAL
        number, unit = _split(value, "size", units, "64 MiB")
        count = number * units[unit]
        if count.denominator != 1:
            raise UserError(f"{value!r} is not a whole number of bytes")
        if count > cls.largest:
            raise UserError(f"{value!r} is more than {cls(cls.largest)}, which is the most")
        return cls(count.numerator)

    def __str__(self) -> str:
        return self._in_units(_BINARY)

    def decimal(self) -> str:
        """Return the size in powers of 1000, in which users state theirs: ``600 GB``."""
        return self._in_units(_DECIMAL)

    def _in_units(self, units: dict[str, int]) -> str:
        for unit, size in reversed(units.items()):
            if 1 < size <= self:
                return f"{int(self) / size:.4g} {unit}"
        return f"{int(self)} B"


class SmallSize(Size):
    """A size of a part of a file: a header, or a block or stripe at whose multiples data begin."""

    __slots__ = ()
    largest = 2**30


class CacheSize(Size):
    """A size of a cache in memory."""

    __slots__ = ()
    largest = 2**40


class Duration(float):
    """A number of seconds; in an experiment a number or text such as ``90 s`` or ``2 min``."""

    __slots__ = ()

    @classmethod
    def parse(cls, value: object) -> Duration:
        """Read a duration.

        Parameters
        ----------
        value : object
            A non-negative number (seconds) or text with one of the units ms, s, min, h.

        Raises
        ------
        UserError
            The text is not a duration or the unit is unknown.
        """
        number, unit = _split(value, "duration", _MILLISECONDS, "90 s")
        return cls(float(number * _MILLISECONDS[unit] / 1000))


def duration_text(seconds: float) -> str:
    """Format a duration in seconds, minutes, hours or days, rounded."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 360_000 else f"{seconds / 86_400:.1f} days"


def significant(value: float) -> str:
    """Format a number with three digits, and no exponent if possible."""
    if not math.isfinite(value):
        return "–"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def seconds_text(seconds: float) -> str:
    """Format a measured time in seconds or milliseconds."""
    return f"{significant(seconds)} s" if seconds >= 1 else f"{significant(1e3 * seconds)} ms"


def percent(part: float) -> str:
    """Format a fraction in percent with two digits."""
    value = 100 * part
    return f"{value:.0f} %" if abs(value) >= 10 else f"{value:.2g} %"


class Estimate(NamedTuple):
    """A number with its interval; the bounds are NaN where there is none."""

    value: float
    low: float
    high: float

    def scaled(self, factor: float) -> Estimate:
        """Return the number and its bounds, multiplied."""
        return Estimate(*(factor * value for value in self))

    @property
    def has_interval(self) -> bool:
        """Whether it has bounds."""
        return not math.isnan(self.low)

    def __str__(self) -> str:
        value, low, high = map(significant, self)
        return f"{value} ({low}–{high})" if self.has_interval else value


def _split(
    value: object, what: str, units: Mapping[str, int], example: str
) -> tuple[Fraction, str]:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise UserError(f"{value!r} is not a {what} (write it like {example!r})")
    match = re.fullmatch(_QUANTITY, str(value))
    if match is None:
        raise UserError(f"{value!r} is not a {what} (write it like {example!r})")
    if match[2] not in units:
        allowed = ", ".join(unit for unit in units if unit)
        raise UserError(f"{value!r} has the unknown unit {match[2]!r} (allowed: {allowed})")
    from fractions import Fraction  # not needed by most commands and ranks

    return Fraction(match[1]), match[2]
