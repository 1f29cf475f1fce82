"""A run goes on when nobody takes what it prints: its results are in files."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager

import pytest

from launch import WITH_DAEMON, environment, mpiexec, reader_gone, write_experiment
from pffbench.record.run_json import RunRecord

pytestmark = pytest.mark.parallel

CASE = {"workload": "hyperslab", "backend": ["null", "posix"], "files": "per_rank",
        "shape_per_rank": [8, 8]}  # fmt: skip


@contextmanager
def full_disk():
    with open("/dev/full", "w") as file:
        yield file.fileno()


def run(directory, *before, env=None, more=(), **streams):
    """Run an experiment in one process, without a launcher that reads what it prints.

    Where nobody reads it the daemon of Open MPI has the same streams.
    """
    path = write_experiment(directory, cases=[CASE], repetitions=3)
    (directory / "scratch").mkdir()
    command = [*before, sys.executable, "-m", "pffbench", "run", path, "--out",
               directory / "results", "--scratch", directory / "scratch", *more]  # fmt: skip
    told = environment(**({} if "capture_output" in streams else WITH_DAEMON), **(env or {}))
    done = subprocess.run(command, env=told, timeout=300, check=False,
                          text=True, stdin=subprocess.DEVNULL, **streams)  # fmt: skip
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


def test_a_quiet_run_prints_its_answer_alone(tmp_path):
    done, record = run(tmp_path, capture_output=True, more=["-q"])
    assert (done.returncode, done.stderr, record["valid"]) == (0, "", True)
    place, answer, *_ = done.stdout.splitlines()
    assert place == f"results: {tmp_path / 'results'}"
    assert answer.startswith("NO ANSWER: ")  # of three rounds
    assert "\nVALID: every byte verified but those of null, " in done.stdout


def test_a_short_run_prints_its_plan_and_its_end(tmp_path):
    """No round has a line of a run of seconds, and none is told twice."""
    done, _ = run(tmp_path, capture_output=True)
    assert (done.returncode, done.stderr) == (0, "")
    head, more, place, report, answer, *_ = done.stdout.splitlines()
    assert head.endswith(" 2 cases in at most 3 rounds")
    assert "this run has one rank" in more
    assert place.startswith(f"results: {tmp_path / 'results'} (")
    assert report.startswith(f"  pffbench report {tmp_path / 'results'}  (")
    assert answer.startswith("NO ANSWER: ")
    assert len(done.stdout.splitlines()) <= 30


def test_a_run_prints_ascii_where_there_is_nothing_else(tmp_path):
    """Not in C.UTF-8, which Python takes by itself in place of C."""
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done, record = run(tmp_path, env=plain, capture_output=True, more=["--tables"])
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert "low-high" in done.stdout
    assert done.stderr == ""
    assert (record["status"], record["valid"]) == ("finished", True)


def test_a_run_without_standard_streams_comes_to_its_end(tmp_path):
    """Nothing that is printed gets into a file that was opened in place of the terminal."""
    done, record = run(tmp_path, "sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh")
    assert done.returncode == 0
    assert (record["status"], record["valid"]) == ("finished", True)
    assert "VALID" not in (tmp_path / "results" / "samples.csv").read_text()


def test_text_that_is_no_utf8_is_recorded(tmp_path):
    """In a variable, and in the paths of the experiment and the results."""
    byte = os.fsdecode(b"a\xff")
    path = write_experiment(tmp_path, cases=[CASE])
    path = path.rename(tmp_path / f"{byte}.yaml")
    (tmp_path / "scratch").mkdir()
    out = tmp_path / f"results-{byte}"
    run_it = ["-m", "pffbench", "run", path, "--out", out, "--scratch",
              tmp_path / "scratch"]  # fmt: skip
    streams = {"capture_output": True, "stdin": subprocess.DEVNULL}
    done = subprocess.run([*mpiexec(1), sys.executable, *run_it], timeout=300, check=False,
                          env=environment(SLURM_JOB_NAME=byte), **streams)  # fmt: skip
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    assert b"results-a\\xff" in done.stdout
    record = json.loads((out / "run.json").read_text())
    assert record["provenance"]["environment"]["SLURM_JOB_NAME"] == "a\\xff"
    assert record["experiment_file"].endswith("a\\xff.yaml")
    assert RunRecord.load(out).valid is True
    report = subprocess.run([sys.executable, "-m", "pffbench", "report", out], timeout=300,
                            check=False, env=environment(), **streams)  # fmt: skip
    assert report.returncode == 0, report.stderr.decode(errors="replace")
    (out / "run.json").write_text(json.dumps(record | {"status": "interrupted"}))
    resumed = subprocess.run(
        [*mpiexec(1), sys.executable, "-m", "pffbench", "run", "--resume", out, "--scratch",
         tmp_path / "scratch"], timeout=300, check=False, env=environment(), **streams,
    )  # fmt: skip
    assert resumed.returncode == 0, resumed.stderr.decode(errors="replace")
