"""Results directories with made-up numbers, written by the classes that write real ones."""

from __future__ import annotations

import json
import shutil
import tempfile
from functools import cache
from pathlib import Path

import h5py
import numpy as np
from msgspec.structs import replace

from pffbench.case import files_word
from pffbench.experiment.plan import Cost
from pffbench.phases import READ_PHASES, TOTALS
from pffbench.record.ranks import RanksFile
from pffbench.record.repetitions import (
    FILE,
    PhaseTimes,
    ReadState,
    Repetition,
    RepetitionsLog,
    read_repetitions,
)
from pffbench.record.run_json import (
    CaseEntry,
    FloorEntry,
    RunRecord,
    Startup,
    TopologyEntry,
    digest_of,
)
from pffbench.storage.durability import DiskUsage

PHASES = (
    "create", "define", "write", "flush", "close", "sync",
    "open", "open_array", "read", "close_read", "remove",
)  # fmt: skip
BYTES = 8 * 2**20
RAW = ("mpiio", "posix", "null")
RANKS = 2
FLOOR = FloorEntry(1e-7, 2e-7, 1e-8, memory_copy_bytes_per_second=1e9)


def a_case(
    backend, transfer="independent", workload="hyperslab", files="one", arrays="shared", **more
):
    """Return a name and its entry in `run.json`."""
    parameters = {
        "workload": workload, "backend": backend, "files": files, "arrays": arrays,
        "transfer": transfer,
        "settings": "matched", "dtype": "float32", "source": "uniform", "codec": "none",
        "durability": "sync", "cache": "warm", **more,
    }  # fmt: skip
    word = files_word(files, arrays)
    group = f"{workload}.{word}.{more.get('cache', 'warm')}"
    told = "-".join(str(v) for v in more.values())
    entry = CaseEntry(
        parameters=parameters,
        group=group,
        cost=Cost(BYTES, more.get("datasets") or 4, 1, BYTES, 0),
        raw=backend in RAW,
        verified=backend != "null",
    )
    return f"{backend}.{workload}.{word}.{transfer}.{told}", entry


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


def a_record(cases, **record):
    """Return what `run.json` says of a finished run."""
    given = {
        "run_id": "some-20260101-120000-1", "name": "some", "question": "", "command": ["pffbench"],
        "ranks": RANKS, "started": "2026-01-01T12:00:00+00:00", "experiment": {},
        "experiment_file": "some.yaml", "cases": dict(cases),
        "left_out": [], "scratch": "", "topology": TopologyEntry(["a", "b"], [0, 1], [1, 1]),
        "floor": FLOOR, "startup": Startup(), "provenance": {}, "status": "finished", "valid": True,
    }  # fmt: skip
    given |= record
    given["experiment_digest"] = digest_of(given["experiment"])
    return RunRecord(**given)


def _write(directory, entries, repetitions, speed, record):
    a_record(entries, **record).save(directory)
    log = RepetitionsLog(directory)
    drawn = {name: [] for name in entries}
    for number, (name, entry) in enumerate(entries.items(), start=1):
        for repetition in range(repetitions + 1):
            seconds = [
                (speed or {}).get(name, 1e-3 * number)
                * (i + 1)
                * (1 + 0.1 * ((repetition * 3) % 5))
                for i in range(len(PHASES))
            ]
            log.append(
                a_repetition(name, entry, repetition, dict(zip(PHASES, seconds, strict=True)))
            )
            drawn[name].append(seconds)
    _put_ranks(directory / "ranks.h5", drawn)


