"""Run one experiment many times, for the variation between starts and what is said of it.

    python benchmarks/starts.py --runs 12                   # equal runs: variation, pairs, gate
    python benchmarks/starts.py --runs 12 --planted 12      # and as many with slow writes beside

Each run is a start of the ranks. Nothing differs between equal runs, so whatever
`pffbench compare` reports of two of them is false. With ``--planted`` write(2) and fsync(2) on
the files of HDF5 take ``--factor`` times as long in runs that alternate with the equal ones, and
comparisons of three runs of each kind should find that. docs/evidence/starts.md has the tables.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jobs import load, python, run_ranks

from pffbench.record.run import MeasuredRun
from pffbench_analysis.compare import Gate, compare_runs, judge

HERE = Path(__file__).resolve().parent
EXPERIMENT = """
name: starts
question: How far do starts of one program vary?
repetitions: {repetitions}
cases:
  - workload: hyperslab
    backend: [hdf5, netcdf4, zarr]
    files: per_rank
    shape_per_rank: [1536, 4096]
    chunks: [256, 4096]
    durability: sync
    dtype: float32
"""
TOTALS = ("write_total", "read_total")


def run(place: Path, name: str, experiment: Path, ranks: int, env: dict[str, str]) -> MeasuredRun:
    """Run the experiment once."""
    out = place / name
    told = ["run", experiment, "--out", out, "--scratch", place]
    run_ranks(ranks, python("-m", "pffbench", *map(str, told)), **env)
    return MeasuredRun.load(out)


def plant(place: Path, factor: float) -> dict[str, str]:
    """Compile the library that makes calls slow; return the environment that plants it."""
    source = HERE.parent / "tests" / "parallel" / "programs" / "planted.c"
    library = place / "planted.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return {"LD_PRELOAD": str(library), "PLANT_MATCH": "-hdf5.", "PLANT_FACTOR": str(factor)}


def variation(runs: Sequence[MeasuredRun]) -> None:
    """Print the standard deviation of the logarithm of medians between runs, in percent."""
    print("\n| case | total | between starts | expected of the repetitions |")
    print("| --- | --- | ---: | ---: |")
    for case, total in itertools.product(runs[0].seconds, TOTALS):
        times = [np.log(list(r.seconds[case][total].values())) for r in runs]
        between = np.std([np.median(t) for t in times], ddof=1)
        low, high = np.mean([np.quantile(t, [0.25, 0.75]) for t in times], axis=0)
        within = (high - low) / 1.349 * np.sqrt(np.pi / 2 / times[0].size)
        print(f"| {case.rpartition('.')[0]} | {total} | {between:.1%} | {within:.1%} |")


def pairs(runs: Sequence[MeasuredRun], limit: float) -> None:
    """Print what is reported of each pair of equal runs."""
    said: Counter[str] = Counter()
    for one, other in itertools.combinations(runs, 2):
        found = compare_runs([one], [other])
        said["a difference"] += any(row.different for row in (*found.comparable, *found.control))
        said[judge(found, Gate(limit)).sentence.partition(":")[0]] += 1
    number = len(runs) * (len(runs) - 1) // 2
    told = ", ".join(f"{what}: {count}" for what, count in said.items())
    print(f"\nof {number} pairs of runs: {told}")


def splits(base: Sequence[MeasuredRun], new: Sequence[MeasuredRun], count: int, what: str) -> None:
    """Print how often three runs of each side are told apart."""
    generator = np.random.default_rng(1)
    found = written = 0
    for _ in range(count):
        one = [base[i] for i in generator.permutation(len(base))[:6]]
        other = [new[i] for i in generator.permutation(len(new))[:3]] if new else one[3:]
        rows = [row for row in compare_runs(one[:3], other).comparable if row.different]
        found += bool(rows)
        written += any(
            new.keys["total"] == "write" and new.keys["backend"] == "hdf5"
            for row in rows
            for new, _ in row.cells
            if row.verdict.word == "slower"
        )
    print(f"{what}: of {count} comparisons of three runs with three, {found} report a difference"
          + (f", {written} that writing HDF5 is slower" if new else ""))  # fmt: skip


def main() -> None:
    """Make the runs and print what comes of them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=12)
    parser.add_argument("--planted", type=int, default=0)
    parser.add_argument("--factor", type=float, default=1.25)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--limit", type=float, default=0.2, help="of the gate")
    parser.add_argument("--directory", type=Path, default=Path.cwd(), help="file system to use")
    parser.add_argument("--keep", type=Path, help="where to keep the results")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="starts-", dir=given.directory) as made:
        place = Path(made)
        experiment = place / "starts.yaml"
        experiment.write_text(EXPERIMENT.format(repetitions=given.repetitions))
        slow = plant(place, given.factor) if given.planted else {}
        equal, planted = [], []
        for number in range(max(given.runs, given.planted)):
            if number < given.runs:
                equal.append(run(place, f"equal{number}", experiment, given.ranks, {}))
            if number < given.planted:
                planted.append(run(place, f"planted{number}", experiment, given.ranks, slow))
        print(f"load averages at the end: {load()}")
        if given.keep:
            shutil.copytree(place, given.keep, ignore=shutil.ignore_patterns("*.so"))
        variation(equal)
        pairs(equal, given.limit)
        splits(equal, [], 20, "equal")
        if planted:
            splits(equal, planted, 10, f"writes {given.factor} times as long")


if __name__ == "__main__":
    main()
