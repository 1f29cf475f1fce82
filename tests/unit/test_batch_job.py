"""How long a job may still run, from what Slurm tells; and the signals that end a run."""

import argparse
import os
import signal
import time
from dataclasses import replace

import pytest

from pffbench.experiment.load import from_data, is_built_in, load_experiment
from pffbench.job.batch_job import StopSignals, seconds_left
from pffbench.run.options import RunOptions, add_arguments
from pffbench.run.prepare import with_time_of_job

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


ONE_CASE = {"name": "x", "cases": [{"backend": "null", "workload": "hyperslab", "shape": [8]}]}


def budget(words=(), environ=None, job_share=1, **experiment):
    """Return the time budget that a run has in a job that ends in half an hour."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    options = replace(RunOptions.of_arguments(parser.parse_args(list(words))), job_share=job_share)
    loaded = (
        load_experiment(options.experiment, options.overrides)
        if is_built_in(options.experiment)
        else from_data(ONE_CASE | experiment, options.experiment)
    )
    end = str(int(time.time()) + 1800)
    job = JOB | {"SLURM_JOB_END_TIME": end} if environ is None else environ
    return with_time_of_job(loaded, options, job).experiment.time_budget


#: Half an hour, less a minute, less a tenth.
HALF_AN_HOUR = pytest.approx(1566, abs=3)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), HALF_AN_HOUR),
        (("--set", "repetitions=20"), HALF_AN_HOUR),
        (("--max-time", "10 min"), 540),
        (("--set", "time_budget=120 s"), 120),
        (("--stage", "write"), 120),
        (("mine.yaml",), HALF_AN_HOUR),
        (("nightly",), HALF_AN_HOUR),
    ],
)
def test_in_a_job_the_time_budget_is_what_is_left_unless_it_is_given(words, expected):
    assert budget(words) == expected


def test_the_runs_of_a_folder_share_the_time():
    assert budget(job_share=3) == pytest.approx(522, abs=2)


def test_the_budget_of_a_file_and_its_number_of_repetitions_are_given():
    assert budget(["mine.yaml"], time_budget="2 min") == 120
    assert budget(["mine.yaml"], repetitions=200) is None


def test_outside_of_a_job_and_in_one_without_a_limit_the_budget_stays():
    assert budget(environ={}) == 120
    assert budget(["mine.yaml"], environ={}) is None
    assert budget(environ={"SLURM_JOB_ID": "7", "PATH": "/nowhere"}) == 120


def test_handlers_that_mpi_puts_over_ours_when_it_starts_are_replaced():
    with StopSignals() as stop:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        stop.install()
        os.kill(os.getpid(), signal.SIGUSR1)
        assert stop.asked
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL
