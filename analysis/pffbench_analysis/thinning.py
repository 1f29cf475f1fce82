"""Fewer repetitions where a figure cannot show them all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

#: So many repetitions of one mark can be told apart in a figure that stands still.
MOST_DOTS = 200
#: So many dots a figure has in all, unless that leaves too few for one: SVG keeps each of them.
_MOST_IN_ALL = 4000
_FEWEST_DOTS = 20


def dots_each(medians: int) -> int:
    """Return how many repetitions a figure of so many medians shows of each at most."""
    return min(MOST_DOTS, max(_FEWEST_DOTS, _MOST_IN_ALL // max(1, medians)))


def kept(values: Sequence[float], most: int) -> list[int]:
    """Return the places of at most so many values, evenly spaced in their order.

    The smallest and the largest one are always among them; `most` is three or more.
    """
    if len(values) <= most:
        return list(range(len(values)))
    spaced = np.linspace(0, len(values) - 1, most - 2).round().astype(int).tolist()
    return sorted({*spaced, int(np.argmin(values)), int(np.argmax(values))})
