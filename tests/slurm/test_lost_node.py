"""A node that loses its power again and again, and boots with what its disk held: jobs go on."""

from __future__ import annotations

import time

import pytest

from desk import JOBS, Desk, repetitions, verdicts
from launch import environment

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.timeout(1800)]

TIMES = 10
REPETITIONS = 4
EXPERIMENT = f"""
name: held
repetitions: {REPETITIONS}
warmup: 0
roofline: false
common: {{workload: hyperslab, shape_per_rank: [4, 32, 32]}}
cases:
  - backend: hdf5
  - backend: "null"
    "null": {{delays: {{write: 0.0625}}}}
"""
# Python runs this at its start. As long as the gate is there, the second write of a start waits.
HOLD = """
import os, time

sleep, gate, writes = time.sleep, os.environ["GATE"], 0

def held(seconds):
    global writes
    sleep(seconds)
    if seconds == 0.0625:
        writes += 1
        start = os.environ.get("SLURM_RESTART_COUNT", "0")
        if writes == 2 and os.path.exists(f"{gate}-{start}"):
            open(f"{gate}-{start}.held-{os.environ['SLURM_PROCID']}", "x").close()
            while os.path.exists(f"{gate}-{start}"):
                sleep(0.1)

time.sleep = held
"""


def cut_the_power(desk, job, start):
    """Wait until both ranks of a start of a job are held, then let node3 die and boot again."""
    end = time.monotonic() + 300
    while len(list(desk.directory.glob(f"gate-{start}.held-*"))) < 2:
        assert time.monotonic() < end, desk.log(job)
        assert desk.slurm.facts(job)["JobState"] in ("PENDING", "RUNNING"), desk.log(job)
        time.sleep(0.3)
    desk.slurm.kill("node3")
    desk.slurm.wait(job, {"PENDING"})
    desk.slurm.boot("node3")


@pytest.mark.parametrize("number", range(TIMES))
def test_a_job_goes_on_each_time_its_node_is_lost_though_its_disk_keeps_the_sockets(
    slurm, shared, number
):
    assert "node3" in slurm.settings.disks
    desk = Desk(slurm, shared)
    (shared / "sitecustomize.py").write_text(HOLD)
    (shared / "held.yaml").write_text(EXPERIMENT)
    paths = f"{shared}:{environment()['PYTHONPATH']}"
    losses = 1 + number % 2
    for start in range(losses):
        (shared / f"gate-{start}").touch()
    where = ("-N2", "--ntasks-per-node=1", "-w", "node[2-3]", "-t", "20")
    variables = {"PYTHONPATH": paths, "GATE": str(shared / "gate")}
    job = desk.sbatch(*where, JOBS / "run.sh", "held.yaml", **variables)
    for start in range(losses):
        cut_the_power(desk, job, start)
    facts = desk.complete(job)
    assert facts["Restarts"] == str(losses)
    assert verdicts(desk.records("pffbench-results")) == {f"pffbench-{job}": ("finished", True)}
    done = repetitions(shared / "pffbench-results" / f"pffbench-{job}")
    assert len(done) == len(set(done)) == 2 * REPETITIONS
