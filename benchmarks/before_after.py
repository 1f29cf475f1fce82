"""Compare what two trees of the program leave of the same experiments, but for times.

    python benchmarks/before_after.py OLD NEW

For a change that must not change what a user gets: names of cases, keys of `run.json` and
`results.json`, columns of all tables, datasets of `ranks.h5`, exit statuses and derived files, with
1 and 3 ranks. Each difference is printed; there is no other judgement.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

_BLOCK = {"workload": "hyperslab", "shape_per_rank": [4, 8, 8], "durability": "sync"}
#: A small experiment for each workload, with all backends that have it, and what goes wrong.
EXPERIMENTS: Mapping[str, Mapping[str, Any]] = {
    "layouts": {
        "common": _BLOCK,
        "cases": [
            {
                "backend": ["hdf5", "netcdf4", "zarr", "tensorstore", "npy", "mpiio", "posix"],
                "layout": ["shared", "own", "file_per_process"],
                "transfer": ["independent", "collective"],
            }
        ],
    },
    "counters": {
        "counters": True,
        "common": _BLOCK,
        "cases": [{"backend": ["hdf5", "zarr"], "settings": ["matched", "defaults"]}],
    },
    "datasets": {
        "common": {"workload": "datasets", "shape": [4, 4], "datasets_per_rank": 3},
        "cases": [{"backend": ["hdf5", "netcdf4", "zarr"], "layout": "own", "attributes": [0, 2]}],
    },
    "slices": {
        "common": {"workload": "slices", "shape": [8, 8, 8], "axis": 0, "count": 2},
        "cases": [{"backend": ["hdf5", "netcdf4", "zarr", "memmap"], "chunks": [[4, 4, 4]]}],
    },
    "codecs": {
        "common": {"workload": "codecs", "shape": [16, 16], "chunks": [4, 4]},
        "cases": [{"backend": ["hdf5", "netcdf4", "zarr"], "codec": ["none", "gzip"]}],
    },
    "chunk_cache": {
        "common": {"workload": "chunk_cache", "shape": [4, 8], "granules": 2, "layout": "own"},
        "cases": [{"backend": ["hdf5", "netcdf4", "zarr"]}],
    },
    "updates": {
        "common": {"workload": "updates", "shape": [7, 10, 3], "rows": 2, "chunks": [2, 1, 3]},
        "cases": [{"backend": ["hdf5", "netcdf4", "zarr"], "change": ["second_half", "append"]}],
    },
    "startup": {
        "common": {"workload": "startup", "shape": [8, 8], "datasets": 3},
        "cases": [{"backend": ["hdf5", "netcdf4", "zarr"]}],
    },
    "versions": {
        "roofline": False,
        "common": {
            "workload": "versions", "kind": "mostly_appends_dense", "versions": 3,
            "chunks": [64], "dtype": "float64", "layout": "file_per_process",
        },
        "cases": [{"backend": ["hdf5", "zarr"], "keep": ["last", "copies", "chunks"]}],
    },
    "failing": {
        "common": _BLOCK,
        "cases": [{"backend": "hdf5"}, {"backend": "null", "null": {"fail": "write"}}],
    },
    "wrong": {"common": _BLOCK, "cases": [{"backend": "hdf5", "chunk": "yes"}]},
    "environments": {
        "environments": [
            {"name": "one", "python": sys.executable}, {"name": "two", "python": sys.executable}
        ],
        "repetitions": 2,
        "common": _BLOCK,
        "cases": [{"backend": ["hdf5", "zarr"]}],
    },
}  # fmt: skip


def facts(tree: Path, name: str, ranks: int, place: Path) -> dict[str, list[str]]:
    """Run an experiment in a tree; return what is there at its end, by kind."""
    place.mkdir(parents=True)
    content = {"name": name, "repetitions": 1, "warmup": 0, "impossible": "skip"}
    file, out = place / "experiment.yaml", place / "run"
    file.write_text(yaml.safe_dump(content | dict(EXPERIMENTS[name])))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([f"{tree}/src", f"{tree}/analysis"])}
    python = [sys.executable, "-m", "pffbench"]
    told = [*python, "run", str(file), "--out", str(out), "--scratch", str(place / "scratch")]
    launcher = [] if name == "environments" else [_mpiexec(), "-n", str(ranks), "--oversubscribe"]
    (place / "scratch").mkdir()
    done = subprocess.run([*launcher, *told], env=env, capture_output=True, text=True, check=False)
    found = {"exit status": [str(done.returncode)]}
    if done.returncode == 2:
        return found | {"error": done.stderr.replace(str(place), "").splitlines()[-1:]}
    if (out / "run.json").exists():
        subprocess.run([*python, "report", str(out)], env=env, capture_output=True, check=True)
        found |= dict(_left_in(out))
    return found


def _left_in(out: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield what a results directory holds: cases, keys, columns, datasets, files."""
    record = json.loads((out / "run.json").read_text())
    yield "cases", sorted(record["cases"])
    for name in ("run.json", "results.json"):
        cases = {*record["cases"]}
        data = json.loads((out / name).read_text())
        yield f"keys of {name}", sorted(set(_keys(data, cases)))
    for table in sorted(out.rglob("*.csv")):
        with table.open(newline="") as rows:
            yield f"columns of {table.relative_to(out)}", next(csv.reader(rows), [])
    if (out / "ranks.h5").exists():
        import h5py

        with h5py.File(out / "ranks.h5") as ranks:
            names: list[str] = []
            ranks.visit(names.append)
        yield "datasets of ranks.h5", sorted(names)
    yield "files", sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())


