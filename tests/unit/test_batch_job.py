"""How long a job may still run, from what Slurm tells; and the signals that end a run."""

import os
import signal
import time

import pytest

from pffbench.parallel.batch_job import StopSignals, seconds_left

JOB = {"SLURM_JOB_ID": "7"}


def squeue(directory, says, monkeypatch):
    """Put a squeue first on the path that says this."""
    program = directory / "squeue"
    program.write_text(f'#!/bin/sh\n[ "$*" = "--noheader --format=%L --job 7" ] && echo "{says}"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(directory), prepend=":")


def test_outside_of_a_job_there_is_no_limit():
    assert seconds_left({}) is None


def test_the_end_that_slurm_announces_counts_less_a_reserve():
    end = str(int(time.time()) + 3600)
    assert seconds_left(JOB | {"SLURM_JOB_END_TIME": end}) == pytest.approx(3540, abs=3)


def test_of_a_short_job_only_a_part_is_kept_back():
    end = str(int(time.time()) + 100)
    assert seconds_left(JOB | {"SLURM_JOB_END_TIME": end}) == pytest.approx(90, abs=3)


@pytest.mark.parametrize(
    ("says", "seconds"),
    [("1:40", 90), ("2:00:00", 7140), ("1-00:00:00", 86340), ("UNLIMITED", None), ("", None),
     ("NOT_SET", None), ("INVALID", None)],
)  # fmt: skip
def test_an_older_slurm_is_asked(tmp_path, monkeypatch, says, seconds):
    squeue(tmp_path, says, monkeypatch)
    assert seconds_left(JOB) == (seconds and pytest.approx(seconds, abs=1))


def test_without_an_answer_there_is_no_limit(tmp_path, monkeypatch):
    squeue(tmp_path, "", monkeypatch)
    (tmp_path / "squeue").write_text("#!/bin/sh\nexit 1\n")
    assert seconds_left(JOB) is None
    monkeypatch.setenv("PATH", "/nowhere")
    assert seconds_left(JOB) is None


def test_handlers_that_mpi_puts_over_ours_when_it_starts_are_replaced():
    with StopSignals() as stop:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        stop.install()
        os.kill(os.getpid(), signal.SIGUSR1)
        assert stop.asked
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL
