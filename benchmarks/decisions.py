"""Simulate runs with known truth: how often prices and words are right.

    python benchmarks/decisions.py                  # all tables, as Markdown; ten minutes
    python benchmarks/decisions.py --runs 200       # quicker and coarser
    python benchmarks/decisions.py --only power
    python benchmarks/decisions.py --noise RUN      # with the noise of a results directory, too

The tables are in docs/evidence/decisions.md.

The judge is `pffbench.results.judge`, which decides in real runs. Only the times are drawn: a true
ratio for each format, times noise, times the speed that a start of the program keeps.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pffbench.results.judge import ENDS, START, Pair, Verdict, bounds, decide

Array = np.ndarray
#: Draws logarithms of times, shape (comparisons, ways, rounds), for a coefficient of variation.
Noise = Callable[[np.random.Generator, tuple[int, int, int], float], Array]
#: Most rounds of a run, and the price at which it stops.
MOST, REGRET, ENOUGH = 40, 1.10, 25
TOTALS = ("write", "read")


def normal(rng: np.random.Generator, shape: tuple[int, int, int], cv: float) -> Array:
    """Lognormal times."""
    return _sigma(cv) * rng.standard_normal(shape)


def heavy(rng: np.random.Generator, shape: tuple[int, int, int], cv: float) -> Array:
    """Tails of Student's t with two degrees of freedom."""
    return _sigma(cv) / 2 * rng.standard_t(2, shape)


def outliers(rng: np.random.Generator, shape: tuple[int, int, int], cv: float) -> Array:
    """One round in ten takes four times as long, as when another job writes."""
    return normal(rng, shape, cv) + math.log(4) * (rng.random(shape) < 0.1)


def two_modes(rng: np.random.Generator, shape: tuple[int, int, int], cv: float) -> Array:
    """Three rounds in ten take twice as long."""
    return normal(rng, shape, cv / 2) + math.log(2) * (rng.random(shape) < 0.3)


def drift(rng: np.random.Generator, shape: tuple[int, int, int], cv: float) -> Array:
    """Make the machine twice as slow during the run."""
    return normal(rng, shape, cv) + np.linspace(0, math.log(2), shape[2])


def shared_state(rng: np.random.Generator, shape: tuple[int, int, int], cv: float) -> Array:
    """All times of a round share the state of the machine, which has a correlation of 0.5."""
    return correlated(rng, (1, 1, shape[2]), cv) + normal(rng, shape, cv / 2)


def unequal(rng: np.random.Generator, shape: tuple[int, int, int], cv: float) -> Array:
    """Give the first format a fifth of the spread of the others."""
    drawn = normal(rng, shape, cv)
    drawn[:, 0] /= 5
    return drawn


def as_measured(rng: np.random.Generator, shape: tuple[int, int, int], cv: float) -> Array:
    """Correlate times of a round in one comparison by 0.43, as in two real runs."""
    state = math.sqrt(0.43) * correlated(rng, (shape[0], 1, shape[2]), cv)
    return state + math.sqrt(0.57) * normal(rng, shape, cv)


def correlated(
    rng: np.random.Generator, shape: tuple[int, int, int], cv: float, by: float = 0.5
) -> Array:
    """Successive rounds of a way are correlated."""
    steps = rng.standard_normal(shape)
    for i in range(1, shape[2]):
        steps[..., i] = by * steps[..., i - 1] + math.sqrt(1 - by**2) * steps[..., i]
    return _sigma(cv) * steps


