"""Simulate runs with known truth: false claims, power, coverage of intervals (docs/method.md).

    python benchmarks/decisions.py                  # all tables, as Markdown; an hour on two cores
    python benchmarks/decisions.py --runs 200       # quicker and coarser
    python benchmarks/decisions.py --only power
    python benchmarks/decisions.py --noise RUN      # with the noise of a results directory, too

A simulated run goes through the code that a real one goes through: `pffbench.summary.headline`
decides after each look which cases go on, and what is claimed at the end. Only the times are drawn:
a true ratio for each format, times noise.
"""

from __future__ import annotations

import argparse
import math
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
from scipy.stats import ttest_ind

from pffbench.phases import TOTALS
from pffbench.record.samples import read_samples
from pffbench.summary.dependence import variance_inflation
from pffbench.summary.headline import Answer, Design, answers, undecided_cases
from pffbench.summary.inference import ComparisonTable, decide, planned_looks
from pffbench.summary.rank_test import ALPHA, FEWEST, NORMAL, ratio
from pffbench.summary.starts import OF_TOTALS, START, Starts
from pffbench.summary.statistics import interval_of_median

MOST = 40
LOOKS = planned_looks(MOST)
Array = np.ndarray
#: Draws logarithms of times, shape (tables, ways, repetitions), for a coefficient of variation.
Noise = Callable[[np.random.Generator, tuple[int, int, int], float], Array]


def normal(rng: np.random.Generator, shape: tuple[int, int, int], cv: float) -> Array:
    """Lognormal times."""
    return _sigma(cv) * rng.standard_normal(shape)


def heavy(rng: np.random.Generator, shape: tuple[int, int, int], cv: float) -> Array:
    """Tails of Student's t with two degrees of freedom."""
    return _sigma(cv) / 2 * rng.standard_t(2, shape)


def outliers(rng: np.random.Generator, shape: tuple[int, int, int], cv: float) -> Array:
    """One repetition in ten takes four times as long, as when another job writes."""
    return normal(rng, shape, cv) + math.log(4) * (rng.random(shape) < 0.1)


def two_modes(rng: np.random.Generator, shape: tuple[int, int, int], cv: float) -> Array:
    """Three repetitions in ten take twice as long."""
    return normal(rng, shape, cv / 2) + math.log(2) * (rng.random(shape) < 0.3)


def drift(rng: np.random.Generator, shape: tuple[int, int, int], cv: float) -> Array:
    """Lognormal times on a machine that becomes twice as slow during the run."""
    return normal(rng, shape, cv) + np.linspace(0, math.log(2), shape[2])


def correlated(rng: np.random.Generator, shape: tuple[int, int, int], cv: float) -> Array:
    """Successive repetitions of a way have a correlation of 0.5."""
    steps = rng.standard_normal(shape)
    for i in range(1, shape[2]):
        steps[..., i] = 0.5 * steps[..., i - 1] + math.sqrt(0.75) * steps[..., i]
    return _sigma(cv) * steps


def shared_state(rng: np.random.Generator, shape: tuple[int, int, int], cv: float) -> Array:
    """All ways of a block share the state of the machine, which has a correlation of 0.5."""
    state = correlated(rng, (1, 1, shape[2]), cv)
    return state + normal(rng, shape, cv / 2)


def unequal(rng: np.random.Generator, shape: tuple[int, int, int], cv: float) -> Array:
    """Lognormal times of equal medians; the spread of the first way is a fifth of the others'."""
    drawn = normal(rng, shape, cv)
    drawn[:, 0] /= 5
    return drawn


def one_correlated(rng: np.random.Generator, shape: tuple[int, int, int], cv: float) -> Array:
    """Repetitions of the first way have a correlation of 0.5, those of others none."""
    drawn = normal(rng, shape, cv)
    drawn[:, :1] = correlated(rng, (shape[0], 1, shape[2]), cv)
    return drawn


