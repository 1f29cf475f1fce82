"""What the program knows of a job of Slurm, PBS or Flux, whose commands are stand-ins here."""

import time
from types import SimpleNamespace

import pytest

from pffbench.job.batch_job import seconds_left
from pffbench.provenance.batch import scheduler_facts
from pffbench.run.next_steps import more_ranks
from pffbench.storage.ownership import OwnerProcess

QSTAT = """Job Id: 17.server
    job_state = {state}
    exec_vnode = (n1:ncpus=2)+(n2:ncpus
\t=2)
    Resource_List.select = 2:ncpus=2:mpiprocs=2
    Resource_List.walltime = 01:00:00
    Account_Name = abc
    stime = {start}
"""


def tool(directory, name, script):
    """Make a program of this name that runs this."""
    program = directory / name
    program.write_text(f"#!/bin/bash\n{script}\n")
    program.chmod(0o755)


@pytest.fixture
def pbs(tmp_path, monkeypatch):
    start = time.strftime("%a %b %d %H:%M:%S %Y", time.localtime(time.time() - 600))
    tool(tmp_path, "qstat", f"cat <<'E'\n{QSTAT.format(state='R', start=start)}E")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return {"PBS_JOBID": "17.server", "PBS_QUEUE": "debug"}


def test_a_run_ends_before_the_time_of_a_pbs_job(pbs):
    assert seconds_left(pbs) == pytest.approx(3000 - 60, abs=3)


@pytest.mark.parametrize(("left", "seconds"), [("3000", 2940), ("4294967295", None), ("", None)])
def test_a_run_ends_before_the_time_of_a_flux_job(tmp_path, monkeypatch, left, seconds):
    tool(tmp_path, "flux", f'[ "$*" = "job timeleft" ] && echo {left}')
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert seconds_left({"FLUX_URI": "local:///x"}) == (seconds and pytest.approx(seconds, abs=3))


def test_the_facts_of_a_pbs_job_are_recorded(pbs):
    facts = scheduler_facts("pbs", pbs)
    assert (facts["jobid"], facts["queue"]) == ("17.server", "debug")
    assert facts["qstat"]["exec_vnode"] == "(n1:ncpus=2)+(n2:ncpus=2)"
    assert "Account_Name" not in facts["qstat"]
    assert scheduler_facts("pbs", {}) == {}


def test_the_facts_of_a_flux_job_are_recorded(tmp_path, monkeypatch):
    tool(tmp_path, "flux", "printf '%s\\n' 'size  2' 'hostlist  n[1-2]' 'rank  0'")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    job = {"FLUX_URI": "local:///x", "FLUX_JOB_ID": "ƒ2", "PFFBENCH_FLUX_JOB": "f17"}
    facts = scheduler_facts("flux", job)
    assert (facts["job_id"], facts["batch_job"]) == ("ƒ2", "f17")
    assert facts["instance"] == {"size": "2", "hostlist": "n[1-2]"}
    assert scheduler_facts("flux", {}) == {}


@pytest.mark.parametrize(
    ("scheduler", "says", "status", "fate"),
    [
        ("pbs", "    job_state = R", 0, "runs"), ("pbs", "    job_state = F", 0, "ended"),
        ("pbs", "qstat: Unknown Job Id 17.server", 153, "ended"),
        ("pbs", "no server", 1, "unknown"),
        ("flux", "RUN", 0, "runs"), ("flux", "INACTIVE", 0, "ended"),
        ("flux", "broken", 1, "unknown"),
    ],
)  # fmt: skip
def test_whether_a_process_of_another_job_has_ended(
    tmp_path, monkeypatch, scheduler, says, status, fate
):
    name = {"pbs": "qstat", "flux": "flux"}[scheduler]
    tool(tmp_path, name, f'echo "{says}" >&$((1 + ({status} > 0))); exit {status}')
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    other = OwnerProcess(
        "elsewhere", "me", 7, "2026-11-23", boot="b", job="17.server", scheduler=scheduler
    )
    assert other.fate().state == fate


@pytest.mark.parametrize("scheduler", ["slurm", "pbs", "flux"])
def test_without_the_scheduler_nothing_is_known_of_another_job(tmp_path, monkeypatch, scheduler):
    monkeypatch.setenv("PATH", str(tmp_path))
    other = OwnerProcess("elsewhere", "me", 7, "2026", boot="b", job="17", scheduler=scheduler)
    assert other.fate().state == "unknown"


def test_the_next_command_is_that_of_the_scheduler():
    options = SimpleNamespace(experiment=None)
    assert "flux run -n 2 python" in more_ranks(options, {"FLUX_URI": "x"}, 2)
    assert "mpiexec -n 2 python" in more_ranks(options, {"PBS_JOBID": "1"}, 2)
