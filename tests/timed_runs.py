"""Pairs of runs whose truth is known, for `pffbench compare`: as directories, and in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pffbench.record.run import MeasuredRun
from pffbench.record.run_json import RunRecord
from pffbench.record.samples import Sample, SamplesLog

PHASES = {"create": 0.01, "write": 0.2, "close": 0.05, "open": 0.01, "read": 0.1, "remove": 0.02}
BYTES = 8 * 2**20
RAW = ("posix", "mpiio", "null")


def a_case(backend, codec="none", **more):
    """Return a name and its entry in run.json."""
    parameters = {
        "workload": "hyperslab", "backend": backend, "layout": "shared", "transfer": "independent",
        "settings": "matched", "codec": codec, "durability": "close", "cache": "warm",
    } | more  # fmt: skip
    digest = "-".join(str(value) for value in (codec, *more.values()))
    entry = {
        "parameters": parameters, "options": {}, "group": "hyperslab.shared.0",
        "raw": backend in RAW, "verified": backend != "null", "cost": {"nbytes": BYTES},
    }  # fmt: skip
    return f"{backend}.hyperslab.shared.independent.matched.{digest}", entry


CASES = dict([a_case("hdf5"), a_case("hdf5", "gzip"), a_case("zarr"), a_case("posix")])
FORMATS = {name: entry for name, entry in CASES.items() if not entry["raw"]}


def a_record(cases, ranks=4, nodes=1, number=1, **record):
    """Return what `run.json` says of a finished run."""
    given = {
        "run_id": f"some-{number}", "name": "some", "question": "", "command": [], "ranks": ranks,
        "started": "2026-01-01T12:00:00+00:00", "experiment": {}, "experiment_file": "some.yaml",
        "cases": dict(cases), "left_out": [], "scratch": "", "startup": {}, "provenance": {},
        "topology": {"nodes": list(range(nodes))}, "status": "finished", "valid": True,
        "floor": {"own": 1e-6, "synced": 1e-6, "tick": 1e-8},
    }  # fmt: skip
    return RunRecord(**(given | record))


class Maker:
    """Writes results directories through the classes that write real ones."""

    def __init__(self, directory):
        self.directory = directory
        self.number = 0

    def __call__(
        self, *, seed=0, factor=1.0, noise=0.02, repetitions=10, cases=CASES, ranks=4, nodes=1,
        nbytes=BYTES, cache="warm", **record,
    ):  # fmt: skip
        """Make a run; `factor` is a number, or a function of case and phase."""
        self.number += 1
        directory = self.directory / f"run{self.number}"
        directory.mkdir()
        a_record(cases, ranks, nodes, self.number, **record).save(directory)
        generator = np.random.default_rng(seed)
        rows = []
        for repetition in range(repetitions + 1):
            for name, entry in cases.items():
                for phase, usual in PHASES.items():
                    told = factor(name, phase) if callable(factor) else factor
                    seconds = usual * told * float(np.exp(noise * generator.normal()))
                    rows.append(
                        a_sample(
                            name, entry, repetition, phase, seconds, ranks, nodes, nbytes, cache
                        )
                    )
        SamplesLog(str(directory / "samples.csv")).append(rows)
        return directory


def a_sample(name, entry, repetition, phase, seconds, ranks, nodes, nbytes, cache):
    """Return a row of samples.csv."""
    p = entry["parameters"]
    return Sample(
        case=name, repetition=repetition, warmup=repetition == 0, position=0, phase=phase,
        backend=p["backend"], workload=p["workload"], layout=p["layout"], transfer=p["transfer"],
        settings=p["settings"], group=entry["group"], ranks=ranks, nodes=nodes, arrays=4,
        operations=1, bytes=nbytes if phase in ("write", "read") else 0, own_max=seconds,
        own_median=seconds, own_min=seconds, synced_max=seconds, slowest_rank=0, slowest_host="a",
        below_resolution=False, cache=cache if phase == "read" else "",
        resident=1.0 if phase == "read" else None, verified_bytes=None, peak_memory=1,
        disk_bytes=None, disk_files=None, valid=True, started="2026-01-01T12:00:00.000+00:00",
        seconds=seconds,
    )  # fmt: skip


def in_memory(times, cases=CASES):
    """Return a run of a phase of writing and one of reading, without any file.

    Parameters
    ----------
    times : array of float64, shape (2 * cases, repetitions)
        Seconds: for each case those to write, then those to read.
    """
    rows = [(case, phase) for case in cases for phase in ("write", "read")]
    samples = [
        a_sample(case, cases[case], number, phase, float(seconds), 4, 1, BYTES, "warm")
        for (case, phase), row in zip(rows, times, strict=True)
        for number, seconds in enumerate(row, start=1)
    ]
    return MeasuredRun(Path("some"), a_record(cases), tuple(samples))