def second_mode(rng: np.random.Generator, shape: tuple[int, int, int], cv: float) -> Array:
    """Of the first way 45 repetitions in a hundred take half as long again; equal medians."""
    drawn = normal(rng, shape, cv)
    first = normal(rng, (shape[0], 1, shape[2]), cv)
    first += math.log(1.5) * (rng.random(first.shape) < 0.45)
    drawn[:, :1] = first - _median_of_two(_sigma(cv), math.log(1.5), 0.45)
    return drawn


@cache
def _median_of_two(sigma: float, distance: float, part: float) -> float:
    """Return the median of two normal modes, the upper one with this part."""
    low, high = 0.0, distance
    for _ in range(60):
        middle = (low + high) / 2
        below = (1 - part) * NORMAL.cdf(middle / sigma)
        below += part * NORMAL.cdf((middle - distance) / sigma)
        low, high = (middle, high) if below < 0.5 else (low, middle)
    return low


KINDS: dict[str, Noise] = {
    "normal": normal,
    "heavy tails": heavy,
    "outliers": outliers,
    "two modes": two_modes,
    "drift": drift,
    "shared state": shared_state,
    "correlation 0.5": correlated,
    "unequal spread": unequal,
    "second mode": second_mode,
    "one with correlation 0.5": one_correlated,
}


def _sigma(cv: float) -> float:
    """Return the deviation of the logarithm of lognormal times with a coefficient of variation."""
    return math.sqrt(math.log1p(cv**2))


@dataclass(frozen=True)
class Measured:
    """The noise of a real run: residuals of the logarithms of all totals, drawn with repetition."""

    residuals: tuple[float, ...]

    def __call__(self, rng: np.random.Generator, shape: tuple[int, int, int], _cv: float) -> Array:
        """Draw; the coefficient of variation is that of the run, whatever is asked for."""
        return rng.choice(self.residuals, shape)

    @classmethod
    def of(cls, directory: Path, total: str) -> Measured:
        """Take the residuals of a total of all cases of a run."""
        sums: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        for sample in read_samples(directory / "samples.csv"):
            if not sample.warmup and sample.phase in TOTALS[total]:
                sums[sample.case][sample.repetition] += sample.job
        found: list[float] = []
        for by_block in sums.values():
            logarithms = np.log(list(by_block.values()))
            found += (logarithms - np.median(logarithms)).tolist()
        return cls(tuple(found))


@dataclass(frozen=True)
class Simulated:
    """The end of a simulated run: what it claims, and how often its cases were repeated."""

    answers: tuple[Answer, ...]
    repetitions: int


def simulate(
    rng: np.random.Generator,
    noise: Noise,
    ratios: Sequence[float],
    groups: int = 1,
    cv: float = 0.15,
    looks: Sequence[int] = LOOKS,
) -> Simulated:
    """Simulate a run: ways with true ratios, each with a raw transfer beside, written and read."""
    totals = ("write_total", "read_total")
    names = [f"f{i}" for i in range(len(ratios))]
    cases = {
        f"{name}.{group}": {
            "group": str(group),
            "raw": name == "raw",
            "parameters": {"backend": name, "settings": "matched", "codec": "none"},
        }
        for group in range(groups)
        for name in (*names, "raw")
    }
    logarithms = np.log([*ratios, 0.8])[:, np.newaxis]
    drawn = {
        total: np.exp(logarithms + noise(rng, (groups, len(ratios) + 1, looks[-1]), cv))
        for total in totals
    }
    design = Design(tuple(looks))
    counts = dict.fromkeys(cases, looks[-1])
    running = set(cases)

    def times() -> dict[str, dict[str, dict[int, float]]]:
        rows = {name: place for place, name in enumerate((*names, "raw"))}
        return {
            total: {
                case: dict(
                    enumerate(values[int(entry["group"]), rows[entry["parameters"]["backend"]]]
                              [: counts[case]].tolist())
                )
                for case, entry in cases.items()
            }
            for total, values in drawn.items()
        }  # fmt: skip

    for n in looks[:-1]:
        for case in running:
            counts[case] = n
        found = answers(cases, times(), design, 0.0, ended=False)
        open_ = undecided_cases(found)
        still = {cases[case]["group"] for case in open_}
        running = {
            case
            for case in running
            if case in open_ or (cases[case]["raw"] and cases[case]["group"] in still)
        }
        if not open_:
            break
    else:
        for case in running:
            counts[case] = looks[-1]
    ended = answers(cases, times(), design, 0.0)
    return Simulated(tuple(ended), max(counts.values()))


