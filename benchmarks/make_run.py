"""Make a results directory of any size, with plausible numbers, to time the analysis on.

    python benchmarks/make_run.py DIRECTORY [--cases 24] [--repetitions 3788] [--ranks 16]

The defaults give a million rows in `samples.csv`. Nothing is measured: the numbers are drawn.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from pffbench.record.run_json import RunRecord
from pffbench.record.samples import COLUMNS

PHASES = (
    "create", "define", "write", "flush", "close", "sync",
    "open", "open_array", "read", "close_read", "remove",
)  # fmt: skip
BACKENDS = ("hdf5", "netcdf4", "zarr", "mpiio")
LAYOUTS = ("shared", "own")
BYTES = 64 * 2**20


def main() -> None:
    """Read the command line and write the directory."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--cases", type=int, default=24)
    parser.add_argument("--repetitions", type=int, default=3788)
    parser.add_argument("--ranks", type=int, default=16)
    given = parser.parse_args()
    given.directory.mkdir(parents=True)
    make(given.directory, given.cases, given.repetitions, given.ranks)


def make(directory: Path, cases: int, repetitions: int, ranks: int) -> None:
    """Write `run.json`, `samples.csv` and `ranks.h5`."""
    entries = dict(entry(number) for number in range(cases))
    hosts = [f"node{rank * 4 // ranks:02d}" for rank in range(ranks)]
    record(entries, hosts).save(directory)
    draw = np.random.default_rng(0)
    with (
        (directory / "samples.csv").open("w", newline="", encoding="utf-8") as file,
        h5py.File(directory / "ranks.h5", "w") as times,
    ):
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(COLUMNS)
        times["host"] = hosts
        for number, (name, facts) in enumerate(entries.items()):
            middle = 1e-3 * (1 + number % 7) * (1 + np.arange(len(PHASES)))[:, np.newaxis]
            noise = draw.lognormal(0, 0.1, (repetitions, len(PHASES), ranks))
            own = middle * noise
            rows.writerows(samples(name, facts, own, hosts))
            put(times.create_group(name), own)


def entry(number: int) -> tuple[str, dict[str, Any]]:
    """Return the name of a case and what `run.json` says of it."""
    backend = BACKENDS[number % len(BACKENDS)]
    variety = number // len(BACKENDS)
    chunk, layout = variety // len(LAYOUTS), LAYOUTS[variety % len(LAYOUTS)]
    parameters = {
        "workload": "hyperslab", "backend": backend, "layout": layout,
        "transfer": ("independent", "collective")[chunk % 2], "settings": "matched",
        "dtype": "float32", "source": "uniform", "codec": "none", "durability": "sync",
        "cache": "warm", "chunks": [8 * (1 + chunk // 2), 64, 64],
        "arrays": 1 + number // 48,
    }  # fmt: skip
    facts = {
        "parameters": parameters,
        "options": {},
        "group": f"hyperslab.{layout}.{parameters['arrays']}",
        "raw": backend == "mpiio",
        "verified": True,
        "cost": {"nbytes": BYTES},
    }
    return f"{backend}.hyperslab.{layout}.{number:05d}", facts


def record(entries: dict[str, dict[str, Any]], hosts: list[str]) -> RunRecord:
    """Return the record of the run."""
    nodes = sorted(set(hosts))
    return RunRecord(
        run_id="drawn-20260101-120000-1",
        name="drawn",
        question="How long does the analysis take?",
        command=["benchmarks/make_run.py"],
        ranks=len(hosts),
        started="2026-01-01T12:00:00+00:00",
        experiment={"name": "drawn", "warmup": 1},
        experiment_file="",
        cases=entries,
        left_out=[],
        scratch="",
        topology={
            "hosts": hosts,
            "nodes": [nodes.index(host) for host in hosts],
            "ranks_per_node": [hosts.count(node) for node in nodes],
        },
        floor={"barrier": 1e-6, "tick": 5e-8, "memory_copy_bytes_per_second": 1e10},
        startup={},
        provenance={},
        status="finished",
        valid=True,
    )


def samples(name: str, facts: dict[str, Any], own: np.ndarray, hosts: list[str]) -> Any:  # type: ignore[type-arg]
    """Yield the rows of a case."""
    p = facts["parameters"]
    slowest = own.argmax(axis=2)
    least, middle, most = own.min(axis=2), np.median(own, axis=2), own.max(axis=2)
    for repetition in range(own.shape[0]):
        for i, phase in enumerate(PHASES):
            moved = BYTES if phase in ("write", "read") else 0
            read, closed = phase == "read", phase == "close"
            last = float(most[repetition, i])
            yield (
                name, repetition, "true" if repetition == 0 else "false", 0, phase, p["backend"],
                p["workload"], p["layout"], p["transfer"], p["settings"], facts["group"],
                len(hosts), len(set(hosts)), 4, 4, moved, last, float(middle[repetition, i]),
                float(least[repetition, i]), last * 1.01, int(slowest[repetition, i]),
                hosts[slowest[repetition, i]], "false", "warm" if read else "",
                "1.0" if read else "", moved if read else "", 2**28,
                BYTES if closed else "", 1 if closed else "", "true",
                "2026-01-01T12:00:00.000+00:00",
            )  # fmt: skip


def put(group: h5py.Group, own: np.ndarray) -> None:  # type: ignore[type-arg]
    """Write the times of all ranks of a case."""
    repetitions, _, ranks = own.shape
    group.attrs["phases"] = list(PHASES)
    group["own"] = own
    group["synced"] = own * 1.01
    group["bytes"] = np.full(own.shape, BYTES // ranks)
    group["peak_memory"] = np.full((repetitions, ranks), 2**28)
    group["repetition"] = np.arange(repetitions)


if __name__ == "__main__":
    main()
