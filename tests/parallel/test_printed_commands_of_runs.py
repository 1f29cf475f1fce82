"""The commands that runs print: each kind runs as printed, and leads to what it promises."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
import yaml

from faults import SLAB, TAG, no_process_is_left
from launch import (
    LONGEST,
    Finished,
    environment,
    lines_of,
    mpiexec,
    pffbench_here,
    run_experiment,
    start_experiment,
    wait_until,
)
from pffbench.cli import make_parser
from pffbench.commands.run import how_to_check
from pffbench.run.options import RunOptions

pytestmark = pytest.mark.parallel

SLOW = [SLAB | {"backend": "null", "null": {"delays": {"write": 0.3}}}, SLAB | {"backend": "npy"}]
#: How each kind of command is printed: the command is the rest of the line.
GO_ON = r"go on with: (.*)$"
READ = r"read them on other nodes with: (.*)$"
NEXT = r"^  ((?:pffbench|mpiexec) .*?)(?:  \(.*\))?$"


def printed(kind, text):
    """Return the commands of a kind that a text prints."""
    found = re.findall(kind, text, re.MULTILINE)
    assert found, text
    return found


#: A command below a sentence, in lines that a shell joins again.
BELOW = r"{}\n((?:  .*\\\n)*  .*)$"


def below(sentence, text):
    """Return the command that an answer prints below a sentence."""
    (command,) = re.findall(BELOW.format(re.escape(sentence)), text, re.MULTILINE)
    return command


def typed(command, cwd, out=None):
    """Run a command as a user types it."""
    here = Path(sys.executable).parent, Path(mpiexec(1)[0]).parent
    path = os.pathsep.join([*map(str, here), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", command], cwd=cwd, env=environment(PATH=path, COLUMNS="80"),
        capture_output=True, text=True, timeout=LONGEST, check=False,
    )  # fmt: skip
    return Finished(done.returncode, f"{command}\n{done.stdout}", done.stderr, out)


def comes_to_its_end(command, run):
    """See that a command resumes a run, which is finished and valid then."""
    done = typed(command, run.out.parent, run.out)
    assert done.status == 0, done.said
    assert (done.record["status"], done.record["valid"]) == ("finished", True)


def test_a_run_that_stopped_in_time_is_resumed(tmp_path):
    # Which a shell takes apart, and the answer breaks.
    place = tmp_path / "a place with a name that is longer than a line of a terminal " / "b"
    place.mkdir(parents=True)
    told = ("--max-time", "1 s", "--accept-busy")
    stopped = run_experiment(place, 2, *told, repetitions=4, cases=SLOW)
    assert stopped.status == 3, stopped.said
    (command,) = printed(GO_ON, stopped.stdout)
    assert command.startswith("mpiexec -n 2 python -m pffbench run --resume ")
    if lines_of(stopped.out):  # else the machine is so busy that there is no answer yet
        answered = below("To continue:", stopped.stdout)
        assert shlex.split(answered.replace("\\\n", "")) == shlex.split(command)
        command = answered
    comes_to_its_end(f"{command} --max-time none", stopped)


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A run whose launcher was killed."""
    place = tmp_path_factory.mktemp("killed")
    run = start_experiment(place, 2, repetitions=6, cases=SLOW, env={TAG: str(place)})
    wait_until(lambda: (run.out / "repetitions.jsonl").exists() and lines_of(run.out))
    os.kill(run.process.pid, signal.SIGKILL)
    done = run.finish()
    no_process_is_left(place)
    return done


def test_what_a_killed_run_has_left_is_listed_and_stays_while_it_may_be_resumed(killed):
    place = killed.out.parent
    wait_until(lambda: "can go" in typed("pffbench clean --scratch scratch", place).stdout)
    listed = typed("pffbench clean --scratch scratch", place)
    assert "nothing was removed: add --remove" in listed.stdout
    assert list((place / "scratch").iterdir())


def test_a_run_that_was_killed_is_resumed_with_what_a_report_of_it_prints(killed):
    place = killed.out.parent
    report = typed("pffbench report results", place)
    (command,) = printed(GO_ON, report.stderr)
    comes_to_its_end(command, killed)


