"""The files of share/, run by ReFrame, JUBE and Ramble: green, and red when writing becomes slow.

ReFrame is one of the tools that the set-up makes for tests. The others are not in the package
index: `make test ARGS="-m harness"` runs them where `jube` and `ramble` are in PATH.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from launch import cannot_run, environment, mpiexec
from planted import planted

ROOT = Path(__file__).resolve().parents[2]
SHARE = ROOT / "share"
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


# --- ReFrame


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
    program = ROOT / ".build" / "harness" / "bin" / "reframe"
    if not program.exists():
        cannot_run("there is no ReFrame in .build/harness: setup/bootstrap --tests makes it")
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
        [program, "-C", settings, "-c", SHARE / "reframe" / "pffbench.py", "--prefix", prefix,
         "--keep-stage-files", *options, "-r", "--performance-report"],
        directory, **variables,
    )  # fmt: skip
    (record,) = prefix.rglob("run.json")
    return done, record.parent


@pytest.mark.full
def test_reframe_is_green_and_turns_red_when_writing_becomes_slow(tmp_path):
    first, night = reframe(tmp_path, "first", SLEEPING)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "null.hyperslab.shared.independent.matched.write.time" in first.stdout
    other = shutil.copytree(night, tmp_path / "another's night")

    again, _ = reframe(tmp_path, "again", SLEEPING, night, other)
    assert again.returncode == 0, again.stdout + again.stderr

    # Its writes take long enough to be compared, whatever else the machine does.
    lost, night = reframe(tmp_path, "lost", EXPERIMENT, night, other, **slow(tmp_path, 0.02))
    assert lost.returncode == 1, lost.stdout + lost.stderr
    assert "NOT COMPARABLE: results: nothing is comparable" in lost.stdout

    late, _ = reframe(tmp_path, "late", EXPERIMENT, night, **slow(tmp_path))
    assert late.returncode == 1, late.stdout + late.stderr
    assert "FAILED: results is slower by more than 20 %: " in late.stdout, late.stdout
    assert "write_total takes" in late.stdout


# --- JUBE


@pytest.mark.harness
def test_jube_is_green_and_turns_red_when_writing_becomes_slow(tmp_path):
    if not shutil.which("jube"):
        cannot_run("there is no `jube` in PATH")
    (tmp_path / "scratch").mkdir()
    common = {
        "PFFBENCH_RANKS": "2", "PFFBENCH_PYTHON": sys.executable,
        "PFFBENCH_SCRATCH": str(tmp_path / "scratch"), "PFFBENCH_LAUNCHER": mpiexec(1)[0],
    }  # fmt: skip

    def jube(name, text, *baseline, **variables):
        """Run the benchmark; return the process and the results directory."""
        command = ["jube", "run", "-e", "-r", SHARE / "jube" / "pffbench.yaml"]
        done = run(
            [*command, *(["-o", tmp_path / name] if name else [])], tmp_path, PWD=str(tmp_path),
            PFFBENCH_EXPERIMENT=str(experiment(tmp_path, 7, text)),
            PFFBENCH_BASELINE=":".join(map(str, baseline)), **common, **variables,
        )  # fmt: skip
        (record,) = (tmp_path / (name or "pffbench-jube")).rglob("run.json")
        assert json.loads(record.read_text())["valid"]
        return done, record.parent

    first, night = jube("", SLEEPING)
    assert first.returncode == 0, first.stdout + first.stderr
    assert not (SHARE / "jube" / "pffbench-jube").exists()
    other = shutil.copytree(night, tmp_path / "another's night")
    again, _ = jube("again", SLEEPING, night, other)
    assert again.returncode == 0, again.stdout + again.stderr

    first, night = jube("real", EXPERIMENT, **slow(tmp_path, 0.02))
    assert re.search(r"\|\s*2 \|\s*1 \|\s*[0-9.e-]+", first.stdout), first.stdout
    late, _ = jube("late", EXPERIMENT, night, **slow(tmp_path))
    assert late.returncode != 0, late.stdout


# --- Ramble


WORKSPACE = """
ramble:
  variables:
    mpi_command: {launcher} -n {{n_ranks}}
    batch_submit: '{{execute_experiment}}'
    processes_per_node: 2
    n_nodes: 1
    n_ranks: 2
  applications:
    pffbench:
      success_criteria:
      - name: not-slower
        mode: fom_comparison
        fom_name: 'time of zarr.*.write_total'
        fom_context: '*'
        formula: '{{value}} < {limit}'
      workloads:
        run:
          experiments:
            {name}:
              variables:
                python: {python}
                experiment_file: '{experiment}'
"""


@pytest.mark.harness
def test_ramble_is_green_and_turns_red_when_writing_becomes_slow(tmp_path):
    if not shutil.which("ramble"):
        cannot_run("there is no `ramble` in PATH")
    (tmp_path / "scratch").mkdir()
    # An apostrophe is the one thing that Ramble's words cannot have.
    file = experiment(tmp_path).rename(tmp_path / "it is tiny $HOME.yaml")
    variables = {
        "PFFBENCH_SCRATCH": str(tmp_path / "scratch"), "SCRATCH": str(tmp_path / "scratch"),
        "RAMBLE_DISABLE_LOCAL_CONFIG": "1",
    }  # fmt: skip
    scope = tmp_path / "scope"
    scope.mkdir()
    (scope / "repos.yaml").write_text(f"repos:\n  - {SHARE}/ramble\n")

    def state(name, **planted):
        place = tmp_path / name
        text = WORKSPACE.format(
            launcher=mpiexec(1)[0], limit=SLOW_BY, name=name, python=sys.executable, experiment=file
        )
        for words in (
            ["workspace", "create", "-d", place], ["-D", place, "workspace", "setup"],
            ["-D", place, "on"], ["-D", place, "workspace", "analyze", "-f", "json"],
        ):  # fmt: skip
            if words[-1] == "setup":
                (place / "configs" / "ramble.yaml").write_text(text)
            done = run(["ramble", "-C", scope, *words], tmp_path, **variables, **planted)
            assert done.returncode == 0, done.stdout + done.stderr
        (results,) = (path for path in place.glob("results*.json") if not path.is_symlink())
        (found,) = json.loads(results.read_text())["experiments"]
        return found["RAMBLE_STATUS"], os.listdir(place)

    assert state("first")[0] == "SUCCESS"
    assert state("late", **slow(tmp_path))[0] == "FAILED"
