"""What is recorded of the Slurm job, and who ran it only when that is asked for."""

import json
import stat

import pytest

from pffbench.provenance.batch import scheduler_facts

WHO = {
    "SLURM_JOB_ACCOUNT": "astro",
    "SLURM_JOB_USER": "ada",
    "SLURM_JOB_UID": "815",
    "SLURM_JOB_GID": "815",
    "SLURM_SUBMIT_DIR": "/home/ada",
    "PBS_ACCOUNT": "astro",
    "PBS_O_LOGNAME": "ada",
    "PBS_O_HOME": "/home/ada",
}
JOB = {
    "SLURM_JOB_ID": "7",
    "SLURM_JOB_PARTITION": "main",
    "SLURM_JOB_NUM_NODES": "4",
    "SLURM_SRUN_COMM_HOST": "x",
}
SCONTROL = """JobId=7 JobName=two words UserId=ada(815) GroupId=a(1) \
Account=astro Restarts=1 TimeLimit=00:10:00 \
SubmitTime=2024-05-01T10:00:00 EligibleTime=2024-05-01T10:00:01 StartTime=2024-05-01T10:01:30 \
EndTime=Unknown NodeList=node[1-3] TRES=cpu=4,mem=1G,node=4 NtasksPerN:B:S:C=0:0:*:* \
QOS=(null) Comment=a b = c Command=/home/ada/job script.sh WorkDir=/home/ada"""


@pytest.fixture
def scontrol(tmp_path, monkeypatch):
    def write(script):
        path = tmp_path / "scontrol"
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return write


def test_outside_of_slurm_there_is_nothing_to_say():
    assert scheduler_facts("slurm", {"SLURM_CONF": "/etc/slurm.conf"}) == {}


def test_a_job_is_described_with_its_wait(scontrol):
    scontrol(f'[ "$*" = "show job -o 7" ] && cat <<"END"\n{SCONTROL}\nEND\n')
    facts = scheduler_facts("slurm", JOB)
    assert facts["job_partition"] == "main"
    assert "srun_comm_host" not in facts
    job = facts["scontrol"]
    assert job["TimeLimit"] == "00:10:00"
    assert job["Restarts"] == "1"
    assert job["NtasksPerN:B:S:C"] == "0:0:*:*"
    assert "QOS" not in job  # none
    assert job["TRES"] == "cpu=4,mem=1G,node=4"
    assert job["NodeList"] == "node[1-3]"
    assert job["Comment"] == "a b = c"
    assert facts["queue_wait_s"] == 90


def test_who_ran_the_job_is_not_described(scontrol):
    scontrol(f'cat <<"END"\n{SCONTROL}\nEND\n')
    without = json.dumps(scheduler_facts("slurm", JOB | WHO))
    assert not [word for word in ("astro", "ada", "815") if word in without]


def test_array_step_restart_and_binding_are_recorded(scontrol):
    scontrol("exit 1")
    told = {
        "ARRAY_JOB_ID": "5",
        "ARRAY_TASK_ID": "2",
        "STEP_ID": "1",
        "RESTART_COUNT": "1",
        "NTASKS": "8",
        "STEP_TASKS_PER_NODE": "2(x4)",
        "JOB_QOS": "debug",
        "CPU_BIND_TYPE": "mask_cpu:",
        "CPU_BIND_LIST": "0x3,0xC",
        "DISTRIBUTION": "block",
    }
    facts = scheduler_facts("slurm", JOB | {f"SLURM_{name}": value for name, value in told.items()})
    assert {name.lower(): value for name, value in told.items()}.items() <= facts.items()


def test_of_an_array_the_task_itself_is_described(scontrol):
    # Asked for the last task, whose number is that of the array, scontrol tells of all of them.
    others = [f"JobId={job} ArrayJobId=7 NodeList=node{job}" for job in (8, 7, 9)]
    scontrol("printf '%s\n' " + " ".join(f"'{line}'" for line in others))
    assert scheduler_facts("slurm", JOB)["scontrol"] == {"ArrayJobId": "7", "NodeList": "node7"}


@pytest.mark.parametrize(
    ("script", "timeout", "expected"),
    [
        ("echo slurm_load_jobs error >&2; exit 1", 300, "scontrol failed: slurm_load_jobs error"),
        ("exec sleep 1000", 0.2, "no answer within 0.2 s"),
    ],
)
def test_a_failing_scontrol_is_recorded(script, timeout, expected, scontrol):
    scontrol(script)
    facts = scheduler_facts("slurm", JOB, timeout=timeout)
    assert expected in facts["scontrol"]
    assert facts["job_id"] == "7"


def test_a_missing_scontrol_is_recorded(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert scheduler_facts("slurm", JOB)["scontrol"] == "unknown: scontrol not found"


def test_a_job_without_a_start_time_has_no_wait(scontrol):
    scontrol("echo JobId=7 SubmitTime=2024-05-01T10:00:00 StartTime=Unknown")
    assert scheduler_facts("slurm", JOB)["queue_wait_s"] is None