def _keys(data: Any, names: set[str], path: str = "") -> Iterator[str]:
    """Yield the paths of all keys; a case's name, a list's index and a variable are left out."""
    if isinstance(data, dict):
        for key, value in data.items():
            known = path.endswith("environment") or key in names
            yield from _keys(value, names, f"{path}.{'*' if known else key}")
    elif isinstance(data, list):
        for value in data:
            yield from _keys(value, names, path)
    yield path


def _mpiexec() -> str:
    return os.environ.get("PFFBENCH_MPIEXEC", "mpiexec")


def differences(old: Mapping[str, list[str]], new: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield a line for each fact that only one of two trees has."""
    for kind in dict.fromkeys([*old, *new]):
        before, after = old.get(kind, []), new.get(kind, [])
        gone = [text for text in before if text not in after]
        added = [text for text in after if text not in before]
        if gone or added:
            yield f"{kind}: gone {gone}, added {added}"
        elif before != after:
            yield f"{kind}: other order"


def main() -> None:
    """Run all experiments in both trees and print the differences."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("old", type=Path, help="root of a tree")
    parser.add_argument("new", type=Path, help="root of the other")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 3])
    parser.add_argument("--only", choices=EXPERIMENTS, nargs="+", default=list(EXPERIMENTS))
    args = parser.parse_args()
    for tree in (args.old, args.new):
        if not (tree / "src" / "pffbench").is_dir():  # else what is installed would be compared
            parser.error(f"{tree} has no src/pffbench")
    with tempfile.TemporaryDirectory(prefix="before-after-") as made:
        for name in args.only:
            for ranks in args.ranks:
                trees = (("old", args.old), ("new", args.new))
                found = {
                    word: facts(tree.resolve(), name, ranks, Path(made, word, f"{name}-{ranks}"))
                    for word, tree in trees
                }
                lines = list(differences(found["old"], found["new"]))
                cases = len(found["new"].get("cases", []))
                print(f"{name}, {ranks} ranks, {cases} cases: {'same' if not lines else ''}")
                for line in lines:
                    print(f"    {line}", flush=True)


if __name__ == "__main__":
    main()
