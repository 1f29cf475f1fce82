"""Student's t distribution, since rank 0 compares during a run and SciPy is slow to import."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

#: Places and weights of the integral from 0 to infinity of a function that falls off (the exp-sinh
#: rule of Takahasi and Mori, 1974): with these steps the error is below 1e-8 of the tail up to 1e7
#: degrees of freedom, where the gamma functions cancel, and far less below.
_STEPS = np.linspace(-4.0, 4.0, 257)
_PLACES = np.exp(np.pi / 2 * np.sinh(_STEPS))
_WEIGHTS = np.pi / 2 * np.cosh(_STEPS) * _PLACES / 32


def student_tail(t: float, freedom: float) -> float:
    """Return P(T > t) of Student's t distribution: the integral of its density.

    Parameters
    ----------
    t : float
        0 or more.
    freedom : float
        Degrees of freedom; 1 or more, need not be whole.
    """
    half = (freedom + 1) / 2
    density = np.exp(-half * np.log1p((t + _PLACES) ** 2 / freedom))
    scale = math.exp(math.lgamma(half) - math.lgamma(freedom / 2))
    return scale / math.sqrt(math.pi * freedom) * float(_WEIGHTS @ density)


@lru_cache(maxsize=4096)
def student_quantile(tail: float, freedom: float) -> float:
    """Return t with P(T > t) = tail, for a tail under one half."""
    low, high = 0.0, 1.0
    while student_tail(high, freedom) > tail:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if student_tail(middle, freedom) > tail else (low, middle)
    return (low + high) / 2
