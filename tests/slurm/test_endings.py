"""How jobs end before their runs do, and that each of these runs goes on and is whole at the end.

One run for each way to end is held in the midst of its third repetition. Then Slurm's clock, people
and a power cut end all of them at once, because what takes long is waiting for Slurm to notice.
`make test` has the job that its time limit warns, `make test-all` has all of them.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field

import h5py
import pytest

from cluster.settings import ClusterError
from desk import JOBS, Desk, repetitions
from launch import environment, sampled

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(1200)]

REPETITIONS = 6
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

# Python runs this at its start. The third write of the backend that does nothing takes as long as
# the gate is there; a warning opens it. SIGTERM does not: like a file system that hangs, so that
# Slurm has to kill.
HOLD = """
import os, select, signal, time

sleep, gate, writes = time.sleep, os.environ.get("GATE", ""), 0

def held(seconds):
    global writes
    sleep(seconds)
    if seconds == 0.0625:
        writes += 1
        if writes == 3 and os.path.exists(gate):
            hold()

def hold():
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell)
    open(f"{gate}.held-{os.environ['SLURM_PROCID']}", "x").close()
    while os.path.exists(gate):
        if select.select([told], [], [], 0.1)[0] and signal.SIGUSR1 in os.read(told, 100):
            break

time.sleep = held
"""
#: Two ranks on one node, or one on each of two; the power of node3 is cut.
ON_NODE1 = ("-N1", "--ntasks-per-node=2", "-w", "node1")
WITHOUT_NODE3 = ("-N2", "--ntasks-per-node=1", "-w", "node[1-2]")
NODE3_SECOND = ("-N2", "--ntasks-per-node=1", "-w", "node[2-3]")
NODE3_FIRST = ("-N2", "--ntasks-per-node=1", "-w", "node[3-4]")
NO_WARNING = "--signal=URG@1"
STORIES = {
    "warned": WITHOUT_NODE3,
    "out-of-time": (*WITHOUT_NODE3, NO_WARNING),
    "cancelled": ON_NODE1,
    "ranks-killed": ON_NODE1,
    "node-lost": NODE3_SECOND,
    "first-node-lost": NODE3_FIRST,
    "node-lost-no-requeue": (*NODE3_SECOND, "--no-requeue"),
    "node-lost-no-kill": (*NODE3_SECOND, "--no-kill"),
}
#: The state that the job comes to first. What Slurm queues again is pending.
ENDS = {
    "warned": "PENDING", "out-of-time": "TIMEOUT", "cancelled": "CANCELLED",
    "ranks-killed": "FAILED", "node-lost": "PENDING", "first-node-lost": "PENDING",
    "node-lost-no-requeue": "NODE_FAIL", "node-lost-no-kill": "FAILED",
}  # fmt: skip
BY_HAND = ("out-of-time", "cancelled", "ranks-killed", "node-lost-no-kill")
#: The story that is told in every run of the tests.
SAMPLE = "warned"


@dataclass
class Story:
    """One job: what was on disk when it was held, when it had ended, and when it was complete."""

    desk: Desk
    job: str
    held: bytes = b""
    ended: bytes = b""
    log: str = ""
    facts: dict[str, str] = field(default_factory=dict)
    trouble: list[str] = field(default_factory=list)

    @property
    def gate(self):
        return self.desk.directory / "gate"

    @property
    def lines(self):
        return (self.desk.directory / "out" / "run" / "repetitions.jsonl").read_bytes()

    def submit(self, *how):
        """Submit the job, or a new one that resumes its run."""
        directory = self.desk.directory
        # Nodes of jobs that run at the same time here are the same computer.
        script = directory / "shared.sh"
        script.write_text((JOBS / "run.sh").read_text().replace("#SBATCH --exclusive\n", ""))
        self.job = self.desk.sbatch(
            *how, "--oversubscribe", f"--job-name={directory.name}", "--time=20",
            script, "held.yaml", PFFBENCH_OUT=str(directory / "out" / "run"),
            PYTHONPATH=f"{directory.parent}:{environment()['PYTHONPATH']}", GATE=str(self.gate),
        )  # fmt: skip

    def wait(self, state):
        """Wait until the job has come to a state; another one is kept for the test to tell."""
        try:
            self.facts = self.desk.slurm.wait(self.job, {state}, timeout=300)
        except ClusterError as error:
            self.trouble.append(str(error))


@pytest.fixture(scope="module")
def stories(slurm_cluster, request):
    """Tell the stories that the selected tests ask for to their ends."""
    selected = {
        item.callspec.params["name"] for item in request.session.items if item.path == request.path
    }
    place = slurm_cluster.path / "shared" / "endings"
    place.mkdir()
    (place / "sitecustomize.py").write_text(HOLD)
    found = {name: begin(slurm_cluster, place, name) for name in STORIES if name in selected}
    for story in found.values():
        wait_until_held(story)
    end_all(slurm_cluster, found)
    for name, story in found.items():
        story.wait(ENDS[name])
        if name == "warned":  # its next start is soon, and must not be warned again
            change(slurm_cluster, story, "TimeLimit=20")
        story.ended, story.log = story.lines, story.desk.log(story.job)
        story.gate.unlink()
    go_on_with_all(slurm_cluster, found)
    for story in found.values():
        story.wait("COMPLETED")
    yield found
    slurm_cluster.settle()


def begin(cluster, place, name):
    (directory := place / name).mkdir()
    (directory / "held.yaml").write_text(EXPERIMENT)
    (directory / "gate").touch()
    story = Story(Desk(cluster, directory), "")
    story.submit(*STORIES[name])
    return story


def wait_until_held(story):
    """Wait until both ranks are held, and look at what is finished."""
    end = time.monotonic() + 300
    while len(list(story.gate.parent.glob("gate.held-*"))) < 2:
        assert time.monotonic() < end, story.desk.log(story.job)
        time.sleep(0.1)
    story.held = story.lines


def end_all(cluster, found):
    """Let the clock, people and a power cut do what they do."""
    # The limit of the one job is here; the other one's is near enough for the warning.
    if "out-of-time" in found:
        change(cluster, found["out-of-time"], "EndTime=now+1")
    if "warned" in found:
        change(cluster, found["warned"], "EndTime=now+100")
    if "cancelled" in found:
        cluster.run("scancel", found["cancelled"].job)
    if "ranks-killed" in found:
        cluster.run("scancel", "--signal=KILL", f"{found['ranks-killed'].job}.0")
    if loses_node3(found):
        cluster.kill("node3")


def loses_node3(found):
    return any("node-lost" in name for name in found)


def go_on_with_all(cluster, found):
    """Do what a user would do after such a night; who queued itself again needs nothing."""
    if loses_node3(found):
        cluster.boot("node3")
    for name in BY_HAND:
        if name in found:
            cluster.run("scontrol", "requeue", found[name].job, check=False)
    if "out-of-time" in found:
        change(cluster, found["out-of-time"], "TimeLimit=20")
    if "node-lost-no-requeue" in found:
        found["node-lost-no-requeue"].submit(*NODE3_SECOND)


def change(cluster, story, what):
    cluster.run("scontrol", "update", f"JobId={story.job}", what)


def finished(lines):
    return {(one["case"], one["round"]) for one in map(json.loads, lines.splitlines())}


@pytest.mark.parametrize("name", sampled(STORIES, SAMPLE))
def test_the_run_is_whole_and_no_finished_repetition_was_lost_or_repeated(stories, name):
    story = stories[name]
    assert not story.trouble, "\n".join([*story.trouble, story.desk.log(story.job)])
    assert len(finished(story.held)) >= 4, "two repetitions of two cases come before the third"
    # Nothing that was on the disk when the end came has changed since.
    assert story.ended.startswith(story.held)
    assert story.lines.startswith(story.ended)
    results = story.desk.directory / "out" / "run"
    done = repetitions(results)
    assert len(done) == len(set(done)) == 2 * REPETITIONS
    with h5py.File(results / "ranks.h5") as ranks:
        for case in {case for case, _ in done}:
            assert sorted(ranks[case]["repetition"][:]) == list(range(REPETITIONS))
    (record,) = story.desk.records("out").values()
    assert (record["status"], record["valid"], record["reasons"]) == ("finished", True, [])
    assert len(record["resumed"]) == 1
    assert not (story.desk.directory / "pffbench-scratch").exists()


#: What tells a person at night what has happened. Slurm itself says why it ends a job.
LOGS = {
    "warned": "interrupted; queueing the job again",
    "out-of-time": "DUE TO TIME LIMIT",
    "cancelled": "CANCELLED AT",
    "ranks-killed": "the run did not come to its end; to resume, submit the same job again with",
    "node-lost": "DUE TO NODE FAILURE",
    "node-lost-no-requeue": "DUE TO NODE FAILURE",
    "node-lost-no-kill": "the run did not come to its end; to resume, submit the same job again",
}


@pytest.mark.parametrize("name", sampled(LOGS, SAMPLE))
def test_the_log_tells_how_the_job_ended(stories, name):
    assert LOGS[name] in stories[name].log


@pytest.mark.parametrize("name", ["warned"])
def test_a_warned_run_finishes_the_repetition_in_hand(stories, name):
    story = stories[name]
    assert len(finished(story.ended)) == len(finished(story.held)) + 1


@pytest.mark.parametrize("name", sampled(name for name in STORIES if name != "warned"))
def test_a_killed_run_keeps_exactly_what_was_finished(stories, name):
    assert stories[name].ended == stories[name].held