def _claims_difference(run: Simulated) -> bool:
    return any(o.standing == "slower" for a in run.answers for o in a.others)


def _false_claims(seed: int, noise: Noise, ways: int, groups: int, looks: Sequence[int]) -> int:
    run = simulate(np.random.default_rng(seed), noise, [1.0] * ways, groups, looks=looks)
    return int(_claims_difference(run))


def _power(seed: int, noise: Noise, true: float, cv: float) -> tuple[str, int]:
    run = simulate(np.random.default_rng(seed), noise, [1.0, true], cv=cv)
    standings = [
        "wrong" if o.standing == "slower" and o.name == "f0" else o.standing
        for a in run.answers
        for o in a.others
    ]
    return standings[0], run.repetitions


def _coverage(seed: int, noise: Noise, n: int) -> tuple[int, int, int]:
    """Say whether the intervals of a median, of a ratio in a run and of one of two runs hold."""
    rng = np.random.default_rng(seed)
    looks = planned_looks(n)
    one, other = (np.exp(noise(rng, (1, 4, n), 0.15))[0] for _ in range(2))
    alone = _inflation(one, shared_cancels=False)
    medians = interval_of_median(one[0], alone)
    inflation = _inflation(one, shared_cancels=True)
    in_run = ratio(one[0], one[1], ALPHA / len(looks), inflation)
    worse = max(alone, _inflation(other, shared_cancels=False))
    groups = [[one[0]], [other[0]]]
    two_runs = Starts.of(groups, OF_TOTALS, worse).ratio(ALPHA)
    # Of noise with a median of the logarithms that is not 0 the true median is found by drawing.
    true = _true_median(noise)
    return (
        int(medians[0] <= true <= medians[1]),
        int(in_run.low <= 1 <= in_run.high),
        int(two_runs.low <= 1 <= two_runs.high),
    )


def _inflation(run: Array, *, shared_cancels: bool) -> float:
    ways = [dict(enumerate(way.tolist())) for way in run]
    return variance_inflation([ways], run.shape[1], shared_cancels=shared_cancels)


_MEDIANS: dict[int, float] = {}


def _true_median(noise: Noise) -> float:
    key = id(noise)
    if key not in _MEDIANS:
        rng = np.random.default_rng(0)
        many = np.concatenate([noise(rng, (1, 1, 40), 0.15).ravel() for _ in range(20_000)])
        _MEDIANS[key] = math.exp(float(np.median(many)))
    return _MEDIANS[key]


def false_claims(pool: ProcessPoolExecutor, runs: int, kinds: dict[str, Noise]) -> Iterator[str]:
    """Yield a table: runs in which anything is claimed of equal ways, in percent."""
    sizes = [(2, 1), (3, 1), (5, 1), (8, 1), (3, 3)]
    yield (
        "| noise | "
        + " | ".join(
            f"{ways} ways" + (f" × {groups} layouts" if groups > 1 else "")
            for ways, groups in sizes
        )
        + " |"
    )
    yield "| --- |" + " ---: |" * len(sizes)
    for name, noise in kinds.items():
        cells = []
        for ways, groups in sizes:
            job = partial(_false_claims, noise=noise, ways=ways, groups=groups, looks=LOOKS)
            count = sum(pool.map(job, range(runs), chunksize=20))
            cells.append(f"{100 * count / runs:.1f}")
        yield f"| {name} | {' | '.join(cells)} |"


