"""One run writes into a results directory; what killed runs leave is recognised."""

import json
import multiprocessing
import os
import subprocess
import sys
import time

import pytest

from pffbench.errors import UserError
from pffbench.record.lock import RunLock
from pffbench.storage import ownership
from pffbench.storage.ownership import OwnerProcess

pytestmark = pytest.mark.usefixtures("outside_of_jobs")


def lock_of(tmp_path, **changes):
    """Put a lock there that another process might have made."""
    facts = OwnerProcess.me().facts() | {"token": "x"} | changes
    (tmp_path / "run.lock").write_text(json.dumps(facts))


def dead_process():
    """Return number and start of a process that is no more."""
    code = (
        "import json; from pffbench.storage.ownership import OwnerProcess;"
        "print(json.dumps(OwnerProcess.me().facts()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def squeue(tmp_path, monkeypatch, says, status=0):
    program = tmp_path / "bin" / "squeue"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "{says}" >&{1 if status == 0 else 2}\nexit {status}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")


def test_a_lock_is_there_until_it_is_released(tmp_path):
    first = RunLock()
    first.take(tmp_path, "--out x")
    facts = json.loads((tmp_path / "run.lock").read_text())
    assert (facts["pid"], facts["job"]) == (os.getpid(), "")
    with pytest.raises(UserError, match=r"--out x: another run writes there \(process \d+ on .*\)"):
        RunLock().take(tmp_path, "--out x")
    first.release()
    assert not list(tmp_path.iterdir())
    RunLock().take(tmp_path, "--out x")


def test_the_lock_of_a_process_that_is_gone_is_taken_over(tmp_path):
    lock_of(tmp_path, **dead_process())
    lock = RunLock()
    lock.take(tmp_path, "--resume x")
    assert json.loads((tmp_path / "run.lock").read_text())["pid"] == os.getpid()
    assert [p.name for p in tmp_path.iterdir()] == ["run.lock"]
    lock.release()
    assert not list(tmp_path.iterdir())


def test_a_number_that_another_process_has_now_is_no_life(tmp_path):
    lock_of(tmp_path, started="1")
    RunLock().take(tmp_path, "--resume x")


NOT_TO_BE_ASKED = [
    ({"boot": "another", "host": "elsewhere"}, "it ran on elsewhere, which cannot be asked"),
    ({"namespace": "pid:[1]"}, "it is in another container of this machine"),
    ({"boot": "another"}, "it ran on another machine called "),
]


@pytest.mark.parametrize(("changes", "why"), NOT_TO_BE_ASKED)
def test_a_lock_that_nobody_has_touched_for_long_is_taken_over(tmp_path, changes, why):
    """A living run touches it every minute, wherever it is."""
    lock_of(tmp_path, **changes)
    touch(tmp_path, ownership.SILENCE - 60)
    with pytest.raises(UserError, match=f"{why}.*, and touched its file 59 min ago; if it has"):
        RunLock().take(tmp_path, "--resume x")
    touch(tmp_path, ownership.SILENCE + 60)
    RunLock().take(tmp_path, "--resume x")


def touch(directory, ago):
    at = time.time() - ago
    os.utime(directory / "run.lock", (at, at))


@pytest.mark.parametrize(("changes", "why"), NOT_TO_BE_ASKED)
def test_what_cannot_be_known_is_left_to_people(tmp_path, changes, why):
    lock_of(tmp_path, **changes)
    with pytest.raises(UserError) as refused:
        RunLock().take(tmp_path, "--resume x")
    assert why in str(refused.value)
    assert str(refused.value).endswith(f"if it has ended, remove {tmp_path / 'run.lock'}")
    (tmp_path / "run.lock").unlink()
    RunLock().take(tmp_path, "--resume x")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"host": "a"}', '{"pid": {}}', "\0" * 40_000])
def test_a_lock_that_says_nothing_is_left_to_people(tmp_path, text):
    (tmp_path / "run.lock").write_text(text)
    with pytest.raises(UserError, match=r"does not say which run made it; if none writes there"):
        RunLock().take(tmp_path, "--resume x")


ELSEWHERE = {"boot": "another", "host": "elsewhere", "job": "17", "restart": "0"}


@pytest.mark.parametrize(
    ("says", "status", "taken"),
    [
        ("", 0, True),
        ("PENDING", 0, True),
        ("slurm_load_jobs error: Invalid job id specified", 1, True),
        ("RUNNING", 0, False),
        ("COMPLETING", 0, False),
        ("slurm_load_jobs error: Unable to contact slurm controller", 1, False),
    ],
)
def test_slurm_tells_what_became_of_a_job(tmp_path, monkeypatch, says, status, taken):
    squeue(tmp_path, monkeypatch, says, status)
    lock_of(tmp_path, **ELSEWHERE)
    if taken:
        RunLock().take(tmp_path, "--resume x")
    else:
        with pytest.raises(UserError, match=r"job 17|squeue does not tell"):
            RunLock().take(tmp_path, "--resume x")


def test_a_job_in_another_container_of_this_machine_is_asked_for_too(tmp_path, monkeypatch):
    squeue(tmp_path, monkeypatch, "", 0)
    lock_of(tmp_path, namespace="pid:[1]", job="17", restart="0")
    RunLock().take(tmp_path, "--resume x")


def test_an_earlier_start_of_ones_own_job_has_ended(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    lock_of(tmp_path, **ELSEWHERE)
    with pytest.raises(UserError, match="it was started by this job too, on elsewhere"):
        RunLock().take(tmp_path, "--resume x")
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    RunLock().take(tmp_path, "--resume x")


def test_who_died_while_taking_over_leaves_a_name_to_remove(tmp_path):
    lock_of(tmp_path, **dead_process())
    (tmp_path / "run.lock.taking").touch()
    with pytest.raises(UserError, match=r"if none is, remove .*run\.lock\.taking"):
        RunLock().take(tmp_path, "--resume x")


def test_a_lock_that_is_another_ones_now_is_not_removed(tmp_path):
    lock = RunLock()
    lock.take(tmp_path, "--out x")
    lock_of(tmp_path)
    lock.release()
    assert (tmp_path / "run.lock").exists()


def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path):
    (tmp_path / "run.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError):
        RunLock().take(tmp_path, "--out x")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("left_by", ["nobody", "a process that is gone"])
def test_of_many_at_the_same_moment_one_has_it(tmp_path, left_by):
    """Also when all of them find the lock of a killed run."""
    many = 8
    how = multiprocessing.get_context("fork")
    for _ in range(4):
        (tmp_path / "run.lock").unlink(missing_ok=True)
        if left_by != "nobody":
            lock_of(tmp_path, started="1")
        answers, gate = how.Queue(), how.Barrier(many + 1)
        end = how.Event()
        processes = [how.Process(target=contender, args=(tmp_path, gate, answers, end))
                     for _ in range(many)]  # fmt: skip
        for process in processes:
            process.start()
        gate.wait()
        told = [answers.get(timeout=300) for _ in processes]
        end.set()
        for process in processes:
            process.join()
        assert told.count("taken") == 1, told


def contender(directory, gate, answers, end):
    gate.wait()
    lock = RunLock()
    try:
        lock.take(directory, "--resume x")
        answers.put("taken")
    except UserError as error:
        answers.put(str(error))
    end.wait()  # alive until all have looked


def test_a_process_tells_who_it_is():
    me = OwnerProcess.me()
    assert OwnerProcess.of(me.facts()) == me
    assert me.fate().state == "runs"
    assert str(os.getpid()) in str(me)
    assert ownership._started(2**22 + 1) == ""