def timed_run(directory, seconds, cases, **record):
    """Write a run of cases that take these seconds to write and to read, in each repetition.

    Parameters
    ----------
    seconds : dict of str to (sequence of float, sequence of float)
        For each case the seconds to write and to read, repetition by repetition; no seconds to
        read where it does not read.
    """
    a_run(directory, cases, repetitions=0, **record)
    repetitions = []
    for name, entry in dict(cases).items():
        write, read = seconds[name]
        for number, value in enumerate(write, start=1):
            took = dict.fromkeys(PHASES, 1e-9) | {"write": float(value)}
            if len(read):
                took["read"] = float(read[number - 1])
            else:
                took = {phase: s for phase, s in took.items() if phase not in READ_PHASES}
            repetitions.append(a_repetition(name, entry, number, took))
    return rewrite(directory, repetitions)


def rewrite(directory, repetitions):
    """Replace the repetitions of a run."""
    (directory / FILE).unlink()
    log = RepetitionsLog(directory)
    for repetition in repetitions:
        log.append(repetition)
    return directory


def edit_record(directory, **keys):
    """Replace values of `run.json`, as another program may."""
    path = directory / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | keys))


def edit(directory, change):
    """Replace each repetition of a run by what a function makes of it."""
    return rewrite(directory, [change(one) for one in read_repetitions(directory)])


def with_phase(repetition, phase, **fields):
    """Return a repetition with other fields of one phase."""
    phases = (replace(t, **fields) if t.phase == phase else t for t in repetition.phases)
    return replace(repetition, phases=tuple(phases))


@cache
def _parts_of(phases):
    """Return the totals of these phases, each with its phases: simulations ask a million times."""
    found = {total: [part for part in parts if part in phases] for total, parts in TOTALS.items()}
    return {total: parts for total, parts in found.items() if parts}


def a_repetition(name, entry, number, took, **more):
    """Return a repetition whose phases took these seconds.

    Parameters
    ----------
    name, entry : str, CaseEntry
        The case.
    number : int
        The round; 0 is a warm-up.
    took : dict of str to float
        Seconds by phase.
    **more
        Fields of the repetition.
    """
    nbytes = entry.cost.nbytes
    phases = tuple(
        PhaseTimes(
            phase, seconds, seconds, seconds, seconds / 2, seconds * 1.01,
            bytes=nbytes if phase in ("write", "read") else 0, operations=1,
            cpu_seconds=0.75 * RANKS * seconds,
        )
        for phase, seconds in took.items()
    )  # fmt: skip
    totals = {
        total: sum(took[part] for part in parts) for total, parts in _parts_of(tuple(took)).items()
    }
    given = {
        "case": name, "round": number, "position": 0, "started": "2026-01-01T12:00:00.000+00:00",
        "phases": phases, "totals": totals, "warmup": number == 0, "peak_memory": 2**20,
        "disk": DiskUsage(nbytes, nbytes, 1),
    }  # fmt: skip
    if "read" in took:
        given["read"] = ReadState(entry.parameters["cache"], 1.0, nbytes)
    return Repetition(**(given | more))


def _put_ranks(path, drawn):
    """Record the times of ranks: the first repetition as a run does, and the rest like it.

    A run opens the file for each repetition, which would take a third of the time of many tests.
    """
    ranks = RanksFile(str(path), ["a", "b"])
    if not drawn:
        return
    times = {
        name: np.array([[[s, s / 2] for s in seconds] for seconds in repetitions])
        for name, repetitions in drawn.items()
    }
    first, *others = times
    own = times[first][0]
    nbytes, memory = np.full(own.shape, 7), np.array([10, 20])
    ranks.append(first, 0, PHASES, own, own * 1.01, nbytes, memory)
    with h5py.File(path, "r+") as file:
        for name in others:
            file.copy(first, file, name)
        for name, own in times.items():
            changed = {"own": own, "synced": own * 1.01, "repetition": np.arange(len(own))}
            for key, dataset in file[name].items():
                dataset.resize(len(own), axis=0)
                dataset[...] = changed.get(key, dataset[0])


USUAL = (
    a_case("hdf5"),
    a_case("hdf5", "collective"),
    a_case("zarr"),
    a_case("mpiio"),
)
