"""Laws of scaling: the rate of all ranks as a function of their number.

Each law, written for a suitable quantity, is linear in non-negative coefficients, so a fit is a
problem of non-negative least squares with a unique solution and no initial guess.
"""

# ruff: noqa: RUF001 -- the parameters have their Greek letters, as in the literature
from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pffbench_analysis.scaling.points import Kind, Values


@dataclass(frozen=True)
class Law:
    """A law of scaling.

    Parameters
    ----------
    name : str
        Short name for programs.
    title : str
        Name for people.
    formula : str
        Rate X over the size N.
    parameters : tuple of str
        Names of the parameters; ``lambda`` is the rate of a single rank or node.
    kinds : frozenset of str
        Kinds of scaling that it applies to: ``weak``, ``strong``.
    """

    name: str
    title: str
    formula: str
    parameters: tuple[str, ...]
    kinds: frozenset[Kind]
    _terms: Callable[[Values], list[Values]]
    _of_time: bool
    _solve: Callable[[Values], Mapping[str, float]]

    def fit(self, sizes: Values, rates: Values) -> Values:
        """Return the coefficients with the smallest relative error.

        Parameters
        ----------
        sizes : array of float64, shape (n,)
            Ranks or nodes.
        rates : array of float64, shape (m, n)
            Bytes per second, m times.

        Returns
        -------
        array of float64, shape (m, len(parameters))
            None of them negative; `parameters_of` gives their meaning.
        """
        targets = sizes / rates if self._of_time else rates
        terms = np.column_stack(self._terms(sizes))
        scale = terms.max(axis=0)  # so that the coefficients are of one order
        found: Values = nonnegative(terms / scale / targets[:, :, np.newaxis]) / scale
        return found

    def rate(self, coefficients: Values, sizes: Values) -> Values:
        """Return the rates of the law.

        Parameters
        ----------
        coefficients : array of float64, shape (m, len(parameters))
            Of `fit`.
        sizes : array of float64, shape (n,)
            Ranks or nodes.

        Returns
        -------
        array of float64, shape (m, n)
            Bytes per second.
        """
        told: Values = coefficients @ np.column_stack(self._terms(sizes)).T
        with np.errstate(divide="ignore"):
            rates: Values = sizes / told if self._of_time else told
        return rates

    def parameters_of(self, coefficients: Values) -> dict[str, float]:
        """Return the parameters by name; NaN where the coefficients leave them open."""
        return dict(self._solve(coefficients))


def nonnegative(terms: Values) -> Values:
    """Return coefficients, none negative, with which terms add up to 1 with least squares.

    Those that are not 0 are plain least squares of their terms, so the best of all such choices is
    the answer. A law has two or three terms, hence at most seven choices.

    Parameters
    ----------
    terms : array of float64, shape (m, n, k)
        Terms at n sizes, for m fits.

    Returns
    -------
    array of float64, shape (m, k)
        The coefficients of each fit.
    """
    fits, sizes, count = terms.shape
    best, least = np.zeros((fits, count)), np.full(fits, float(sizes))
    for number in range(1, count + 1):
        for chosen in map(list, combinations(range(count), number)):
            some = terms[:, :, chosen]
            found = np.linalg.pinv(some).sum(axis=2)
            rest = (((some @ found[:, :, np.newaxis])[:, :, 0] - 1) ** 2).sum(axis=1)
            better = (found >= 0).all(axis=1) & (rest < least)
            least[better], best[better] = rest[better], 0
            best[np.ix_(better, chosen)] = found[better]
    return best


def _gustafson(c: Values) -> Mapping[str, float]:
    alone = float(c[0] + c[1])
    return {"lambda": alone, "alpha": float(c[1]) / alone if alone else math.nan}


def _contention(c: Values) -> Mapping[str, float]:
    """Return the parameters of Amdahl's law, or of the universal one when there are three."""
    alone = float(c[0] + c[1])
    if alone == 0.0:
        return dict(zip(("lambda", "sigma", "kappa")[: len(c)], [math.nan] * 3, strict=False))
    found = {"lambda": 1 / alone, "sigma": float(c[1]) / alone}
    return found if len(c) == 2 else {**found, "kappa": float(c[2]) / alone}


#: Gustafson (1988): a part alpha of the work of one does not grow with the ranks.
GUSTAFSON = Law(
    "gustafson",
    "Gustafson",
    "X(N) = λ·(N - α·(N-1))",
    ("lambda", "alpha"),
    frozenset({"weak"}),
    lambda n: [n, np.ones_like(n)],
    False,
    _gustafson,
)
#: Amdahl (1967): a part sigma of the work is serial. For weak scaling the same curve has another
#: meaning: a shared resource that saturates.
AMDAHL = Law(
    "amdahl",
    "Amdahl",
    "X(N) = λ·N / (1 + σ·(N-1))",
    ("lambda", "sigma"),
    frozenset({"weak", "strong"}),
    lambda n: [np.ones_like(n), n],
    True,
    _contention,
)
#: Gunther (1993): contention sigma, and a cost kappa of coherence that grows with every pair.
USL = Law(
    "usl",
    "Universal Scalability Law",
    "X(N) = λ·N / (1 + σ·(N-1) + κ·N·(N-1))",
    ("lambda", "sigma", "kappa"),
    frozenset({"weak", "strong"}),
    lambda n: [np.ones_like(n), n, n * (n - 1)],
    True,
    _contention,
)
#: The simplest first.
LAWS = (GUSTAFSON, AMDAHL, USL)


#: Symbols of the parameters.
SYMBOLS = {"lambda": "λ", "alpha": "α", "sigma": "σ", "kappa": "κ"}


def peak(parameters: Mapping[str, float]) -> float:
    """Return the size at which the universal law's rate is highest; infinite without a peak."""
    sigma, kappa = parameters.get("sigma", math.nan), parameters.get("kappa", 0.0)
    return math.sqrt((1 - sigma) / kappa) if kappa > 0 else math.inf