def test_files_that_wait_to_be_read_are_read(tmp_path):
    cases = [SLAB | {"backend": "npy", "cache": "separate"}]
    wrote = run_experiment(tmp_path, 2, "--stage", "write", cases=cases)
    (command,) = printed(READ, wrote.stdout)
    record = wrote.record | {"wrote_on": ["another-host"]}  # as if this were another one
    (wrote.out / "run.json").write_text(json.dumps(record))
    comes_to_its_end(command, wrote)


def test_what_is_next_after_a_run(tmp_path):
    """The times differ so much that no busy machine hides it: a chunk for each element."""
    slab = SLAB | {"shape_per_rank": [32, 32], "files": "per_rank"}
    cases = [slab | {"backend": "npy"}, slab | {"backend": "hdf5", "chunks": [1, 1]}]
    done = run_experiment(tmp_path, 1, "--accept-busy", repetitions=7, cases=cases)
    assert "USE npy" in done.stdout, done.said
    commands = printed(NEXT, done.stdout)
    assert [command.split()[1] for command in commands[:2]] == ["report", "recommend"]
    for command in commands[:2]:
        after = typed(command, tmp_path)
        assert after.status == 0, after.said


def test_what_is_next_after_a_run_with_a_case_that_failed(tmp_path):
    bad = SLAB | {"backend": "null", "null": {"fail": "write"}}
    done = run_experiment(tmp_path, 1, cases=[bad, SLAB | {"backend": "npy"}])
    commands = printed(NEXT, done.stdout)
    assert [command.split()[1] for command in commands[:2]] == ["doctor", "report"]
    assert "✓" in typed(commands[0], tmp_path).stdout
    report = typed(commands[1], tmp_path)
    assert report.status in (0, 1), report.said
    assert (done.out / "summary.md").exists()


@pytest.mark.full
@pytest.mark.timeout(900)
def test_the_draft_of_a_file_is_planned_and_run(tmp_path):
    with h5py.File(tmp_path / "my data.h5", "w") as file:
        values = np.arange(40_000, dtype="f4").reshape(100, 400)
        file.create_dataset("t", data=values, chunks=(10, 400), compression="gzip")
    made = typed("pffbench init 'my data.h5' -o 'my draft.yaml'", tmp_path)
    plan, run = printed(NEXT, made.stdout)
    planned = typed(plan, tmp_path)
    assert planned.status == 0, planned.said
    ended = typed(run, tmp_path)
    assert ended.status == 0, ended.said


def test_a_name_from_the_list_is_planned(tmp_path):
    listed = typed("pffbench run --list", tmp_path)
    assert "pffbench plan NAME" in listed.stdout
    planned = typed("pffbench plan quick", tmp_path)
    assert planned.status == 0, planned.said


def test_an_experiment_is_checked_as_an_error_on_many_ranks_says(tmp_path):
    path = tmp_path / "my experiment.yaml"
    path.write_text(yaml.safe_dump({"name": "x", "cases": SLOW}))
    words = ["run", str(path), "--set", "dtype=[int8, int16]"]
    told = how_to_check(RunOptions.of_arguments(make_parser().parse_args(words)), 64)
    (command,) = printed(r"check it in one process with: (.*)$", told)
    planned = typed(command, tmp_path)
    assert planned.status == 0, planned.said
    assert "64 ranks" in planned.stdout


def test_scratch_that_is_not_needed_any_more_is_removed(tmp_path):
    run = start_experiment(tmp_path, None, repetitions=6, cases=SLOW)
    wait_until(lambda: (run.out / "repetitions.jsonl").exists() and lines_of(run.out))
    os.kill(run.process.pid, signal.SIGKILL)
    run.finish()
    command = "pffbench clean --scratch scratch"
    wait_until(lambda: "can go" in typed(command, tmp_path).stdout)
    removed = typed(f"{command} --remove", tmp_path)
    assert removed.status == 0, removed.said
    assert pffbench_here("clean", "--scratch", tmp_path / "scratch").stdout.startswith("no run")
