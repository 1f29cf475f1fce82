"""A run goes on when nobody takes what it prints: its results are in files."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager

import pytest

from launch import environment, write_experiment

pytestmark = pytest.mark.parallel

CASE = {"workload": "hyperslab", "backend": ["null", "posix"], "layout": "file_per_process",
        "shape_per_rank": [8, 8]}  # fmt: skip


@contextmanager
def full_disk():
    with open("/dev/full", "w") as file:
        yield file.fileno()


@contextmanager
def reader_gone():
    """A pipe such as that to `head`, which has ended."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        yield writing
    finally:
        os.close(writing)


def run(directory, **streams):
    """Run an experiment in one process, without a launcher that reads what it prints."""
    path = write_experiment(directory, cases=[CASE], repetitions=3)
    (directory / "scratch").mkdir()
    command = [sys.executable, "-m", "pffbench", "run", path, "--out", directory / "results",
               "--scratch", directory / "scratch", "--progress", "plain"]  # fmt: skip
    done = subprocess.run(command, env=environment(), timeout=60, check=False, text=True,
                          stdin=subprocess.DEVNULL, **streams)  # fmt: skip
    return done, json.loads((directory / "results" / "run.json").read_text())


@pytest.mark.parametrize(
    ("outlet", "why"),
    [(full_disk, "No space left on device"), (reader_gone, "Broken pipe")],
    ids=["full disk", "reader gone"],
)
def test_a_run_outlives_its_output(tmp_path, outlet, why):
    with outlet() as place:
        done, record = run(tmp_path, stdout=place, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    assert done.stderr == (
        f"pffbench: standard output cannot be written any more ({why}); that changes nothing of "
        "the run and its results, which are in files\n"
    )
    assert (record["status"], record["valid"]) == ("finished", True)
    assert (tmp_path / "results" / "summary.csv").exists()


def test_a_run_outlives_both_its_outputs(tmp_path):
    with full_disk() as place:
        done, record = run(tmp_path, stdout=place, stderr=place)
    assert done.returncode == 0
    assert (record["status"], record["valid"]) == ("finished", True)
