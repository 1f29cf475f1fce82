"""The class in share/, run by ReFrame: green, and red when writing becomes slow."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from launch import environment, layer, mpiexec
from planted import planted

ROOT = Path(__file__).resolve().parents[2]
REFRAME_CLASS = ROOT / "share" / "reframe" / "pffbench.py"
EXPERIMENT = """
name: tiny
repetitions: {repetitions}
warmup: 0
roofline: false
common: {{workload: hyperslab, shape_per_rank: [4, 32, 32]}}
cases:
  - backend: [hdf5, zarr]
"""
#: A case that sleeps, which a busy machine changes by little.
SLEEPING = """
name: sleeping
repetitions: {repetitions}
warmup: 0
roofline: false
cases:
  - workload: hyperslab
    backend: "null"
    shape_per_rank: [4, 8]
    "null": {{delays: {{write: 0.2, read: 0.2}}}}
"""
SLOW_BY = 0.1  # seconds for each write to a file under test, which takes microseconds otherwise


def experiment(directory, repetitions=1, text=EXPERIMENT):
    path = directory / "it is 'tiny' $HOME.yaml"  # one word, for whoever starts it
    path.write_text(text.format(repetitions=repetitions))
    return path


def slow(directory, seconds=SLOW_BY):
    return planted(directory / "scratch", seconds=seconds, factor_of="write")


def run(command, cwd, **variables):
    return subprocess.run(
        [str(word) for word in command], cwd=cwd, env=environment(**variables),
        capture_output=True, text=True, timeout=240,
    )  # fmt: skip


SETTINGS = """
site_configuration = {{
    "systems": [{{
        "name": "here", "hostnames": [".*"],
        "partitions": [{{
            "name": "all", "scheduler": "local", "launcher": "{launcher}", "environs": ["plain"],
        }}],
    }}],
    "environments": [{{"name": "plain"}}],
}}
"""


def reframe(directory, name, text, *baseline, **variables):
    """Run the class of share/reframe; return the process and the results directory."""
    program = layer("reframe", "reframe-hpc==4.10.4").parent / "reframe"
    (directory / "scratch").mkdir(exist_ok=True)
    settings = directory / "settings.py"
    settings.write_text(SETTINGS.format(launcher=Path(mpiexec(1)[0]).name.replace(".", "")))
    prefix = directory / name
    given = {
        "experiment": experiment(directory, 7, text), "ranks": 2, "scratch": directory / "scratch",
        "baseline": ":".join(map(str, baseline)), "python": sys.executable,
    }  # fmt: skip
    options = [word for item in given.items() for word in ("-S", "{}={}".format(*item))]
    done = run(
        [program, "-C", settings, "-c", REFRAME_CLASS, "--prefix", prefix,
         "--keep-stage-files", *options, "-r", "--performance-report"],
        directory, **variables,
    )  # fmt: skip
    (record,) = prefix.rglob("run.json")
    return done, record.parent


@pytest.mark.full
def test_reframe_is_green_and_turns_red_when_writing_becomes_slow(tmp_path):
    first, night = reframe(tmp_path, "first", SLEEPING)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "null.hyperslab.one-shared.independent.matched." in first.stdout
    assert ".write" in first.stdout
    other = shutil.copytree(night, tmp_path / "another's night")

    again, _ = reframe(tmp_path, "again", SLEEPING, night, other)
    assert again.returncode == 0, again.stdout + again.stderr

    # Its writes take long enough to be compared, whatever else the machine does.
    lost, night = reframe(tmp_path, "lost", EXPERIMENT, night, other, **slow(tmp_path, 0.02))
    assert lost.returncode == 1, lost.stdout + lost.stderr
    assert "NOT COMPARABLE: results: the runs have no case in common" in lost.stdout

    late, _ = reframe(tmp_path, "late", EXPERIMENT, night, **slow(tmp_path))
    assert late.returncode == 1, late.stdout + late.stderr
    assert "FAILED: results: slower by more than 20 %: " in late.stdout, late.stdout
    assert "write and close: " in late.stdout