def step(rng: np.random.Generator, shape: tuple[int, int, int], cv: float) -> Array:
    """In the middle of the run each way becomes faster or slower by 10 %."""
    drawn = normal(rng, shape, cv)
    drawn[..., shape[2] // 2 :] += 0.1 * rng.standard_normal((*shape[:2], 1))
    return drawn


def own_drift(rng: np.random.Generator, shape: tuple[int, int, int], cv: float) -> Array:
    """Each way becomes steadily faster or slower, by 20 % from the middle to an end."""
    slope = 0.2 * rng.standard_normal((*shape[:2], 1))
    return normal(rng, shape, cv) + slope * np.linspace(-1, 1, shape[2])


def sticky(rng: np.random.Generator, shape: tuple[int, int, int], cv: float) -> Array:
    """Two modes, 1.5 times apart, of which each stays for ten rounds in the mean."""
    state = rng.random(shape) < 0.5
    for i in range(1, shape[2]):
        state[..., i] = state[..., i - 1] ^ (rng.random(shape[:2]) > 0.9)
    return normal(rng, shape, cv) + math.log(1.5) * (state - 0.5)


class OfOne(NamedTuple):
    """A law of the first format alone."""

    noise: Noise

    def __call__(self, rng: np.random.Generator, shape: tuple[int, int, int], cv: float) -> Array:
        """Draw; the other formats have lognormal times."""
        times = normal(rng, shape, cv)
        times[:, :1] = self.noise(rng, (shape[0], 1, shape[2]), cv)
        return times


KINDS: dict[str, Noise] = {
    "normal": normal,
    "heavy tails": heavy,
    "outliers": outliers,
    "outliers of one": OfOne(outliers),
    "two modes": two_modes,
    "drift of the machine": drift,
    "shared state": shared_state,
    "unequal spread": unequal,
    "as measured": as_measured,
    "correlation 0.5": correlated,
    "correlation 0.5 of one": OfOne(correlated),
    "correlation 0.8 of one": OfOne(partial(correlated, by=0.8)),
    "sticky modes of one": OfOne(sticky),
    "step": step,
    "own drift": own_drift,
}


def _sigma(cv: float) -> float:
    """Return the deviation of the logarithm of lognormal times with a coefficient of variation."""
    return math.sqrt(math.log1p(cv**2))


class Measured(NamedTuple):
    """The noise of a real run: whole rounds of its residuals, drawn with repetition."""

    #: Logarithms of times less the mean of their case. Shape (comparisons, ways, rounds).
    residuals: Array

    def __call__(self, rng: np.random.Generator, shape: tuple[int, int, int], _cv: float) -> Array:
        """Draw; the coefficient of variation is that of the run, whatever is asked for."""
        begin = rng.integers(self.residuals.shape[2])
        rounds = (begin + np.arange(shape[2])) % self.residuals.shape[2]
        comparisons = rng.permutation(self.residuals.shape[0])[: shape[0]]
        return self.residuals[comparisons][:, : shape[1]][:, :, rounds]


class Simulated(NamedTuple):
    """The end of a simulated run."""

    #: For each total the price of each format.
    prices: dict[str, dict[int, float]]
    #: By total, comparison (-1 for their average) and two formats.
    words: dict[tuple[str, int, int, int], Verdict]
    #: When it stopped.
    rounds: int

    def recommended(self, total: str) -> int:
        """Return the format with the smallest price."""
        prices = self.prices[total]
        return min(prices, key=lambda way: prices[way])


def simulate(
    rng: np.random.Generator,
    noise: Noise,
    ratios: Sequence[float],
    *,
    comparisons: int = 5,
    cv: float = 0.15,
    rounds: int = 0,
    between: float = 0.025,
    known: float = 0.025,
) -> Simulated:
    """Simulate a run that stops when its price is low enough, or after a number of rounds.

    Parameters
    ----------
    ratios : sequence of float
        True times of the formats.
    between, known : float
        Standard deviation between starts of the logarithm of a ratio: the true one, of each
        comparison, and the one that the judge is told.
    """
    shape = comparisons, len(ratios), rounds or MOST
    speed = {t: between / math.sqrt(2) * rng.standard_normal((*shape[:2], 1)) for t in TOTALS}
    logs = {t: np.log(ratios)[:, np.newaxis] + noise(rng, shape, cv) + speed[t] for t in TOTALS}
    n = rounds or ENOUGH
    while True:
        prices = {total: _prices(logs[total][..., :n], known) for total in TOTALS}
        if n == shape[2] or all(min(p.values()) <= REGRET for p in prices.values()):
            break
        n += 1
    return Simulated(prices, _words({t: x[..., :n] for t, x in logs.items()}, known), n)


def _prices(logs: Array, known: float) -> dict[int, float]:
    times = np.exp(logs)
    ways = {way: [_seconds(row) for row in times[:, way]] for way in range(logs.shape[1])}
    return bounds(ways, between=known)


def _words(logs: Mapping[str, Array], known: float) -> dict[tuple[str, int, int, int], Verdict]:
    single: dict[tuple[str, int, int, int], Pair] = {}
    averaged: dict[tuple[str, int, int, int], Pair] = {}
    for total, values in logs.items():
        times = [[_seconds(row) for row in comparison] for comparison in np.exp(values)]
        for a in range(values.shape[1]):
            for b in range(a + 1, values.shape[1]):
                both = [(comparison[a], comparison[b]) for comparison in times]
                averaged[total, -1, a, b] = Pair(both, (total, a, b))
                single |= {
                    (total, j, a, b): Pair([pair], (total, a, b)) for j, pair in enumerate(both)
                }
    return decide(averaged, alpha=0.04, between=known) | decide(single, alpha=0.01, between=known)


def _seconds(row: Array) -> dict[int, float]:
    return dict(enumerate(row.tolist()))


class Truth(NamedTuple):
    """The true logarithms of the times of the formats, under a law of noise."""

    logs: Array

    @classmethod
    def of(cls, noise: Noise, ratios: Sequence[float], rounds: int) -> Truth:
        """Find by drawing what a law adds in usual rounds; under half a percent is nothing."""
        shape = 4000, len(ratios), rounds
        logs = noise(np.random.default_rng(0), shape, 0.15)
        ends = int(ENDS * rounds)
        beside_last = np.sort(logs - logs[:, -1:], axis=2)
        means = np.clip(
            beside_last, beside_last[..., ends, None], beside_last[..., -1 - ends, None]
        ).mean(axis=(0, 2))
        means -= means.min()
        means[means < 0.005] = 0.0
        return cls(np.log(ratios) + means)

    def price(self, way: int) -> float:
        """Return what a format really costs."""
        return float(np.exp(self.logs[way] - self.logs.min()))

    def is_false(self, verdict: Verdict, one: int, other: int) -> bool:
        """Return whether a word is false."""
        apart = self.logs[one] - self.logs[other]
        return {
            "slower": apart <= 0,
            "faster": apart >= 0,
            "same": abs(apart) > math.log(1.1) + 1e-9,
            "open": False,
        }[verdict.word]


class Outcome(NamedTuple):
    """What a simulated run has right."""

    held: bool
    price: float
    false_word: bool
    found: float
    rounds: int


#: Formats that are as fast, and formats of which one is a little and one much slower.
EQUAL, APART = (1.0, 1.0, 1.0), (1.0, 1.1, 1.6)


def _outcome(
    seed: int,
    noise: Noise,
    ratios: Sequence[float],
    truth: Truth,
    between: float,
    known: float,
    rounds: int,
) -> Outcome:
    rng = np.random.default_rng(seed)
    run = simulate(rng, noise, ratios, between=between, known=known, rounds=rounds)
    ways = {total: run.recommended(total) for total in TOTALS}
    held = [truth.price(way) <= run.prices[t][way] * (1 + 1e-9) for t, way in ways.items()]
    words = [truth.is_false(v, a, b) for (_, _, a, b), v in run.words.items()]
    planted = [run.words[total, -1, 0, 1].word == "faster" for total in TOTALS]
    prices = [run.prices[total][way] for total, way in ways.items()]
    return Outcome(all(held), max(prices), any(words), float(np.mean(planted)), run.rounds)


def _outcomes(
    pool: Executor,
    runs: int,
    noise: Noise,
    ratios: Sequence[float],
    between: float,
    known: float | None = None,
    rounds: int = 0,
) -> list[Outcome]:
    truth = Truth.of(noise, ratios, rounds or MOST)
    job = partial(
        _outcome,
        noise=noise,
        ratios=ratios,
        truth=truth,
        between=between,
        known=max(between, 0.025) if known is None else known,
        rounds=rounds,
    )
    return list(pool.map(job, range(runs), chunksize=10))


def _percent(values: Sequence[bool | float]) -> str:
    return f"{100 * float(np.mean(values)):.1f}"


def prices(pool: Executor, runs: int, kinds: Mapping[str, Noise]) -> Iterator[str]:
    """Yield a table: whether prices and words are right, by the variation between starts."""
    between = (0.0, 0.025, 0.06)
    yield "| noise | " + " | ".join(f"{b:.1%} between starts" for b in between) + " |"
    yield "| --- |" + " --- |" * len(between)
    for name, noise in kinds.items():
        cells = []
        for one in between:
            equal = _outcomes(pool, runs, noise, EQUAL, one)
            apart = _outcomes(pool, runs, noise, APART, one)
            few = _outcomes(pool, runs // 4, noise, EQUAL, one, rounds=10)
            both = equal + apart
            cells.append(
                f"{_percent([o.held for o in both])}, {np.median([o.price for o in few]):.2f} / "
                f"{np.median([o.price for o in equal]):.2f}, "
                f"{_percent([o.false_word for o in both])}"
            )
        yield f"| {name} | {' | '.join(cells)} |"


def power(pool: Executor, runs: int, kinds: Mapping[str, Noise]) -> Iterator[str]:
    """Yield a table: how often a slower format is called slower, by its true ratio."""
    ratios = (1.05, 1.1, 1.15, 1.25)
    yield "| noise, between starts | " + " | ".join(f"{r:g}" for r in ratios) + " |"
    yield "| --- |" + " ---: |" * len(ratios)
    for name, noise in kinds.items():
        for between in (0.0, 0.025, 0.06):
            found = []
            for ratio in ratios:
                outcomes = _outcomes(pool, runs, noise, (1.0, ratio, 1.6), between)
                found.append(_percent([o.found for o in outcomes]))
            yield f"| {name}, {between:.1%} | {' | '.join(found)} |"


def unknown_starts(pool: Executor, runs: int, kinds: Mapping[str, Noise]) -> Iterator[str]:
    """Yield a table: runs on a machine whose starts vary more than the judge knows."""
    yield "| noise | price holds | false word |"
    yield "| --- | ---: | ---: |"
    for name, noise in kinds.items():
        both = [
            outcome
            for ratios in (EQUAL, APART)
            for outcome in _outcomes(pool, runs, noise, ratios, 0.06, 0.025)
        ]
        held, false = [o.held for o in both], [o.false_word for o in both]
        yield f"| {name} | {_percent(held)} | {_percent(false)} |"


#: True times of nine ways: the fastest, its rivals, and ways that are clearly slower.
MANY = {
    "all equal": (1.0,) * 9,
    "one fastest, eight at 1.1": (1.0, *(1.1,) * 8),
    "one fastest, eight at 1.2": (1.0, *(1.2,) * 8),
    "one fastest, eight at 1.3": (1.0, *(1.3,) * 8),
    "two equal, seven at 1.3": (1.0, 1.0, *(1.3,) * 7),
    "one at 1.05, seven at 1.3": (1.0, 1.05, *(1.3,) * 7),
    "one at 1.1, seven at 1.3": (1.0, 1.1, *(1.3,) * 7),
    "steps of 5 %": tuple(1.05**i for i in range(9)),
}


def many_ways(pool: Executor, runs: int, kinds: Mapping[str, Noise]) -> Iterator[str]:
    """Yield a table: whether the price of one of nine ways holds, and its size, after 27 rounds."""
    yield "| noise, true times | price holds | price |"
    yield "| --- | ---: | ---: |"
    for kind, noise in kinds.items():
        for name, ratios in MANY.items():
            job = partial(_price_of_many, noise=noise, ratios=ratios)
            held, printed = zip(*pool.map(job, range(runs), chunksize=20), strict=True)
            yield f"| {kind}, {name} | {_percent(held)} | {np.median(printed):.2f} |"


def _price_of_many(seed: int, noise: Noise, ratios: Sequence[float]) -> tuple[bool, float]:
    """Draw a run of one comparison in the shape of the default; say if its price holds."""
    logs = noise(np.random.default_rng(seed), (1, len(ratios), 27), 0.25)
    prices = _prices(np.log(ratios)[:, np.newaxis] + logs, 0.025)
    way = min(prices, key=lambda one: prices[one])
    return ratios[way] / min(ratios) <= prices[way] * (1 + 1e-9), prices[way]


#: Totals of a usual comparison of runs: three formats, written and read.
TOTALS_COMPARED = 6


def _compared(
    seed: int, between: float, common: float | None, starts: int, rounds: int, true: float
) -> tuple[bool, bool]:
    """Compare two sides of runs; say whether a word is false, and whether the slower is found."""
    rng = np.random.default_rng(seed)
    old, new = (_side(rng, between, common or 0.0, starts, rounds, at) for at in (0, 1000))
    new[0] = {r: true * s for r, s in new[0].items()}
    control = [] if common is None else [(new[-1], old[-1])]
    found = decide({t: Pair([(new[t], old[t])], t, control) for t in range(TOTALS_COMPARED)})
    words = {total: verdict.word for total, verdict in found.items()}
    wrong = [w in ("slower", "faster") for t, w in words.items() if t or true == 1.0]
    return any(wrong), words[0] == "slower"


def _side(
    rng: np.random.Generator, between: float, common: float, starts: int, rounds: int, first: int
) -> list[dict[int, float]]:
    """Draw the times of the totals of a side, and last those of raw I/O.

    A part of the variance between starts, `common`, is that of all totals of a start.
    """
    seconds: list[dict[int, float]] = [{} for _ in range(TOTALS_COMPARED + 1)]
    for start in range(first, first + starts):
        shared = math.sqrt(common) * rng.standard_normal()
        for total in seconds:
            own = math.sqrt(1 - common) * rng.standard_normal()
            noise = between * (shared + own) + _sigma(0.15) * rng.standard_normal(rounds)
            total |= {start * START + i: float(s) for i, s in enumerate(np.exp(noise))}
    return seconds


#: Part of the variance between starts that formats share with raw I/O, as measured
#: (docs/evidence/starts.md).
COMMON = 0.85
#: That part where runs have no raw I/O, and with raw I/O.
SHARED = {
    "": None,
    ", nothing in common with raw I/O": 0.0,
    f", {100 * COMMON:.0f} % in common": COMMON,
}


def compared(pool: Executor, runs: int) -> Iterator[str]:
    """Yield a table: what is said of runs of one program, by their variation between starts."""
    columns = {
        "equal, 1 and 1 run": (1, 20, 1.0),
        "equal, 3 and 3": (3, 14, 1.0),
        "equal, 5 and 5": (5, 14, 1.0),
        "1.25 times, 1 and 1 run": (1, 20, 1.25),
        "1.25 times, 3 and 3": (3, 14, 1.25),
        "1.25 times, 5 and 5": (5, 14, 1.25),
    }
    yield f"| between starts | {' | '.join(columns)} |"
    yield "| --- |" + " ---: |" * len(columns)
    for between, (what, common) in itertools.product((0.03, 0.06, 0.09, 0.12), SHARED.items()):
        cells = []
        for starts, rounds, true in columns.values():
            of = {"between": between, "common": common, "starts": starts}
            job = partial(_compared, **of, rounds=rounds, true=true)
            wrong, found = zip(*pool.map(job, range(runs), chunksize=20), strict=True)
            cells.append(_percent(wrong if true == 1.0 else found))
        yield f"| {100 * between:.0f} %{what} | {' | '.join(cells)} |"


def _measured(directory: Path) -> dict[str, Noise]:
    """Return the noise of a run: of writing, and of reading."""
    from pffbench.record.run import MeasuredRun
    from pffbench.results.cells import cells_of, grouped

    found: dict[str, Noise] = {}
    cells = [c for c in cells_of(MeasuredRun.load(directory)) if not c.raw]
    for total, some in grouped(cells, lambda c: c.keys["total"]).items():
        contests = [
            three
            for three in grouped(some, lambda c: (c.keys["work"], c.keys["files"])).values()
            if len(three) == 3
        ]
        rounds = sorted(set.intersection(*(set(c.seconds) for three in contests for c in three)))
        logs = np.log([[[c.seconds[r] for r in rounds] for c in three] for three in contests])
        found[f"measured, {total}"] = Measured(logs - logs.mean(axis=2, keepdims=True))
    return found


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=400, help="simulated runs of each cell")
    parser.add_argument("--only", choices=("prices", "many", "power", "unknown", "compared"))
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--noise", type=Path, metavar="RUN", help="results directory")
    given = parser.parse_args()
    kinds = {name: KINDS[name] for name in given.kinds}
    usual = {name: KINDS[name] for name in ("normal", "as measured")}
    worst = ("correlation 0.5", "correlation 0.8 of one", "sticky modes of one")
    if given.noise:
        real = _measured(given.noise)
        kinds, usual = kinds | real, usual | real
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        tables = {
            "prices": (
                "Runs of three formats in five comparisons: percent in which the price holds, "
                "median price after 10 rounds / at the end, percent with any false word",
                lambda: prices(pool, given.runs, kinds),
            ),
            "many": (
                "Nine ways in one comparison, spread 25 %, after 27 rounds",
                lambda: many_ways(pool, given.runs, usual | {name: KINDS[name] for name in worst}),
            ),
            "power": (
                "Formats called slower, in percent, by the true ratio",
                lambda: power(pool, given.runs, usual),
            ),
            "unknown": (
                "Starts vary by 6 %, and the judge counts with 2.5 %",
                lambda: unknown_starts(pool, given.runs, usual),
            ),
            "compared": (
                "Runs compared, six totals: percent with a false word, or the slower one found",
                lambda: compared(pool, given.runs),
            ),
        }
        for name, (title, lines) in tables.items():
            if given.only in (None, name):
                print(f"{title}:\n")
                for line in lines():
                    print(line, flush=True)
                print()


if __name__ == "__main__":
    main()
