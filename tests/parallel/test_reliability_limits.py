"""Open files, virtual memory, errors and signals before the first repetition, Ctrl-C."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress

import pytest

from faults import SLAB, completes, finished, no_process_is_left, run_faulty
from launch import (
    WITH_DAEMON,
    environment,
    lines_of,
    mpiexec,
    run_experiment,
    sampled,
    start,
    start_experiment,
    write_experiment,
)

pytestmark = pytest.mark.parallel

#: Seconds after which what is waited for does not come.
LIMIT = 200
NULL = SLAB | {"backend": "null"}
#: Runs the command line with something in the session replaced.
PATCHED = """
import os, signal, sys
from mpi4py import MPI
import pffbench.run.session
from pffbench.cli import main
rank, before = MPI.COMM_WORLD.rank, pffbench.run.session.{name}
def replaced(*given, **more):
    {what}
    return before(*given, **more)
pffbench.run.session.{name} = replaced
main(sys.argv[1:])
"""


def patched(name, what):
    return ("-c", PATCHED.format(name=name, what=what))


# Open files


@pytest.mark.parametrize("backend", sampled(["zarr", "posix"], "zarr"))
def test_a_case_that_opens_all_files_ends_alone(tmp_path, backend):
    """Its store is closed, which no other rank has to take part in, and its failure recorded."""
    fault = {"verb": "write", "kind": "exhaust", "rank": 0, "after": 1, "backend": backend}
    done = run_faulty(tmp_path, 2, fault=fault, repetitions=3,
                      cases=[SLAB | {"backend": backend}, NULL])  # fmt: skip
    assert done.status == 1, done.said
    assert "Traceback" not in done.stderr
    failure = done.record["cases"][done.case(backend=backend)]["failure"]
    assert (failure["phase"], failure["repetition"]) == ("write", 1)
    assert "Too many open files" in failure["error"]
    assert Counter(case for case, _ in finished(done)) == {
        done.case(backend="null"): 3, done.case(backend=backend): 1,
    }  # fmt: skip
    assert done.record["status"] == "finished"
    assert not list((tmp_path / "scratch").iterdir())


# Virtual memory


TOO_LITTLE = {
    95: r"a process may have 95 MiB of virtual memory, and MPI .* \(ulimit -v\)",
    200: r"a process may have 200 MiB of virtual memory, and MPI .* \(ulimit -v\)",
    900: r"hdf5\.hyperslab\S+ needs about \S+ MiB more of virtual memory .* \(ulimit -v\)",
}


@pytest.mark.parametrize("mebibytes", sampled(TOO_LITTLE, 95, 900))
def test_too_little_virtual_memory_is_told_before_anything_is_made(tmp_path, mebibytes):
    path = write_experiment(tmp_path, cases=[SLAB | {"backend": ["hdf5", "zarr"]}])
    (tmp_path / "scratch").mkdir()
    limited = ["prlimit", f"--as={mebibytes * 2**20}", sys.executable, "-m", "pffbench", "run",
               path, "--out", tmp_path / "results", "--scratch", tmp_path / "scratch"]  # fmt: skip
    done = subprocess.run([*mpiexec(2), *map(str, limited)], env=environment(), timeout=LIMIT,
                          check=False, capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 2, done.stderr
    told = f"^pffbench: {TOO_LITTLE[mebibytes]}"
    assert re.search(told, done.stderr, re.MULTILINE), done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "results").exists()
    assert not list((tmp_path / "scratch").iterdir())


@pytest.mark.parametrize("command", ["plan", "report"])
def test_too_little_virtual_memory_for_libraries_is_one_sentence(tmp_path, command):
    limited = ["prlimit", f"--as={95 * 2**20}", sys.executable, "-m", "pffbench", command, tmp_path]
    done = subprocess.run(list(map(str, limited)), env=environment(), timeout=LIMIT, check=False,
                          capture_output=True, text=True)  # fmt: skip
    assert done.stderr == (
        "pffbench: a process may have 95 MiB of virtual memory, and MPI and other libraries need "
        "192 MiB at least, for a run more; raise the limit (ulimit -v)\n"
    )
    assert (done.returncode, done.stdout) == (2, "")


# Before the first repetition


@pytest.mark.parametrize("rank", sampled([0, 1], 1))
def test_an_unexpected_error_leaves_no_scratch(tmp_path, rank):
    program = patched("measure_floor", f"rank == {rank} and 1 / 0")
    done = start_experiment(tmp_path, 2, program=program, cases=[NULL]).finish()
    assert done.status not in (0, 2), done.said
    assert "ZeroDivisionError" in done.stderr
    assert "pffbench: nothing was recorded" in done.stderr
    assert not list((tmp_path / "scratch").iterdir())
    assert not done.out.exists()


def test_an_unexpected_error_later_says_how_to_go_on(tmp_path):
    program = patched("Runner", "rank == 1 and 1 / 0")
    done = start_experiment(tmp_path, 2, program=program, cases=[NULL], repetitions=2).finish()
    assert done.status not in (0, 2), done.said
    assert (
        f"pffbench: go on with: mpiexec -n 2 python -m pffbench run --resume {done.out}"
        in done.stderr
    )
    completes(done, 2, repetitions=2)


@pytest.mark.parametrize("number", sampled(["SIGTERM", "SIGUSR1", "SIGINT"], "SIGUSR1"))
def test_a_signal_while_the_run_begins_ends_it_before_the_first_repetition(tmp_path, number):
    what = f"rank == 0 and os.kill(os.getpid(), signal.{number})"
    program = patched("measure_floor", what)
    done = start_experiment(tmp_path, 2, program=program, cases=[NULL], repetitions=2).finish()
    assert done.status == 3, done.said
    assert (done.record["status"], done.rows) == ("interrupted", [])
    assert "go on with: mpiexec -n 2 python -m pffbench run --resume" in done.stdout
    assert not list((tmp_path / "scratch").iterdir())
    completes(done, 2, repetitions=2)


def test_a_signal_before_anything_is_made_leaves_nothing(tmp_path):
    program = patched("available_resources", "rank == 1 and os.kill(os.getpid(), signal.SIGUSR1)")
    done = start_experiment(tmp_path, 2, program=program, cases=[NULL]).finish()
    assert done.status == 3, done.said
    assert "a signal asked the run to end before it began; nothing was made" in done.stderr
    assert not done.out.exists()
    assert not list((tmp_path / "scratch").iterdir())


def test_only_one_rank_asks_the_scheduler_for_the_time_left(tmp_path):
    """A request of every rank of a large job is one too many for it."""
    (tools := tmp_path / "tools").mkdir()
    qstat, asked = tools / "qstat", tmp_path / "asked"
    qstat.write_text(
        f"#!/bin/sh\necho $PPID >>{asked}\nprintf 'Job Id: 17\\n    queue = debug\\n'\n"
    )
    qstat.chmod(0o755)
    env = {"PBS_JOBID": "17.server", "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    done = run_experiment(tmp_path, 3, cases=[NULL], env=env)
    assert done.status == 0, done.said
    assert done.record["provenance"]["pbs"]["qstat"] == {"queue": "debug"}
    assert len(set(asked.read_text().split())) == 1


# While it runs

SLOW = {"backend": "null", "null": {"delays": {"write": 0.7, "read": 0.7}}}


def wait_until(condition):
    """Wait until a condition holds, which may ask for files that are not there yet."""
    end = time.monotonic() + LIMIT
    while True:
        with suppress(OSError, ValueError):
            if condition():
                return
        assert time.monotonic() < end
        time.sleep(0.02)


def status_of(out):
    return json.loads((out / "run.json").read_text())["status"]


def wait_for_repetition(out):
    """Wait until the first repetition is recorded."""
    wait_until(lambda: lines_of(out))


def test_a_run_that_is_to_end_is_recorded_as_such_at_once(tmp_path):
    """And not when the repetition in hand is finished, which a launcher may not wait for."""
    content = {"cases": [SLAB | SLOW], "repetitions": 30}
    run = start_experiment(tmp_path, None, **content)
    wait_for_repetition(run.out)
    run.process.send_signal(signal.SIGTERM)
    seen = set()
    while run.process.poll() is None:
        with suppress(OSError, ValueError):
            seen.add(status_of(run.out))
        time.sleep(0.02)
    done = run.finish()
    assert done.status == 3, done.said
    assert done.record["status"] == "interrupted"
    assert "interrupted" in seen


def test_a_run_that_timeout_kills_is_not_left_running(tmp_path):
    """It gets SIGTERM, and SIGKILL before the repetition in hand can end."""
    long = NULL | {"null": {"delays": {"close": 1000}}}
    run = start_experiment(tmp_path, None, cases=[long])
    wait_until(lambda: list((tmp_path / "scratch").glob("*/0000-*")))  # it is in hand
    wait_until(lambda: pauses(run.process.pid, 0) == pauses(run.process.pid, 0.5))
    asleep = pauses(run.process.pid, 0)
    run.process.send_signal(signal.SIGTERM)
    wait_until(lambda: pauses(run.process.pid, 0) > asleep)  # it has noted the signal
    assert status_of(run.out) == "running"
    run.process.kill()
    run.finish()
    wait_until(lambda: status_of(run.out) == "interrupted")


def pauses(pid, seconds):
    """Return how often the main thread of a process has gone to sleep, after so many seconds."""
    time.sleep(seconds)
    with open(f"/proc/{pid}/task/{pid}/status") as file:
        (line,) = [line for line in file if line.startswith("voluntary_ctxt_switches")]
    return int(line.split()[1])


def read_terminal(master, until=None):
    """Return what is shown at a terminal, until a text is there or nobody has it any more."""
    shown, end = b"", time.monotonic() + LIMIT
    while until is None or until not in shown:
        assert time.monotonic() < end, shown
        if select.select([master], [], [], 0.1)[0]:
            try:
                shown += os.read(master, 2**16)
            except OSError:
                break
    return shown


def at_a_terminal(directory, keys):
    """Run at a terminal and press Ctrl-C so often; return the status and what was shown."""
    # The second repetition holds both keys, even where other work delays them.
    slow = NULL | {
        "files": "one",
        "arrays": "per_rank",
        "null": {"delays": {"write": 2.0 if keys == 1 else 20.0}},
    }
    path = write_experiment(directory, cases=[NULL, slow], repetitions=30)
    (directory / "scratch").mkdir()
    out = directory / "results"
    command = ["-m", "pffbench", "run", path, "--out", out, "--scratch", directory / "scratch"]
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, *map(str, command)],
        env=environment(TERM="xterm", COLUMNS="200", **WITH_DAEMON),
        stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    wait_for_repetition(out)
    # Between two repetitions the first key ends the run.
    wait_until(lambda: list((directory / "scratch").glob("*/*.one-per_rank.*")))
    process.send_signal(signal.SIGINT)
    shown = b""
    if keys == 2:  # two at the same moment are one
        shown = read_terminal(master, until=b"Ctrl-C again ends at once")
        process.send_signal(signal.SIGINT)
    shown += read_terminal(master)
    os.close(master)
    return process.wait(LIMIT), shown.decode(), out


def test_ctrl_c_finishes_the_repetition_and_says_how_to_go_on(tmp_path):
    status, shown, out = at_a_terminal(tmp_path, 1)
    assert status == 3, shown
    assert "stopping when the repetition in hand is finished; Ctrl-C again ends at once" in shown
    assert f"go on with: pffbench run --resume {out}" in shown
    assert "Traceback" not in shown
    assert json.loads((out / "run.json").read_text())["status"] == "interrupted"
    assert not list((tmp_path / "scratch").iterdir())


@pytest.mark.full
def test_ctrl_c_twice_ends_at_once_and_leaves_no_bar(tmp_path):
    status, shown, out = at_a_terminal(tmp_path, 2)
    assert status == 130, shown
    assert shown.rstrip().endswith(
        f"pffbench: interrupted; go on with: pffbench run --resume {out}"
    )
    assert "Traceback" not in shown
    assert shown.count("\x1b[?25h") >= shown.count("\x1b[?25l") >= 1  # the cursor is shown again
    told = ["run", "--resume", out, "--scratch", tmp_path / "scratch"]
    rest = start(["-m", "pffbench", *told, "--max-time", "0.001 s"]).finish()
    assert rest.status == 3, rest.said


def test_a_signal_leaves_no_process(tmp_path):
    env = {"PFFBENCH_TEST_TAG": str(tmp_path)}
    run = start_experiment(tmp_path, 2, cases=[SLAB | SLOW], repetitions=30, env=env)
    wait_for_repetition(run.out)
    os.kill(run.process.pid, signal.SIGINT)
    run.finish()
    no_process_is_left(tmp_path)
