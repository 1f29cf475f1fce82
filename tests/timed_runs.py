"""Pairs of runs whose truth is known, for `pffbench compare`: as directories, and in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import drawn_runs
from drawn_runs import a_repetition
from pffbench.record.repetitions import RepetitionsLog
from pffbench.record.run import MeasuredRun
from pffbench.record.run_json import FloorEntry, TopologyEntry

PHASES = {"create": 0.01, "write": 0.2, "close": 0.05, "open": 0.01, "read": 0.1, "remove": 0.02}


def a_case(backend, codec="none", **more):
    """Return a name and its entry in `run.json`."""
    return drawn_runs.a_case(backend, codec=codec, durability="close", **more)


CASES = dict([a_case("hdf5"), a_case("hdf5", "gzip"), a_case("zarr"), a_case("posix")])
FORMATS = {name: entry for name, entry in CASES.items() if not entry.raw}


def a_record(cases, ranks=4, nodes=1, number=1, **record):
    """Return what `run.json` says of a finished run."""
    given = {
        "run_id": f"some-{number}",
        "ranks": ranks,
        "topology": TopologyEntry(["a"] * ranks, [r % nodes for r in range(ranks)], [ranks]),
        "floor": FloorEntry(1e-6, 1e-6, 1e-8),
    }
    return drawn_runs.a_record(cases, **(given | record))


class Maker:
    """Writes results directories through the classes that write real ones."""

    def __init__(self, directory):
        self.directory = directory
        self.number = 0

    def __call__(
        self, *, seed=0, factor=1.0, noise=0.02, repetitions=10, cases=CASES, ranks=4, nodes=1,
        start=0.0, **record,
    ):  # fmt: skip
        """Make a run.

        Parameters
        ----------
        factor : float or callable
            What times are multiplied with, or a function of case and phase.
        noise, start : float
            Standard deviation of the logarithm of a time, and of a case in the whole run.
        """
        self.number += 1
        directory = self.directory / f"run{self.number}"
        directory.mkdir()
        a_record(cases, ranks, nodes, self.number, **record).save(directory)
        generator = np.random.default_rng(seed)
        own = {name: start * generator.normal() for name in cases}
        log = RepetitionsLog(directory)
        for number in range(repetitions + 1):
            for name, entry in cases.items():
                took = {
                    phase: usual
                    * (factor(name, phase) if callable(factor) else factor)
                    * float(np.exp(own[name] + noise * generator.normal()))
                    for phase, usual in PHASES.items()
                }
                log.append(a_repetition(name, entry, number, took))
        return directory


def in_memory(times, cases=CASES):
    """Return a run of a phase of writing and one of reading, without any file.

    Parameters
    ----------
    times : array of float64, shape (2 * cases, repetitions)
        Seconds: for each case those to write, then those to read.
    """
    repetitions = [
        a_repetition(name, entry, number + 1, {"write": write, "read": read})
        for place, (name, entry) in enumerate(cases.items())
        for number, (write, read) in enumerate(
            zip(times[2 * place].tolist(), times[2 * place + 1].tolist(), strict=True)
        )
    ]
    return MeasuredRun(Path("some"), a_record(cases), tuple(repetitions))
