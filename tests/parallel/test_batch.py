"""The two steps of a job script: a run that each start of a job continues, and the job's end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time

import pytest

from launch import (
    REPOSITORY,
    environment,
    pffbench_cli,
    pffbench_here,
    run_experiment,
    start_experiment,
    wait_until,
)
from pffbench.storage.ownership import SILENCE

pytestmark = pytest.mark.parallel

SLAB = {"workload": "hyperslab", "shape_per_rank": [4, 8]}
SLOW = {
    "repetitions": 4,
    "cases": [SLAB | {"backend": "null", "null": {"delays": {"write": 0.3}}}],
}
SHORT = ("--max-time", "0.1 s")


class Job:
    """A job of Slurm, whose `scontrol` is a stand-in that notes its words."""

    def __init__(self, directory):
        self.program = directory / "bin" / "scontrol"
        self.program.parent.mkdir()
        self.scontrol_ends_with(0)
        path = f"{self.program.parent}:{os.environ['PATH']}"
        self.variables = {"SLURM_JOB_ID": "17", "PATH": path}

    def scontrol_ends_with(self, status):
        self.program.write_text(f'#!/bin/sh\necho "$@" >>$0.log\necho refused >&2\nexit {status}\n')
        self.program.chmod(0o755)

    def scontrol_ends_the_job(self):
        """Let `scontrol` kill the process that calls it, as Slurm may before it answers."""
        self.program.write_text("#!/bin/sh\nkill -KILL $PPID\n")

    @property
    def asked(self):
        """What scontrol was asked for."""
        log = self.program.with_name("scontrol.log")
        return log.read_text().splitlines() if log.exists() else []

    def end(self, done, status=None, start=pffbench_here):
        """Take the last step of the job, after a launcher that ended with a status."""
        given = done.status if status is None else status
        return start("report", "--batch", str(given), done.out, env=self.variables)


@pytest.fixture
def job(tmp_path):
    return Job(tmp_path)


def run(directory, *arguments, **content):
    return run_experiment(directory, None, "--batch", *arguments, **(SLOW | content))


def test_a_job_that_starts_again_continues_its_run_to_the_end(tmp_path, job):
    first = run(tmp_path, *SHORT)
    assert first.status == 3, first.said
    ended = job.end(first)
    assert ended.status == 3, ended.said
    assert "interrupted; queueing the job again" in ended.stdout
    assert job.asked == ["requeue 17"]
    assert not (first.out / "report.html").exists()

    path = first.out / "run.json"
    record = json.loads(path.read_text())
    record["topology"]["hosts"] = ["elsewhere"]
    path.write_text(json.dumps(record))
    second = run(tmp_path)
    assert second.status == 0, second.said
    assert len(second.record["resumed"]) == 1
    (limit,) = second.record["limits"]
    assert limit.startswith("the run was resumed on other hosts (")
    assert f"Limited: {limit[:40]}" in second.stdout
    rounds = [(one["case"], one["round"]) for one in second.repetitions]
    assert len(rounds) == len(set(rounds))
    assert job.end(second).status == 0
    assert (first.out / "report.html").exists()

    again = run(tmp_path)
    assert again.status == 0, again.said
    assert again.stdout.count("finished by an earlier start") == 1
    assert again.record == second.record
    assert job.asked == ["requeue 17"]


def test_the_record_decides_and_not_the_launcher(tmp_path, job):
    failed = SLAB | {"backend": "null", "null": {"fail": "read"}}
    bad = run(tmp_path, cases=[failed])
    assert bad.status == 1
    assert job.end(bad, 0).status == 1
    assert run(tmp_path, cases=[failed]).status == 1, "left alone, with the status of its record"


@pytest.mark.parametrize(
    ("refusal", "why"),
    [
        ("scontrol", "scontrol failed: refused"),
        pytest.param("starts", "3 of its starts finished no repetition", marks=pytest.mark.full),
        pytest.param("elsewhere", "users cannot queue a job again here", marks=pytest.mark.full),
    ],
)
def test_a_job_that_is_not_queued_again_says_why_and_how_to_resume(tmp_path, job, refusal, why):
    if refusal == "scontrol":
        job.scontrol_ends_with(1)
    elif refusal == "starts":
        job.variables["SLURM_RESTART_COUNT"] = "3"
    else:
        job.variables["SLURM_JOB_ID"] = None
    done = run(tmp_path, *SHORT)
    ended = job.end(done)
    assert ended.status == 3, ended.said
    assert f"not queued again: {why}" in ended.stdout
    assert f"submit the same job again with PFFBENCH_OUT={done.out}" in ended.stdout
    assert (done.out / "report.html").exists()


def test_the_log_names_the_requeue_although_slurm_ends_the_job_at_once(tmp_path, job):
    first = run(tmp_path, *SHORT)
    job.scontrol_ends_the_job()
    assert "interrupted; queueing the job again" in job.end(first, start=pffbench_cli).stdout


def test_a_run_whose_ranks_were_killed_ends_with_the_status_of_the_launcher(tmp_path, job):
    started = start_experiment(tmp_path, None, "--batch", **SLOW)
    wait_until(lambda: (started.out / "run.json").exists())
    os.kill(started.process.pid, signal.SIGKILL)
    killed = started.finish()
    for status, ended in ((137, 137), (0, 1)):
        told = job.end(killed, status)
        assert told.status == ended, told.said
        assert "the run did not come to its end; to resume, submit the same job" in told.stdout
    assert not job.asked
    assert run(tmp_path).status == 0


def test_a_start_with_wrong_input_is_not_tried_again(tmp_path, job):
    done = run(tmp_path, *SHORT)
    path = done.out / "run.json"
    path.write_text(path.read_text().replace('"ranks": 1', '"ranks": 3', 1))
    refused = run(tmp_path)
    assert refused.status == 2, refused.said
    assert job.end(refused).status == 2
    assert not job.asked


def test_a_run_that_did_not_begin_ends_with_the_status_of_the_launcher(tmp_path, job):
    done = run(tmp_path, colour="red")
    assert done.status == 2
    assert job.end(done).status == 2
    told = job.end(done, 0)
    assert told.status == 1
    assert "the run did not begin" in told.stdout


def test_a_start_that_was_killed_before_it_had_a_record_is_begun_again(tmp_path):
    done = run(tmp_path)
    gone = subprocess.Popen(["true"])
    gone.wait()
    for path in done.out.iterdir():
        if path.name != "repetitions.jsonl":
            path.unlink()
    holder = {"host": os.uname().nodename, "user": "me", "pid": gone.pid, "date": "2026",
              "boot": "another"}  # fmt: skip
    lock = done.out / "run.lock"
    lock.write_text(json.dumps(holder))
    os.utime(lock, (time.time() - 2 * SILENCE,) * 2)  # a living run would have touched it
    again = run(tmp_path)
    assert again.status == 0, again.said


def test_figures_that_cannot_be_made_fail_no_job(tmp_path, job):
    done = run(tmp_path)
    (done.out / "report.html").mkdir()
    ended = job.end(done)
    assert ended.status == 0, ended.said
    assert "tables and figures could not be made" in ended.stdout


def test_a_job_has_one_run_with_a_name(tmp_path):
    nameless = pffbench_cli("run", "--batch", "quick", cwd=tmp_path)
    assert nameless.status == 2
    assert "name it with --out" in nameless.stderr
    folder = pffbench_cli("run", "--batch", "--out", tmp_path / "out", tmp_path)
    assert folder.status == 2
    assert "--batch resumes one run" in folder.stderr


TEMPLATES = dict(
    re.findall(
        r"^```bash\n(#!/bin/bash\n#(PBS|flux).*?)^```",
        (REPOSITORY / "docs" / "slurm.md").read_text(), re.DOTALL | re.MULTILINE,
    )
)  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(text, marks=() if name == "PBS" else pytest.mark.full, id=name)
        for text, name in TEMPLATES.items()
    ],
)
def test_a_template_of_another_scheduler_runs_and_resumes(tmp_path, text):
    """Its launcher is a stand-in that starts one process."""
    (tools := tmp_path / "tools").mkdir()
    # What follows the options of the launcher.
    start = 'while [ "$1" != python3 ]; do shift; done; exec "$@"\n'
    for name, script in {
        "mpiexec": start,
        "flux": f"[ $1 = run ] || exec echo f17\n{start}",
    }.items():
        (tools / name).write_text(f"#!/bin/sh\n{script}")
        (tools / name).chmod(0o755)
    (tmp_path / "nodes").write_text("n1\n")
    (tmp_path / "job").write_text(text)
    variables = environment(
        PATH=f"{tools}:{os.environ['PATH']}", PBS_O_WORKDIR=str(tmp_path), PBS_JOBNAME="pffbench",
        PBS_JOBID="17.server", PBS_NODEFILE=str(tmp_path / "nodes"), EXPERIMENT="quick.yaml",
    )  # fmt: skip
    (tmp_path / "quick.yaml").write_text(
        json.dumps({"name": "quick", "repetitions": 1, "cases": [SLAB | {"backend": "null"}]})
    )
    for _ in range(2):
        done = subprocess.run(
            ["bash", tmp_path / "job", "quick.yaml"], cwd=tmp_path, env=variables,
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
    (run_json,) = tmp_path.glob("pffbench-results/pffbench-*17/run.json")
    assert json.loads(run_json.read_text())["valid"] is True
    assert "finished by an earlier start" in done.stdout


def test_what_is_written_is_not_written_again_and_a_reader_that_fails_fails_the_job(tmp_path, job):
    stage = ("--set", "cache=separate", "--stage")
    case = [SLAB | {"backend": "posix"}]
    for _ in range(2):
        wrote = run(tmp_path, *stage, "write", cases=case)
        assert wrote.status == 0, wrote.said
    assert job.end(wrote).status == 0
    assert wrote.stdout.count("finished by an earlier start") == 1
    refused = run(tmp_path, *stage, "read", cases=case)
    assert refused.status == 2
    assert "wrote these data and may hold them in memory" in refused.stderr
    assert job.end(refused).status == 2
