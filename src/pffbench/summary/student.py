"""Student's t distribution, since rank 0 compares during a run and SciPy is slow to import."""

from __future__ import annotations

import math
from functools import lru_cache

#: Relative precision of the continued fraction, and the most steps that it may take.
_PRECISION, _STEPS = 1e-12, 500


def student_tail(t: float, freedom: float) -> float:
    """Return P(T > t) of Student's t distribution.

    Parameters
    ----------
    t : float
        0 or more.
    freedom : float
        Degrees of freedom; more than 0, need not be whole.
    """
    if t == 0.0:
        return 0.5
    return _incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5) / 2


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


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b)."""
    if x >= 1.0:
        return 1.0
    if x <= 0.0:
        return 0.0
    factor = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
        + a * math.log(x) + b * math.log1p(-x)
    )  # fmt: skip
    # The fraction converges quickly on one side of the mean only.
    if x < (a + 1) / (a + b + 2):
        return factor * _fraction(x, a, b) / a
    return 1 - factor * _fraction(1 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    """Evaluate the continued fraction of the incomplete beta function (Lentz, 1976)."""
    tiny = 1e-300
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or tiny)
    value = d
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / (1 + term * d or tiny)
            c = 1 + term / c or tiny
            change = c * d
            value *= change
        if abs(change - 1) < _PRECISION:
            break
    return value
