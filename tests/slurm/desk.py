"""Where a user of the cluster sits: experiments are written, jobs submitted, results looked at."""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from pathlib import Path

from launch import check_results, environment, lines_of
from pffbench.record.repetitions import FILE

ROOT = Path(__file__).resolve().parents[2]
JOBS = ROOT / "jobs"

TINY = """
name: {name}
repetitions: {repetitions}
warmup: 0
roofline: false
common: {{workload: hyperslab, shape_per_rank: [4, 32, 32]}}
cases:
  - backend: [hdf5, npy]
"""

# Python runs this at its start: every file that it opens below the scratch directory is noted,
# with the node and with what it is opened for.
WATCH = """
import os, socket, sys
log = os.open(os.environ["WATCH"] + "/" + os.environ["SLURM_PROCID"], os.O_CREAT | os.O_WRONLY)
def note(event, arguments):
    if event == "open" and str(arguments[0]).startswith(os.environ["WATCHED"]):
        reads = arguments[2] & os.O_ACCMODE == os.O_RDONLY
        os.write(log, f"{socket.gethostname()} {'rw'[not reads]} {arguments[0]}\\n".encode())
sys.addaudithook(note)
"""


class Desk:
    """Where a user sits: experiments are written, jobs are submitted and their logs read."""

    def __init__(self, slurm, directory):
        self.slurm, self.directory = slurm, directory

    def experiment(self, name="tiny", repetitions=1):
        path = self.directory / f"{name}.yaml"
        path.write_text(TINY.format(name=name, repetitions=repetitions))
        return path.name

    def sbatch(self, *words, **variables):
        """Submit a job, whose ranks sleep while they wait."""
        asleep = {"LD_PRELOAD": environment()["LD_PRELOAD"]}
        return self.slurm.submit(*words, cwd=self.directory, **asleep | variables)

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
        for path in files:
            check_results(path.parent)
        return {path.parent.name: json.loads(path.read_text()) for path in files}

    def wait_for_repetitions(self, run, at_least=1, last="remove"):
        path = self.directory / run
        end = time.monotonic() + 240
        while not ((path / FILE).exists() and len(repetitions(path, last)) >= at_least):
            assert time.monotonic() < end, "no repetition within four minutes"
            time.sleep(0.1)


def watching(directory, scratch):
    """Return the variables under which ranks note what they open below the scratch directory."""
    (hook := directory / "watch").mkdir()
    (seen := directory / "seen").mkdir()
    (hook / "sitecustomize.py").write_text(WATCH)
    paths = f"{hook}{os.pathsep}{environment()['PYTHONPATH']}"
    return {"PYTHONPATH": paths, "WATCH": str(seen), "WATCHED": str(scratch)}


def read_elsewhere(directory):
    """Files that were written and read: on which nodes they were read, none of which wrote them."""
    opened = defaultdict(lambda: defaultdict(set))
    for line in "".join(log.read_text() for log in (directory / "seen").iterdir()).splitlines():
        node, how, path = line.split()
        opened[path][how].add(node)
    moved = {path: how for path, how in opened.items() if how["r"] and how["w"]}
    for path, how in moved.items():
        assert not how["r"] & how["w"], path
    return {path: how["r"] for path, how in moved.items()}


def repetitions(run, last="remove"):
    """Case and round of every repetition that has its last phase, as often as they are there."""
    return [
        (one["case"], one["round"])
        for one in lines_of(run)
        if any(times["phase"] == last for times in one["phases"])
    ]


def verdicts(records):
    """How runs stand, by the names of their directories."""
    return {name: (record["status"], record["valid"]) for name, record in records.items()}