def power(pool: ProcessPoolExecutor, runs: int, noise: Noise) -> Iterator[str]:
    """Yield a table: how often a true ratio is shown, in percent; after how many repetitions."""
    cvs = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
    yield "| true ratio | " + " | ".join(f"CV {cv:g}" for cv in cvs) + " |"
    yield "| --- |" + " ---: |" * len(cvs)
    for true in (1.05, 1.1, 1.25, 1.5, 2.0, 3.0):
        cells = []
        for cv in cvs:
            job = partial(_power, noise=noise, true=true, cv=cv)
            found = list(pool.map(job, range(runs), chunksize=20))
            shown = Counter(standing for standing, _ in found)
            repetitions = int(np.median([n for _, n in found]))
            wrong = f", {100 * shown['wrong'] / runs:.1f} wrong" if shown["wrong"] else ""
            equal = f", {100 * shown['equal'] / runs:.0f} equal" if shown["equal"] else ""
            cells.append(f"{100 * shown['slower'] / runs:.0f}{equal}{wrong} ({repetitions})")
        yield f"| {true:g} | {' | '.join(cells)} |"


def coverage(pool: ProcessPoolExecutor, runs: int, kinds: dict[str, Noise]) -> Iterator[str]:
    """Yield a table: how often intervals hold the truth, in percent."""
    sizes = (7, 10, 20, 40)
    yield "| noise | " + " | ".join(f"n = {n}" for n in sizes) + " |"
    yield "| --- |" + " ---: |" * len(sizes)
    for name, noise in kinds.items():
        if name in ("drift", "shared state"):  # a median that moves is not what they estimate
            continue
        cells = []
        for n in sizes:
            job = partial(_coverage, noise=noise, n=n)
            held = zip(*pool.map(job, range(4 * runs), chunksize=50), strict=True)
            cells.append(" / ".join(f"{100 * np.mean(kind):.1f}" for kind in held))
        yield f"| {name} | {' | '.join(cells)} |"


