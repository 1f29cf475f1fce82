"""Repeat the default run, and list the claims of one run that another one contradicts.

    python benchmarks/default_runs.py --runs 12 --results /scratch/default-runs

Two runs contradict each other where one says that A is faster than B, and the other one that B is
faster than A, or that both are equally fast. A run that leaves a pair undecided contradicts none.
The machine must do nothing else. The results stay, and runs that are there already are not
repeated, so that a series can be continued. docs/method.md has the result.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path

from jobs import python, run_ranks

from pffbench.summary.summary import Summary, summarise
from pffbench_bundles.claims import claims_of

#: A comparison, and two of its contenders.
Pair = tuple[str, str, frozenset[str]]


def by_pair(summary: Summary) -> dict[Pair, str]:
    """Return what a run claims of each pair: the name of the faster one, or that they are equal."""
    return {
        (claim.total, str(claim.key), frozenset((claim.first, claim.other))): (
            "equal" if claim.standing == "equal" else claim.first
        )
        for claim in claims_of(summary.answers)
    }


def contradictions(one: Mapping[Pair, str], other: Mapping[Pair, str]) -> Iterator[str]:
    """Describe each pair of which two runs claim different things."""
    for pair in one.keys() & other.keys():
        if one[pair] != other[pair]:
            total, comparison, names = pair
            yield f"{total} of {comparison}, {sorted(names)}: {one[pair]} and {other[pair]}"


def main() -> None:
    """Run it, print the claims of each run, then the contradictions of all pairs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--results", type=Path, required=True, help="directory of the runs")
    args = parser.parse_args()
    args.results.mkdir(exist_ok=True)
    claimed: list[dict[Pair, str]] = []
    for number in range(args.runs):
        out = args.results / f"run-{number:02}"
        if not out.exists():
            options = ["run", "--out", out, "--scratch", args.results, "--progress", "none"]
            run_ranks(args.ranks, python("-m", "pffbench", *map(str, options)))
        summary = summarise(out)
        claimed.append(by_pair(summary))
        decided = sum(answer.decided for answer in summary.answers)
        print(
            f"run {number}: {decided} of {len(summary.answers)} comparisons decided, "
            f"{len(claimed[-1])} claims",
            flush=True,
        )
    pairs = list(itertools.combinations(enumerate(claimed), 2))
    found = [
        f"runs {i} and {j}: {line}"
        for (i, one), (j, other) in pairs
        for line in contradictions(one, other)
    ]
    print(*found, f"{len(found)} contradictions in {len(pairs)} pairs of runs", sep="\n")


if __name__ == "__main__":
    main()
