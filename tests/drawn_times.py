"""Times of repetitions with the kinds of noise that I/O has, around a median of 1."""

from __future__ import annotations

import numpy as np

NOISES = ("normal", "outliers", "two modes", "drift", "dependent")


def drawn(noise, ways, rounds, generator, cv=0.2, correlation=0.5):
    """Draw seconds of shape (ways, rounds).

    Parameters
    ----------
    noise : str
        One of `NOISES`. Drift is what all ways of a round share; dependent repetitions of a way
        are an autoregressive process of first order.
    cv : float
        Standard deviation of the logarithms; of what each way has for itself.
    """
    z = generator.normal(size=(ways, rounds))
    if noise == "outliers":
        z += 5 * (generator.random(z.shape) < 0.1)
    elif noise == "two modes":
        z = 0.3 * z + 2 * (generator.random(z.shape) < 0.4)
    elif noise == "drift":
        z += np.linspace(0, 3, rounds)
    elif noise == "dependent":
        for t in range(1, rounds):
            z[:, t] = correlation * z[:, t - 1] + np.sqrt(1 - correlation**2) * z[:, t]
    return np.exp(cv * z)


def by_round(seconds, first=0):
    """Return seconds by round."""
    return {first + number: float(s) for number, s in enumerate(seconds)}
