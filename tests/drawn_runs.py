"""Results directories with made-up numbers, written by the classes that write real ones."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np

from pffbench.phases import READ_PHASES
from pffbench.record.ranks import RanksFile
from pffbench.record.run_json import RunRecord
from pffbench.record.samples import Sample, SamplesLog

PHASES = (
    "create", "define", "write", "flush", "close", "sync",
    "open", "open_array", "read", "close_read", "remove",
)  # fmt: skip
BYTES = 8 * 2**20
RANKS = 2
FLOOR = {"own": 1e-7, "synced": 2e-7, "tick": 1e-8, "memory_copy_bytes_per_second": 1e9}
#: An experiment of which runs look at their results, as `run.json` keeps it.
AUTO = {"repetitions": "auto", "max_repetitions": 40, "margin": 0.1}


def a_case(backend, transfer="independent", workload="hyperslab", layout="shared", **more):
    """Return a name and its entry in run.json."""
    parameters = {
        "workload": workload, "backend": backend, "layout": layout, "transfer": transfer,
        "settings": "matched", "dtype": "float32", "source": "uniform", "codec": "none",
        "durability": "sync", "cache": "warm", **more,
    }  # fmt: skip
    group = f"{workload}.{layout}.{more.get('cache', 'warm')}"
    told = "-".join(str(v) for v in more.values())
    entry = {
        "parameters": parameters,
        "options": {},
        "group": group,
        "raw": backend in ("mpiio", "posix", "null"),
        "verified": backend != "null",
    }
    return f"{backend}.{workload}.{layout}.{transfer}.{told}", entry


#: Runs that were written in this process, by what they were asked to be: tests get copies.
_WRITTEN = {}


def a_run(directory, cases, repetitions=4, speed=None, **record):
    """Write a results directory through the classes that write real ones."""
    asked = repr((dict(cases), repetitions, speed, record))
    if asked not in _WRITTEN:
        _WRITTEN[asked] = tempfile.TemporaryDirectory(prefix="pffbench-drawn-")
        _write(Path(_WRITTEN[asked].name), dict(cases), repetitions, speed, record)
    shutil.copytree(_WRITTEN[asked].name, directory, dirs_exist_ok=True)
    return directory


def _write(directory, entries, repetitions, speed, record):
    given = {
        "run_id": "some-20260101-120000-1", "name": "some", "question": "", "command": ["pffbench"],
        "ranks": RANKS, "started": "2026-01-01T12:00:00+00:00", "experiment": {},
        "experiment_file": "some.yaml", "cases": entries, "left_out": [], "scratch": "",
        "topology": {"hosts": ["a", "b"], "nodes": [0, 1], "ranks_per_node": [1, 1]},
        "floor": FLOOR,
        "startup": {}, "provenance": {},
        "status": "finished", "valid": True,
    }  # fmt: skip
    RunRecord(**(given | record)).save(directory)
    log = SamplesLog(str(directory / "samples.csv"))
    ranks = RanksFile(str(directory / "ranks.h5"), ["a", "b"])
    for number, (name, entry) in enumerate(entries.items(), start=1):
        for repetition in range(repetitions + 1):
            seconds = [
                (speed or {}).get(name, 1e-3 * number)
                * (i + 1)
                * (1 + 0.1 * ((repetition * 3) % 5))
                for i in range(len(PHASES))
            ]
            rows = zip(PHASES, seconds, strict=True)
            log.append([a_sample(name, entry, repetition, p, s) for p, s in rows])
            append_ranks(ranks, name, repetition, seconds)


def timed_run(directory, seconds, cases, **record):
    """Write a run of cases that take these seconds to write and to read, in each repetition.

    Parameters
    ----------
    seconds : dict of str to (sequence of float, sequence of float)
        For each case the seconds to write and to read, repetition by repetition; no seconds to
        read where it does not read.
    """
    a_run(directory, cases, repetitions=0, **record)
    (directory / "samples.csv").unlink()
    rows = []
    for name, entry in dict(cases).items():
        write, read = seconds[name]
        for number, value in enumerate(write, start=1):
            took = {"write": float(value)} | (
                {"read": float(read[number - 1])} if len(read) else {}
            )
            phases = PHASES if len(read) else [p for p in PHASES if p not in READ_PHASES]
            rows += [a_sample(name, entry, number, p, took.get(p, 1e-9)) for p in phases]
    SamplesLog(str(directory / "samples.csv")).append(rows)
    return directory


def a_sample(name, entry, repetition, phase, seconds):
    p = entry["parameters"]
    moves = phase in ("write", "read")
    nbytes = entry.get("cost", {}).get("nbytes", BYTES)
    return Sample(
        case=name, repetition=repetition, warmup=repetition == 0, position=0, phase=phase,
        backend=p["backend"], workload=p["workload"], layout=p["layout"], transfer=p["transfer"],
        settings=p["settings"], group=entry["group"], ranks=RANKS, nodes=2, operations=1,
        arrays=p.get("datasets") or 4,
        bytes=nbytes if moves else 0, own_max=seconds, own_median=seconds, own_min=seconds / 2,
        synced_max=seconds * 1.01, slowest_rank=0, slowest_host="a", below_resolution=False,
        cache=p["cache"] if phase == "read" else "", resident=1.0 if phase == "read" else None,
        verified_bytes=nbytes if phase == "read" else None,
        peak_memory=2**20, disk_bytes=nbytes if phase == "close" else None,
        disk_files=1 if phase == "close" else None, valid=True,
        started="2026-01-01T12:00:00.000+00:00", seconds=seconds,
        cpu_seconds=0.75 * RANKS * seconds, environment=p.get("environment", ""),
    )  # fmt: skip


def append_ranks(ranks, name, repetition, seconds):
    own = np.array([[s, s / 2] for s in seconds])
    nbytes = np.full(own.shape, 7, dtype=np.int64)
    memory = np.array([10, 20], dtype=np.int64)
    ranks.append(name, repetition, PHASES, own, own * 1.01, nbytes, memory)


USUAL = (
    a_case("hdf5"),
    a_case("hdf5", "collective"),
    a_case("zarr"),
    a_case("mpiio"),
)
