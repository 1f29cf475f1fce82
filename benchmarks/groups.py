"""The ends of files of groups: one group against one file, a group a rank against a file a rank.

    python benchmarks/groups.py [--repetitions 20] [--ranks 2 4] [--place /tmp]

Each pair is the same work in two layouts, in turns in one run: `file_per_group` with ``count: 1``
against `shared` and `own`, with as many groups as ranks against `file_per_process`. The judge of
the program decides on all pairs of a run as one family. The exit status is 1 if it tells one apart.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jobs import machine, python, run_ranks

from pffbench.summary.crossing import WaysAtSize, compare_ways
from pffbench.summary.headline import Design
from pffbench.summary.summary import CaseSummary, Summary, summarise

BACKENDS = ["hdf5", "netcdf4", "zarr", "posix"]
#: Backend, transfer, layout that a group has at this end, and phase or total.
Pair = tuple[str, str, str, str]


def experiment(ranks: int, repetitions: int) -> dict[str, Any]:
    """Return the experiment with both of each pair."""
    one = {"layout": "file_per_group", "group": {"count": 1}, "within": ["shared", "own"]}
    each = {"layout": "file_per_group", "group": {"count": ranks}}
    layouts = [{"layout": ["shared", "own", "file_per_process"]}, one, each]
    cases = [{"backend": BACKENDS, **layout} for layout in layouts]
    together = {"backend": BACKENDS[:2], "transfer": "collective"}
    cases += [together | {"layout": "shared"}, together | one | {"within": "shared"}]
    return {
        "name": "groups",
        "repetitions": repetitions,
        "roofline": False,
        "common": {"workload": "hyperslab", "shape_per_rank": [16, 512, 512]},
        "cases": cases,
    }


def pairs(summary: Summary, ranks: int) -> Iterator[WaysAtSize[Pair]]:
    """Yield the times of both of each pair, in writing and reading."""
    found: dict[tuple[str, str, str], dict[str, CaseSummary]] = {}
    for case in summary.cases:
        p = case.parameters
        layout = p["layout"]
        if layout == "file_per_group":
            layout = p["within"] if p["group"]["count"] == 1 else "file_per_process"
            layout = layout if ranks > 1 else "file_per_process"
        end = (p["backend"], p["transfer"], layout)
        found.setdefault(end, {})[p["layout"]] = case
    for end, both in found.items():
        for total in ("write_total", "read_total") if len(both) > 1 else ():
            times = {layout: case.phases[total].by_block for layout, case in both.items()}
            yield WaysAtSize((*end, total), end[0], ranks, times)


def told_apart(directory: Path, ranks: int, repetitions: int) -> int:
    """Run the pairs and print what the judge says; return how many it tells apart."""
    file, out = directory / f"groups-{ranks}.yaml", directory / f"groups-{ranks}"
    file.write_text(json.dumps(experiment(ranks, repetitions)))
    files = ("--scratch", str(directory), "--out", str(out), "--quiet")
    run_ranks(ranks, python("-m", "pffbench", "run", str(file), *files))
    summary = summarise(out)
    design = Design.of_experiment(summary.record.experiment)
    apart = 0
    for end, (field,) in compare_ways(list(pairs(summary, ranks)), design).items():
        ((_, decision), *_) = (d for d in field.decisions.items() if d[0][0] == "file_per_group")
        differs = decision.shorter or decision.inverse.shorter
        apart += differs
        said = "TOLD APART" if differs else "equal" if decision.equivalent else "not decided"
        r = decision.ratio
        print(f"{ranks} ranks, {' '.join(end):48} {r.value:.3f} ({r.low:.3f}-{r.high:.3f}) {said}")
    return apart


def main() -> int:
    """Run the script; return its exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--place", type=Path, help="default: the directory for temporary files")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pffbench-groups-", dir=given.place) as made:
        apart = sum(told_apart(Path(made), ranks, given.repetitions) for ranks in given.ranks)
    print(", ".join(f"{name} {value}" for name, value in machine().items()))
    return int(apart > 0)


if __name__ == "__main__":
    sys.exit(main())
