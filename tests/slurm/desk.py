"""Where a user of the cluster sits: experiments are written, jobs submitted, results looked at."""

from __future__ import annotations

import csv
import json
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
JOBS = ROOT / "jobs"

TINY = """
name: {name}
repetitions: {repetitions}
warmup: 0
roofline: false
common: {{workload: hyperslab, shape_per_rank: [4, 32, 32]}}
cases:
  - backend: [hdf5, zarr]
"""


class Desk:
    """Where a user sits: experiments are written, jobs are submitted and their logs read."""

    def __init__(self, slurm, directory):
        self.slurm, self.directory = slurm, directory
        self.environment = {"PFFBENCH_HOME": str(ROOT), "PFFBENCH_PYTHON": sys.executable}

    def experiment(self, name="tiny", repetitions=1):
        path = self.directory / f"{name}.yaml"
        path.write_text(TINY.format(name=name, repetitions=repetitions))
        return path.name

    def sbatch(self, *words, **variables):
        return self.slurm.submit(*words, cwd=self.directory, **self.environment, **variables)

    def submit(self, *words, **variables):
        """Run jobs/submit and return the numbers of the jobs."""
        told = self.slurm.run(
            JOBS / "submit", "--out", self.directory / "out", *words,
            cwd=self.directory, **self.environment, **variables,
        ).stdout  # fmt: skip
        return [line.split()[3].rstrip(":") for line in told.splitlines() if "] job " in line]

    def log(self, job):
        (path,) = self.directory.rglob(f"*-{job}.out")
        return path.read_text()

    def complete(self, job, timeout=300):
        facts = self.slurm.wait(job, timeout=timeout)
        assert facts["JobState"] == "COMPLETED", self.log(job)
        return facts

    def records(self, below):
        """The records of all runs in a directory, by the name of the run's directory."""
        files = sorted((self.directory / below).glob("*/run.json"))
        return {path.parent.name: json.loads(path.read_text()) for path in files}

    def wait_for_repetitions(self, run, at_least=1, last="remove"):
        path = self.directory / run / "samples.csv"
        end = time.monotonic() + 240
        while not (path.exists() and len(repetitions(path, last)) >= at_least):
            assert time.monotonic() < end, "no repetition within four minutes"
            time.sleep(0.1)


def repetitions(samples, last="remove"):
    """Case and number of every repetition that has its last phase, as often as they are there."""
    with samples.open() as lines:
        rows = [row for row in csv.DictReader(lines) if row["phase"] == last]
    return [(row["case"], row["repetition"]) for row in rows]


def verdicts(records):
    """How runs stand, by the names of their directories."""
    return {name: (record["status"], record["valid"]) for name, record in records.items()}
