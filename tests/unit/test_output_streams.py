"""Standard output that is full, closed, without a reader or plain ASCII ends no command."""

import subprocess
import sys
from contextlib import contextmanager

import pytest

from drawn_runs import USUAL, a_run
from launch import environment, reader_gone, sampled, write_experiment
from pffbench.run.output import _REPLACING, best_effort_output

pytestmark = pytest.mark.long

SLAB = {"workload": "hyperslab", "backend": ["zarr", "posix"], "files": "per_rank",
        "shape": [8, 8], "decomposition": "slab"}  # fmt: skip
#: Does not begin with C.UTF-8 in place of C, which Python chooses by itself.
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory with an experiment, two runs and an empty scratch directory."""
    directory = tmp_path_factory.mktemp("outlet")
    write_experiment(directory, question="1 × 2 – what of it?", cases=[SLAB])
    for name in ("one", "two"):
        a_run(directory / name, USUAL, repetitions=3, question="1 × 2 – what of it?")
    (directory / "scratch").mkdir()
    return directory


LIGHT = {
    "help": ["--help"],
    "help of run": ["run", "--help"],
    "plan": ["plan", "experiment.yaml"],
    "keys": ["keys"],
    "list": ["run", "--list"],
    "schema": ["keys", "--schema"],
    "clean": ["clean", "--scratch", "scratch"],
}
HEAVY = {
    "doctor": ["doctor", "--no-mpi"],
    "report": ["report", "one"],
    "compare": ["compare", "one", "two"],
    "recommend": ["recommend", "one"],
}
COMMANDS = LIGHT | HEAVY


@contextmanager
def full():
    with open("/dev/full", "w") as file:
        yield file


def run_command(place, name, *before, env=None, **streams):
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    return subprocess.run(
        [*before, sys.executable, "-m", "pffbench", *COMMANDS[name]], cwd=place, timeout=120,
        env=environment(**(env or {})), stdin=subprocess.DEVNULL, check=False, **streams,
    )  # fmt: skip


def no_traceback(done):
    for text in (done.stdout, done.stderr):
        assert b"Traceback" not in (text or b""), text.decode()
        assert b"Exception ignored" not in (text or b""), text.decode()


@pytest.mark.parametrize("name", sampled(COMMANDS, "help", "plan", "compare"))
def test_a_full_disk_behind_standard_output_is_told(place, name):
    with full() as outlet:
        done = run_command(place, name, stdout=outlet)
    no_traceback(done)
    assert done.returncode == 1
    told = b"pffbench: standard output cannot be written (No space left on device)\n"
    assert done.stderr == told


@pytest.mark.parametrize("name", sampled(LIGHT, "help", "list", "plan"))
def test_a_reader_that_has_gone_is_no_error(place, name):
    with reader_gone() as outlet:
        done = run_command(place, name, stdout=outlet)
    no_traceback(done)
    assert (done.returncode, done.stderr) == (0, b"")


def test_head_ends_plan_without_an_error(place):
    """Of a table that is longer than what the pipe holds."""
    command = f"{sys.executable} -m pffbench plan experiment.yaml --all --set seed=1 --set "
    steps = ",".join(map(str, range(1, 400)))
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} 'steps=[{steps}]' | head -n 1"],
        cwd=place, env=environment(), capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    no_traceback(done)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("name", sampled(LIGHT, "help", "plan"))
def test_a_closed_standard_output_is_no_error(place, name):
    close = ["sh", "-c", 'exec "$@" >&-', "sh"]
    done = run_command(place, name, *close)
    no_traceback(done)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("name", sampled(COMMANDS, *LIGHT, "compare", "recommend"))
def test_an_ascii_terminal_is_written_to_in_ascii(place, name):
    done = run_command(place, name, env=ASCII)
    no_traceback(done)
    assert done.returncode in ((0, 1) if name == "doctor" else (0,)), done.stderr
    assert done.stdout.isascii()
    assert done.stdout


def test_infinity_is_a_word_in_ascii():
    with best_effort_output(of_run=False):  # which registers the handler
        assert "0.00–∞ ×".encode("ascii", _REPLACING) == b"0.00-inf x"


def test_a_complaint_that_nobody_reads_keeps_its_status(place):
    """Standard error is full too."""
    with full() as outlet:
        done = subprocess.run(
            [sys.executable, "-m", "pffbench", "plan", "absent.yaml"], cwd=place, check=False,
            env=environment(), stdout=outlet, stderr=outlet, timeout=300,
        )  # fmt: skip
    assert done.returncode == 2


def test_what_is_closed_is_not_written_into_a_file(place):
    """Of a process without standard streams the first file that it opens has the number 0."""
    code = ("import os\n"
            "from pffbench.run.output import best_effort_output\n"
            "with best_effort_output(of_run=True):\n"
            "    number = os.open('mine', os.O_CREAT | os.O_WRONLY)\n"
            "    print('lost')\n"
            "    os.write(number, str(number).encode())\n")  # fmt: skip
    done = subprocess.run(["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-c", code],
                          cwd=place, env=environment(), timeout=300, check=False)  # fmt: skip
    assert done.returncode == 0
    assert int((place / "mine").read_text()) > 2


def test_a_deleted_directory_is_told(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        ["sh", "-c", 'rmdir "$PWD" && exec "$@"', "sh", sys.executable, "-m", "pffbench", "plan"],
        cwd=gone, env=environment(), capture_output=True, timeout=300, check=False,
    )  # fmt: skip
    no_traceback(done)
    assert done.returncode == 2
    assert b"the current directory is not there any more" in done.stderr