def _by_intervals(one: Array, other: Array) -> bool:
    """Decide as many reports do: five repetitions, percentile bootstrap of the median ratio."""
    ratios = one[:5] / other[:5]
    drawn = np.median(np.random.default_rng(0).choice(ratios, (1000, 5)), axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return not low <= 1 <= high


def _by_t_test(one: Array, other: Array) -> bool:
    """Decide by Welch's t test of the logarithms, at the same looks."""
    return any(
        ttest_ind(np.log(one[:n]), np.log(other[:n]), equal_var=False).pvalue < ALPHA / len(LOOKS)
        for n in LOOKS
    )


def _by_rank_test(one: Array, other: Array) -> bool:
    """Decide as pffbench does."""
    times = {"one": dict(enumerate(one.tolist())), "other": dict(enumerate(other.tolist()))}
    table = ComparisonTable(times, (("one", "other"),))
    return decide([table], LOOKS)[0, "one", "other"].different


#: Totals of a usual comparison of runs: three formats, written and read.
TOTALS_COMPARED = 6


def _runs_compared(
    seed: int, between: float, runs: int, n: int, true: float, limit: float = 0.2
) -> tuple[bool, bool]:
    """Compare runs as `pffbench compare` does; is any difference told, and do all totals pass.

    One of the totals of the new side takes `true` times as long.
    """
    rng = np.random.default_rng(seed)
    tables = []
    for total in range(TOTALS_COMPARED):
        sides = {}
        slower = true if total == 0 else 1.0
        for first, (side, factor) in enumerate((("base", 1.0), ("new", slower))):
            speeds = factor * np.exp(between * rng.standard_normal((runs, 1)))
            times = speeds * np.exp(normal(rng, (1, runs, n), 0.15)[0])
            sides[side] = {
                (first * runs + run) * START + block: float(seconds)
                for run, row in enumerate(times)
                for block, seconds in enumerate(row)
            }
        tables.append(ComparisonTable(sides, (("new", "base"),)))
    found = decide(tables, (FEWEST,)).values()
    told = any(decision.different for decision in found)
    return told, all(d.shorter or d.alone.high <= 1 + limit for d in found)


def starts(pool: ProcessPoolExecutor, runs: int) -> Iterator[str]:
    """Yield a table: what is told of runs of one program, by their variation between starts."""
    columns = {
        "equal, 1 and 1 run, 10 repetitions": (1, 10, 1.0),
        "40 repetitions": (1, 40, 1.0),
        "3 and 3 runs": (3, 14, 1.0),
        "one total 1.25 times: told, 3 and 3 runs": (3, 14, 1.25),
        "one total 1.2 times: PASSED at 20 %": (3, 14, 1.2),
    }
    yield f"| between starts | {' | '.join(columns)} |"
    yield "| --- |" + " ---: |" * len(columns)
    for between in (0.02, 0.05, 0.08):
        cells = []
        for name, (count, n, true) in columns.items():
            job = partial(_runs_compared, between=between, runs=count, n=n, true=true)
            told, passed = np.mean(list(pool.map(job, range(runs), chunksize=20)), axis=0)
            cells.append(f"{100 * (passed if 'PASSED' in name else told):.1f}")
        yield f"| {between:.0%} | {' | '.join(cells)} |"


DESIGNS = {
    "5 repetitions, bootstrap": _by_intervals,
    "t test at each look": _by_t_test,
    "rank test at each look": _by_rank_test,
}


def _found(seed: int, noise: Noise, true: float) -> tuple[bool, ...]:
    """Say which designs tell two ways with a true ratio apart."""
    one, other = np.exp(noise(np.random.default_rng(seed), (1, 2, LOOKS[-1]), 0.15))[0]
    return tuple(design(one * true, other) for design in DESIGNS.values())


def designs(pool: ProcessPoolExecutor, runs: int, kinds: dict[str, Noise]) -> Iterator[str]:
    """Yield a table: how often designs tell two ways apart, in percent, by their true ratio."""
    ratios = (1.0, 1.1, 1.25)
    yield f"| noise | {' | '.join(DESIGNS)} |"
    yield "| --- |" + " ---: |" * len(DESIGNS)
    for name, noise in kinds.items():
        parts = []
        for true in ratios:
            job = partial(_found, noise=noise, true=true)
            parts.append(np.mean(list(pool.map(job, range(runs), chunksize=20)), axis=0))
        cells = [" / ".join(f"{100 * part[i]:.0f}" for part in parts) for i in range(len(DESIGNS))]
        yield f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1000, help="simulated runs of each cell")
    parser.add_argument("--only", choices=("false", "power", "coverage", "designs", "starts"))
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--noise", type=Path, metavar="RUN", help="results directory")
    given = parser.parse_args()
    kinds = {name: KINDS[name] for name in given.kinds}
    if given.noise:
        for total in ("write_total", "read_total"):
            kinds[f"measured ({total.partition('_')[0]})"] = Measured.of(given.noise, total)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        if given.only in (None, "false"):
            print("Runs with any false claim, percent:\n")
            for line in false_claims(pool, given.runs, kinds):
                print(line, flush=True)
        if given.only in (None, "power"):
            for name in ("normal", "outliers"):
                print(f"\nPower, {name}: percent of runs (median repetitions):\n")
                for line in power(pool, given.runs, kinds[name]):
                    print(line, flush=True)
        if given.only in (None, "coverage"):
            print("\nCoverage: median / ratio in a run / ratio of two runs, percent:\n")
            for line in coverage(pool, given.runs, kinds):
                print(line, flush=True)
        if given.only in (None, "starts"):
            print("\nRuns compared, three formats written and read; a difference told, percent:\n")
            for line in starts(pool, given.runs):
                print(line, flush=True)
        if given.only in (None, "designs"):
            print("\nTwo ways told apart whose true ratio is 1 / 1.1 / 1.25, percent:\n")
            for line in designs(pool, given.runs, kinds):
                print(line, flush=True)


if __name__ == "__main__":
    main()
